package plan

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/redis"
)

// Facts is all that a decision may depend on.
type Facts struct {
	// Now is the time of the pass.
	Now time.Time
	// Wanted is the number of members that the spec asks for: 1 + replicas.
	Wanted int
	// Persistent says that members keep their data on volumes.
	Persistent bool
	// Record is what was recorded last; nil if nothing ever was.
	Record *v1alpha1.Record
	// Members has one entry for each pod and each wanted ordinal, by ordinal.
	Members []Member
	// Service names the pod that the primary Service selects.
	Service string
	// ProxiesIdle says that kube-proxy can follow the next change of a Service at
	// once: it waits for a second after each.
	ProxiesIdle bool
	// ProxiesFollowed says that kube-proxy had the time to follow the last change.
	ProxiesFollowed bool
	// MinReplicas without which the primary must never accept writes; 0 if that
	// depends on who is in sync.
	MinReplicas int
	// MoveTo names the pod that a person wants as primary; empty if none is named.
	MoveTo string
	// Accept is a person's decision whose data is kept: POD UID@EPOCH, or empty.
	Accept string
	// Gone proves that processes of pods that no longer exist have ended.
	Gone map[types.UID]Proof
	// Left has an offset of the primary for each holder whose pod no longer
	// exists, read when no such process followed the primary any more: it
	// confirmed nothing beyond.
	Left map[v1alpha1.MemberID]int64
	// InOrder says that the StatefulSet makes a pod only once those of lower
	// ordinals are of the wanted template: it is so where volumes are added.
	InOrder bool
	// DetachedFor is how long, on the operator's own monotonic clock, every
	// holder other than the primary has been seen not to follow it. Zero if
	// one was not.
	DetachedFor time.Duration
	// BootingFor is how long the first member of a new cluster could have become
	// primary.
	BootingFor time.Duration
	// SilentFor is how long the recorded primary has not answered.
	SilentFor time.Duration
}

// Member is one pod, or the place of one that does not exist yet.
type Member struct {
	Pod     string
	PodUID  types.UID
	Ordinal int
	// IP of the pod; empty until it has one.
	IP string
	// TLS says that the pod's process serves TLS.
	TLS bool
	// Leaving says that the pod is being deleted.
	Leaving bool
	// Outdated says that the pod was made from an older template than the one that
	// is wanted.
	Outdated bool
	// Persistent says that the pod keeps its data on a volume.
	Persistent bool
	// Role is the value of the pod's role label.
	Role string
	// Info is what the process said in this pass; nil if it did not answer.
	Info *redis.Info
	// Proof says why no process of this pod can acknowledge a write now.
	Proof Proof
	// Hangs says that the pod's address accepts connections, which the kernel
	// does, and that its process says nothing: it is stopped, or busy.
	Hangs bool
	// HangsFor is how long that has been so.
	HangsFor time.Duration
	// Killed says that the pod is being deleted with next to no grace.
	Killed bool
	// SyncTarget is an offset of this epoch's primary read after the member
	// began to follow it; 0 while none was read.
	SyncTarget int64
	// FollowsFor is how long the member has been told to follow the primary of this
	// epoch.
	FollowsFor time.Duration
	// Serving says that this process answers reads while its link is down: it
	// was in sync before.
	Serving bool
	// KeptAside says that a copy of what this process had when it began was asked for,
	// into a file of its own.
	KeptAside bool
	// Unreadable says when a process of this pod last ended because it could not load
	// its files, RFC 3339; empty if none did since one answered.
	Unreadable string
	// Trouble is what Kubernetes says of a pod that does not answer; its reason
	// is empty if it says nothing.
	Trouble Wait
	// OldClaim says that the volume is older than the RedisCluster and carries
	// no record: it may hold data that nobody remembers.
	OldClaim bool
}

// Proof says why a process cannot acknowledge a write any more (safety rule 5).
type Proof string

const (
	// NotProved: the process may run.
	NotProved Proof = ""
	// ProofTerminated: the kubelet reports the container terminated.
	ProofTerminated Proof = "the kubelet reports its container terminated"
	// ProofRefused: a fresh dial of the pod's address is refused.
	ProofRefused Proof = "a fresh dial of the pod's address is refused"
	// ProofReplaced: another process answers in the same pod.
	ProofReplaced Proof = "another process answers in the same pod"
	// ProofDemoted: the process itself reports that it is a replica.
	ProofDemoted Proof = "it reports that it is a replica"
	// ProofLease: it needs a replica to accept writes and has had none.
	ProofLease Proof = "it needs a replica to accept writes and has had none for longer than its lease"
)

// Lease is how long after its last replica was seen detached a primary with
// min-replicas-to-write 1 may still acknowledge: the lag limit plus the two
// seconds by which Redis was measured to exceed it (docs/safety-rules.md, rule 5).
const Lease = (MaxLagSeconds + 2) * time.Second

