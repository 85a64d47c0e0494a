package simulation

// checkReplace checks what the replacement of a pod must not do: take the primary,
// or a second member, down.
func (w *World) checkReplace(p *pod) {
	if p.proc.alive && p.proc == w.last {
		w.violated("%s is replaced while it is the primary", p.name)
	}
	for _, other := range w.sortedPods() {
		if other != p && other.leaving && other.template == w.template {
			w.violated("%s is replaced while %s is on its way", p.name, other.name)
		}
	}
}
