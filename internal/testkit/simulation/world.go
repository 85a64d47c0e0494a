package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/redis"
)

// World is everything outside the operator.
type World struct {
	rng        *rand.Rand
	now        time.Duration
	observed   time.Duration // when the operator that acts had looked
	traced     bool
	trace      []string
	persistent bool
	wanted     int

	pods      map[string]*pod
	volumes   map[string]*volume
	processes []*process // those that run, with a pod or without
	size      int        // of the StatefulSet
	template  int        // that new pods are made from
	broken    bool       // pods of that template do not start
	record    *v1alpha1.Record
	version   int // of the record
	term      int // of the operator that leads
	service   string
	moveTo    string // the pod that a person wants as primary
	accept    string // a person's decision whose data is kept
	strict    int    // replicas that the spec needs for writes; 0: by default

	writes       int
	acknowledged map[*process][]int
	confirmed    []*write
	last         *process // promoted last
	failures     int      // that may still happen
	kinds        []func(*process)
	calm         time.Duration // until which none happens
	ids, runs    int
	healing      bool
	violation    error
	ready        bool
	missing      bool // it ended at a copy that is missing, for a person to decide
	mistaken     bool // a person commanded a member by hand
	decided      bool // a person decided what is lost
}

// pod is a pod object and its container.
type pod struct {
	name    string
	uid     types.UID
	ordinal int
	ip      string
	role    string
	leaving bool
	// deletedAt is when it was deleted by another than the operator; 0 if it was not.
	deletedAt time.Duration
	killed    bool // deleted with next to no grace
	// template that it was made from, and whether that does not start.
	template int
	broken   bool
	byScale  bool
	proc     *process
	waiting  []*write
}

// volume is what the files of a member hold: an append-only file, which tells no
// offsets, or the snapshot of a process that ended in good order, which does.
type volume struct {
	log      []entry
	snapshot bool
	id       redis.ReplicationID
	offset   int64
}

// write is a write that its client followed by WAIT 1.
type write struct {
	id     int
	by     *process
	offset int64
	copies []*process
}

// chance is true once in n.
func (w *World) chance(n int) bool { return w.rng.IntN(n) == 0 }

func (w *World) note(format string, args ...any) {
	if !w.traced {
		return
	}
	w.trace = append(w.trace, fmt.Sprintf("%8.3fs  ", w.now.Seconds())+fmt.Sprintf(format, args...))
}

func (w *World) violated(format string, args ...any) {
	if w.violation == nil {
		w.violation = fmt.Errorf(format, args...)
		w.note("VIOLATION: %v", w.violation)
	}
}

// Violation is the first promise that was broken; nil if none was.
func (w *World) Violation() error { return w.violation }

// Ready says that all ended as asked, without a person.
func (w *World) Ready() bool { return w.ready && !w.missing }

// Trace is what happened, for people.
func (w *World) Trace() string { return strings.Join(w.trace, "\n") }

// at returns the process that listens at an IP, or nil.
func (w *World) at(ip string) *process {
	for _, p := range w.processes {
		if p.pod.ip == ip {
			return p
		}
	}
	return nil
}

// createPods does what the StatefulSet controller does.
func (w *World) createPods() {
	for ordinal := range w.size {
		name := fmt.Sprintf("r-%d", ordinal)
		if w.pods[name] != nil {
			continue
		}
		w.ids++
		p := &pod{name: name, ordinal: ordinal, uid: types.UID(fmt.Sprintf("uid%d", w.ids)), ip: fmt.Sprintf("10.0.0.%d", w.ids),
			template: w.template, broken: w.broken}
		w.pods[name] = p
		w.start(p)
	}
	for _, p := range w.sortedPods() {
		if p.ordinal >= w.size && !p.leaving {
			p.leaving, p.byScale = true, true
			w.note("%s is being removed", p.name)
		}
	}
}

// start runs a new process in the pod; what its volume holds it loads.
func (w *World) start(p *pod) {
	w.runs++
	p.proc = &process{pod: p, runID: fmt.Sprintf("run%d", w.runs), alive: true, role: redis.RoleReplica, minReplicas: w.strict,
		id: w.newReplicationID(), linkDownSince: -1, views: map[*process]*view{}}
	if p.broken {
		p.proc.alive = false
		return
	}
	if w.persistent {
		p.proc.load(w.volumes[p.name])
	}
	p.waiting = nil
	w.processes = append(w.processes, p.proc)
	w.note("%s starts with %d keys", p.proc, len(p.proc.log))
}

