package simulation

import (
	"fmt"
	"slices"
	"time"

	"seang.org/operator/internal/redis"
	"seang.org/operator/internal/redis/plan"
)

// Times of the model, those of the configuration that package conf renders.
const (
	linkTimeout = 60 * time.Second
	// leaseSlack is how much later than min-replicas-max-lag a process was
	// measured to refuse writes.
	leaseSlack = 1900 * time.Millisecond
	writeBytes = 10
)

// entry is one write in a history, and the offset after it.
type entry struct {
	write  int
	offset int64
}

// process is one Redis process.
type process struct {
	pod   *pod
	runID string

	alive, hung bool
	isolated    bool // from members and operator; its clients reach it
	deaf        bool // to the operator alone
	unseen      bool // hung while nobody could tell that from a lost node
	disturbed   bool // had a failure since it began
	givenUp     bool // has no pod, and left the record: others have what it has
	forked      bool // made primary by hand, and written to
	forkedAt    time.Duration

	role          redis.Role
	source        string // IP that a replica follows; empty: nobody
	id, secondary redis.ReplicationID
	secondOffset  int64
	offset        int64
	log           []entry
	backlog       bool
	backlogStart  int64
	connections   int // grows when the process drops its replicas

	link          *link
	copying       *fullCopy
	linkDownSince time.Duration // -1: never was up
	loading       bool

	open        []*connection // of operators
	views       map[*process]*view
	minReplicas int
	pausedUntil time.Duration
	serving     bool
	appendOnly  bool
	keptAside   bool // what it had when it began is saved in a file of its own
}

// link is the stream that a replica reads.
type link struct {
	from        *process
	connections int
	log         []entry // sent so far
	sent        int64
	heard       time.Duration
}

// fullCopy is a full resync under way.
type fullCopy struct {
	from        *process
	connections int
	log         []entry
	offset      int64
	id          redis.ReplicationID
	arrived     bool
}

// view is a replica as its primary sees it.
type view struct {
	online  bool
	acked   int64
	ackTime time.Duration
}

func (p *process) String() string { return fmt.Sprintf("%s/%s", p.pod.name, p.runID) }

func (p *process) runs() bool { return p.alive && !p.hung }

func (p *process) primary() bool { return p.role == redis.RolePrimary }

func (p *process) has(id int) bool {
	_, found := slices.BinarySearchFunc(p.log, id, func(e entry, id int) int { return e.write - id })
	return found
}

// linkUp is what the process believes of its link.
func (p *process) linkUp() bool { return p.link != nil }

// reach says that two processes can exchange packets.
func reach(a, b *process) bool {
	return a == b || (!a.isolated && !b.isolated)
}

func (w *World) newReplicationID() redis.ReplicationID {
	w.ids++
	return redis.ReplicationID(fmt.Sprintf("id%d", w.ids))
}

// promote is REPLICAOF NO ONE.
func (w *World) promote(p *process) {
	if p.primary() {
		if w.decided {
			w.last = p // A person chose an old primary that was never demoted.
		}
		return
	}
	p.role, p.source, p.link, p.copying = redis.RolePrimary, "", nil, nil
	p.secondary, p.secondOffset = p.id, p.offset+1
	p.id = w.newReplicationID()
	p.dropReplicas()
	w.promoted(p)
}

// follow is REPLICAOF ip; an empty ip is nobody's.
func (w *World) follow(p *process, ip string) {
	if p.role == redis.RoleReplica && p.source == ip {
		return
	}
	wasUp := p.linkUp()
	wasPrimary := p.primary()
	p.role, p.source, p.link, p.copying = redis.RoleReplica, ip, nil, nil
	p.dropReplicas()
	if wasUp || wasPrimary {
		p.linkDownSince = w.now
	}
}

func (p *process) dropReplicas() {
	p.connections++
	p.views = map[*process]*view{}
}

// goodReplicas is how min-replicas-to-write counts, at its latest.
func (w *World) goodReplicas(p *process) int {
	good := 0
	for _, v := range p.views {
		if v.online && w.now-v.ackTime <= plan.MaxLagSeconds*time.Second+leaseSlack {
			good++
		}
	}
	return good
}

func (p *process) append(write int) {
	if p.backlog {
		p.offset += writeBytes
	}
	p.log = append(p.log, entry{write, p.offset}) // Whoever copies a log clips it.
}

// info is the reply to INFO.
func (w *World) info(p *process) *redis.Info {
	info := &redis.Info{
		RunID: p.runID, Role: p.role, PrimaryHost: p.source, PrimaryPort: redis.Port,
		LinkUp: p.linkUp(), ReplicationID: p.id, SecondaryID: p.secondary, BranchedAt: p.secondOffset, Offset: p.offset,
		MinReplicas: p.minReplicas, Loading: p.loading, Keys: int64(len(p.log)),
		AppendOnly: p.appendOnly,
	}
	if p.role == redis.RoleReplica && !info.LinkUp {
		info.LinkDownSeconds = -1
		if p.linkDownSince >= 0 {
			info.LinkDownSeconds = int64((w.now - p.linkDownSince) / time.Second)
		}
	}
	if info.PrimaryHost == "" {
		info.PrimaryHost, info.PrimaryPort = "127.0.0.1", 1
	}
	for _, other := range w.processes {
		if v := p.views[other]; v != nil {
			replica := redis.Replica{IP: other.pod.ip, State: "wait_bgsave", Offset: v.acked, Lag: int64((w.now - v.ackTime) / time.Second)}
			if v.online {
				replica.State = redis.ReplicaOnline
			}
			info.Replicas = append(info.Replicas, replica)
		}
	}
	return info
}