// MaxLagSeconds is min-replicas-max-lag of every member, in seconds.
const MaxLagSeconds = 2

// SilenceLimit is how long a primary may be silent before its replicas are
// detached to let the lease run out. Forks and slow commands look the same for
// a while.
const SilenceLimit = 3 * time.Second

// HangLimit is how long a primary may hang before its process is killed, where
// another can take over.
const HangLimit = 5 * time.Second

// ReplicaHangLimit is how long a replica may hang before its process is killed: then the
// primary has dropped it (repl-timeout), and it must copy in any case.
const ReplicaHangLimit = 60 * time.Second

// bootPatience is how long the first primary waits for members that start with it:
// one record of all of them is one write, and without them the cluster is not
// Ready anyhow.
const bootPatience = 2 * time.Second

// ID is the identity of the process that answered in the member.
func (m *Member) ID() v1alpha1.MemberID {
	id := v1alpha1.MemberID{Pod: m.Pod, PodUID: m.PodUID}
	if m.Info != nil {
		id.RunID = m.Info.RunID
	}
	return id
}

// Answers says that the process answered and has loaded its data.
func (m *Member) Answers() bool { return m.Info != nil && !m.Info.Loading }

// CannotSave says that the process keeps its data on a volume and could not write there
// last: as primary it refuses writes.
func (m *Member) CannotSave() bool { return m.Persistent && m.Info != nil && m.Info.SaveFailed }

// is says that the very process id answered in the member.
func (m *Member) is(id v1alpha1.MemberID) bool {
	return m.Info != nil && m.ID() == id
}

func (m *Member) isPrimary() bool { return m.Answers() && m.Info.Role == redis.RolePrimary }

// secures says that a link between the two is encrypted: both can.
func (m *Member) secures(other *Member) bool { return m.TLS && other.TLS }

// follows says that the member is a replica of the primary, with TLS where both can.
func (m *Member) follows(primary *Member) bool {
	return m.Info != nil && m.Info.Role == redis.RoleReplica &&
		m.Info.PrimaryHost == primary.IP && m.Info.PrimaryPort == redis.PortOf(m.secures(primary))
}

// attached says that the member was told to follow a member. One whose link is merely
// down may be connected between two looks.
func (m *Member) attached() bool {
	return m.Info != nil && m.Info.Role == redis.RoleReplica &&
		(m.Info.LinkUp || m.Info.PrimaryPort == redis.Port || m.Info.PrimaryPort == redis.PortTLS)
}

// detached says that the member is a replica of nobody.
func (m *Member) detached() bool {
	return m.Answers() && m.Info.Role == redis.RoleReplica && !m.attached()
}

func (m *Member) empty() bool { return m.Answers() && m.Info.Keys == 0 }

// member returns the member in which the very process id answers, or nil.
func (f *Facts) member(id v1alpha1.MemberID) *Member {
	for i := range f.Members {
		if f.Members[i].is(id) {
			return &f.Members[i]
		}
	}
	return nil
}

// Silent says that the recorded primary does not answer.
func (f *Facts) Silent() bool {
	return f.Record != nil && f.member(f.Record.Primary) == nil
}

// pod returns the member with the name of a pod, or nil.
func (f *Facts) pod(name string) *Member {
	for i := range f.Members {
		if f.Members[i].Pod == name {
			return &f.Members[i]
		}
	}
	return nil
}

// ended tells whether, and why, the process id is known to have ended.
func (f *Facts) ended(id v1alpha1.MemberID) Proof {
	if id.PodUID == "" {
		// A record kept with a volume when the cluster ended in good order.
		return ProofTerminated
	}
	for i := range f.Members {
		m := &f.Members[i]
		switch {
		case m.PodUID != id.PodUID:
		case m.Info != nil && m.Info.RunID != id.RunID:
			return ProofReplaced
		case m.Info == nil:
			return m.Proof
		default:
			return NotProved
		}
	}
	return f.Gone[id.PodUID]
}

// fenced tells whether, and why, the process id cannot acknowledge a write (rule
// Fenced).
func (f *Facts) fenced(id v1alpha1.MemberID) Proof {
	if m := f.member(id); m != nil {
		if m.Info.Role == redis.RoleReplica {
			return ProofDemoted
		}
		return NotProved
	}
	if proof := f.ended(id); proof != NotProved {
		return proof
	}
	// A process that was stopped and goes on serves what has queued up before it
	// counts its replicas (measured): no lease binds it.
	if f.Record.Lease && f.DetachedFor >= Lease && f.hanging(id) == nil {
		return ProofLease
	}
	return NotProved
}

// hanging returns the member whose process, which is id as far as is known,
// hangs, or nil.
func (f *Facts) hanging(id v1alpha1.MemberID) *Member {
	if m := f.pod(id.Pod); m != nil && m.PodUID == id.PodUID && m.Hangs {
		return m
	}
	return nil
}