// terminated is the end of a process in good order.
const terminated = "terminated"

// end ends a process; an append-only file may lack the last second.
func (w *World) end(p *process, why string) {
	if !p.alive {
		return
	}
	w.note("%s ends: %s", p, why)
	p.alive = false
	w.processes = slices.DeleteFunc(w.processes, func(q *process) bool { return q == p })
	if w.persistent {
		w.keep(p, why)
	}
}

// keep leaves the process's data on its volume. Without an append-only file, a
// process that does not end in good order leaves what it started from.
func (w *World) keep(p *process, why string) {
	switch {
	case why == terminated:
		w.volumes[p.pod.name] = &volume{log: slices.Clone(p.log), snapshot: p.backlog, id: p.id, offset: p.offset}
	case p.appendOnly:
		kept := len(p.log) - min(len(p.log), w.rng.IntN(3))
		w.volumes[p.pod.name] = &volume{log: slices.Clone(p.log[:kept])}
	}
}

// load is what a process does at its start.
func (p *process) load(v *volume) {
	p.appendOnly = v == nil || !v.snapshot
	if v == nil {
		return
	}
	p.log = slices.Clone(v.log)
	if v.snapshot {
		p.id, p.offset, p.backlog, p.backlogStart = v.id, v.offset, true, v.offset
		return
	}
	for i := range p.log {
		p.log[i].offset = 0
	}
}

// write is a client's write to a process that says that it is primary.
func (w *World) write(p *process, wait bool) {
	if !p.runs() || !p.primary() || p.loading || w.now < p.pausedUntil || w.goodReplicas(p) < p.minReplicas {
		return
	}
	w.acknowledge(p, wait)
}

// acknowledge makes a write and answers it.
func (w *World) acknowledge(p *process, wait bool) {
	w.writes++
	p.append(w.writes)
	w.acknowledged[p] = append(w.acknowledged[p], w.writes)
	if !p.hung && w.goodReplicas(p) < w.strict {
		w.violated("%s acknowledged write %d with too few replicas", p, w.writes)
	}
	if p != w.last {
		w.violated("%s acknowledged write %d after %s was promoted", p, w.writes, w.last)
	}
	if wait {
		p.pod.waiting = append(p.pod.waiting, &write{id: w.writes, by: p, offset: p.offset})
	}
}

// promoted checks what a promotion must not lose.
func (w *World) promoted(p *process) {
	w.note("%s is promoted at offset %d with %d keys", p, p.offset, len(p.log))
	if w.decided {
		w.last = p
		return
	}
	w.confirmed = slices.DeleteFunc(w.confirmed, func(wr *write) bool {
		lost := !p.has(wr.id)
		for _, c := range wr.copies {
			if lost && c.alive && c.has(wr.id) {
				w.violated("%s is promoted without write %d, which WAIT confirmed and %s holds", p, wr.id, c)
			}
		}
		return lost
	})
	if last := w.last; last != nil && last != p && last.alive && !last.disturbed {
		for _, id := range w.acknowledged[last] {
			if last.has(id) && !p.has(id) {
				w.violated("%s is promoted without write %d of %s, which never failed", p, id, last)
				break
			}
		}
	}
	if p.forked {
		w.violated("%s is promoted, and its history is in no record", p)
	}
	if len(p.log) == 0 && !p.backlog { // It never was in sync with anybody.
		w.checkEmpty(p)
	}
	w.last = p
}

func (w *World) checkEmpty(p *process) {
	for _, q := range w.processes {
		// An old primary that was fenced by its lease, whose pod was deleted by force and
		// after which another was promoted, nobody can find (docs/safety-rules.md).
		lost := q.primary() && q != w.last && w.ghost(q)
		if len(q.log) > 0 && !lost && !q.givenUp && !w.unseen(q) {
			w.violated("%s is promoted empty, and %s holds data", p, q)
		}
	}
	for name, volume := range w.volumes {
		// The operator deletes the volumes of members that were removed.
		if owner := w.pods[name]; owner != nil && !owner.proc.alive && owner != p.pod && len(volume.log) > 0 {
			w.violated("%s is promoted empty, and the volume of %s holds data", p, name)
		}
	}
}

func (w *World) sortedPods() []*pod {
	var pods []*pod
	for _, p := range w.pods {
		pods = append(pods, p)
	}
	slices.SortFunc(pods, func(a, b *pod) int { return a.ordinal - b.ordinal })
	return pods
}
