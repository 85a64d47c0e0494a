package simulation

import (
	"slices"

	"seang.org/operator/api/v1alpha1"
)

// checkReplace checks what the replacement of a pod must not do: take the primary,
// or a second member, down.
func (w *World) checkReplace(p *pod) {
	if p.proc.alive && p.proc == w.last {
		w.violated("%s is replaced while it is the primary", p.name)
	}
	for _, other := range w.sortedPods() {
		// What others delete after the operator looked, it cannot know.
		if other != p && other.leaving && other.deletedAt < w.observed && other.template == w.template {
			w.violated("%s is replaced while %s is on its way", p.name, other.name)
		}
	}
}

// handDown lets the copies of others stand for those of a process that has no pod, when it
// leaves the record while the epoch lasts: nobody can bring such a process back, for its
// kubelet ends it once it hears of it, so that the data is lost with the other copies and
// not by our hand. What no other process in the record has keeps it a copy.
func (w *World) handDown(next *v1alpha1.Record) {
	if w.record == nil || w.record.Epoch != next.Epoch {
		return
	}
	for _, p := range w.processes {
		if !w.ghost(p) || !holds(w.record, p) || holds(next, p) {
			continue
		}
		p.givenUp = true
		for _, wr := range w.confirmed {
			if !slices.Contains(wr.copies, p) {
				continue
			}
			heirs := w.heirs(wr, next)
			p.givenUp = p.givenUp && len(heirs) > 0
			if len(heirs) > 0 {
				wr.copies = slices.DeleteFunc(append(heirs, wr.copies...), func(c *process) bool { return c == p })
			}
		}
	}
}

// heirs are the processes in the record that have a write, and a pod.
func (w *World) heirs(wr *write, record *v1alpha1.Record) []*process {
	var heirs []*process
	for _, q := range w.processes {
		if !w.ghost(q) && holds(record, q) && q.has(wr.id) {
			heirs = append(heirs, q)
		}
	}
	return heirs
}

func holds(record *v1alpha1.Record, p *process) bool {
	return slices.ContainsFunc(record.MayHold, func(h v1alpha1.Holder) bool { return h.PodUID == p.pod.uid && h.RunID == p.runID })
}

// resize changes the number of pods, and checks what a scale-in must not do: take
// the primary.
func (w *World) resize(size int) {
	if w.last != nil && w.last.alive && w.last.pod.ordinal >= size && w.last.pod.ordinal < w.size {
		w.violated("%s is removed while it is the primary", w.last)
	}
	w.size = size
}

// unseen says that a person made the process a primary after the operator looked: that it
// cannot know.
func (w *World) unseen(p *process) bool { return p.forked && p.forkedAt >= w.observed }

// checkFollow checks that no data on a volume, or of a fork, is overwritten that nobody
// else has.
func (w *World) checkFollow(p, primary *process) {
	if w.unseen(p) || (!w.persistent && !p.forked) || p.keptAside || primary == nil || !primary.primary() || w.decided {
		return
	}
	for _, e := range p.log {
		if !primary.has(e.write) {
			w.violated("%s follows %s, and what it alone holds, write %d, is not kept aside", p, primary, e.write)
			return
		}
	}
}
