package simulation

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
