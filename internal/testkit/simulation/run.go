package simulation

import (
	"fmt"
	"slices"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/redis/plan"
)

// Rules falsify what the planner sees and decides, where set: so tests show that
// each rule is needed.
type Rules struct {
	Facts    func(*plan.Facts)
	Decision func(*plan.Facts, *plan.Decision)
	// KeepConnections says that a new connection leaves the earlier ones open.
	KeepConnections bool
}

// Run runs one schedule: a time with failures, then one without, at the end of
// which all must be as asked, or the plan must name what it waits for and do
// nothing more. A schedule that breaks a promise is run again for its trace.
func Run(seed uint64, rules Rules) *World {
	w := run(seed, rules, false)
	if w.violation != nil {
		w = run(seed, rules, true)
	}
	return w
}

func run(seed uint64, rules Rules, traced bool) *World {
	w := newWorld(seed, traced)
	o := &Operator{world: w, rules: rules}
	o.restart()
	for range 40 {
		if w.violation != nil {
			return w
		}
		w.maybeFail(6)
		w.elapse(w.rng.IntN(12))
		o.Pass()
	}
	w.note("all failures end")
	w.healAll()
	d := w.converge(o)
	w.missing = !w.ready
	for tries := 0; !w.ready && w.decide(d); tries++ {
		// The one that was chosen may have been about to go.
		if d = w.converge(o); tries == 3 && !w.ready {
			w.violated("a person decided, and it is not as asked")
		}
	}
	return w
}

// decide is a person who chooses the member with the most data; false if nobody is
// asked, or none can be chosen.
func (w *World) decide(d plan.Decision) bool {
	if w.violation != nil || !slices.ContainsFunc(d.Waits, needsPerson) {
		return false
	}
	var best *process
	for _, p := range w.processes {
		if best == nil || len(p.log) > len(best.log) {
			best = p
		}
	}
	if d.Primary != nil {
		best = w.last
	}
	if best == nil {
		return false
	}
	var epoch int64
	if w.record != nil {
		epoch = w.record.Epoch
	}
	w.accept, w.decided = fmt.Sprintf("%s@%d", best.pod.uid, epoch), true
	w.note("a person decides: accept-data-loss %s", w.accept)
	return true
}

// converge waits until nothing is left to do, and returns what is decided then.
func (w *World) converge(o *Operator) plan.Decision {
	var d plan.Decision
	for pass := 0; w.violation == nil; pass++ {
		w.elapse(20)
		if d = o.Pass(); settled(d) {
			w.elapse(50)
			if d = o.Pass(); settled(d) {
				break
			}
		}
		if pass == 200 {
			w.violated("it does not converge: steps %v, waits %v", d.Steps, d.Waits)
		}
	}
	w.ready = w.violation == nil && len(d.Waits) == 0
	if w.ready {
		w.checkHolders()
	}
	for _, wait := range d.Waits {
		w.note("waits: %s: %s", wait.Reason, wait.Message)
	}
	return d
}

// checkHolders finds holders in the record that will never be read: the next
// failover would wait for them.
func (w *World) checkHolders() {
	for _, h := range w.record.MayHold {
		if p := w.pods[h.Pod]; p == nil || p.uid != h.PodUID {
			w.violated("it is as asked, and %s/%s, which has no pod, may hold data", h.Pod, h.RunID)
		}
	}
}

// settled says that nothing is left to do or to expect without a person.
func settled(d plan.Decision) bool {
	if len(d.Steps) > 0 {
		return false
	}
	person := slices.ContainsFunc(d.Waits, needsPerson)
	return !slices.ContainsFunc(d.Waits, func(w plan.Wait) bool {
		// Members are not removed or replaced before those that stay are well.
		behind := person && (w.Reason == v1alpha1.ReasonScaling || w.Reason == v1alpha1.ReasonRolling)
		return !needsPerson(w) && !behind
	})
}

func needsPerson(w plan.Wait) bool {
	return w.Stuck || w.Reason == v1alpha1.ReasonNoCandidate || w.Reason == v1alpha1.ReasonFencing
}
