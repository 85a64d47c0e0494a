package simulation

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"seang.org/operator/internal/redis/plan"
)

// Operator executes the planner's decisions on the world, as package controllers
// does on the real one.
type Operator struct {
	world *World
	// term in which it leads; with another's it leads no longer.
	term        int
	connections map[*process]*connection
	version     int           // of the record, as read or written last
	observed    time.Duration // when it looked last
	pods        map[types.UID]*memory
	marks       plan.Marks
	// wanted is the number of members that the last pass worked for.
	wanted int
	// Since when each holds, and -1 while it does not.
	detachedSince, silentSince, bootingSince time.Duration
	rules                                    Rules
}

// memory is what the operator remembers of a pod.
type memory struct {
	proof   plan.Proof
	runID   string
	serving bool
	kept    bool
	// hangsSince when it was first seen to hang; -1 while it does not.
	hangsSince time.Duration
}

// errLost ends a pass: the process is not the one that was planned for, or its
// connection broke.
var errLost = errors.New("lost")

// errCrashed ends a pass and the operator's memory with it.
var errCrashed = errors.New("the operator crashed")

// restart is the start of a new process, which leads.
func (o *Operator) restart() {
	o.world.term++
	o.term, o.connections = o.world.term, map[*process]*connection{}
	o.pods, o.marks, o.detachedSince, o.silentSince, o.bootingSince = map[types.UID]*memory{}, plan.Marks{}, -1, -1, -1
}

func (o *Operator) pod(uid types.UID) *memory {
	if o.pods[uid] == nil {
		o.pods[uid] = &memory{hangsSince: -1}
	}
	return o.pods[uid]
}

// interlude is what may happen between any two steps: nothing, little, a stall,
// a failure, or the end of the operator.
func (o *Operator) interlude() error {
	w := o.world
	w.maybeFail(12)
	switch {
	case w.chance(2):
	case w.chance(20):
		w.note("the operator stalls")
		w.elapse(60)
		w.maybeFail(3)
		w.elapse(100)
	default:
		w.elapse(w.rng.IntN(4))
	}
	if !w.healing && w.chance(80) {
		if w.chance(2) {
			return errCrashed
		}
		o.overtaken()
	}
	return nil
}

// Pass observes, decides and acts, at most four times.
func (o *Operator) Pass() plan.Decision {
	var d plan.Decision
	if o.term != o.world.term {
		o.restart()
	}
	for range 4 {
		var err error
		if d, err = o.round(); err != nil {
			if errors.Is(err, errCrashed) {
				o.world.note("%v", err)
				o.restart()
			}
			return d
		}
		if len(d.Steps) == 0 {
			break
		}
	}
	if d.Record != nil && !o.write(d.Record) {
		return d
	}
	for _, a := range d.Answers {
		switch a.Request {
		case plan.RequestSwitchover:
			o.world.moveTo = ""
		case plan.RequestAcceptDataLoss:
			o.world.accept = ""
		}
	}
	o.replaceBroken()
	if o.interlude() == nil && o.mayResize(d) {
		o.world.resize(o.wanted)
	}
	return d
}

// mayResize says that members can be added, or removed by an operator that still leads.
func (o *Operator) mayResize(d plan.Decision) bool {
	return o.world.size <= o.wanted || (d.Removable && o.term == o.world.term)
}

// replaceBroken deletes pods of an older template that cannot start.
func (o *Operator) replaceBroken() {
	for _, p := range o.world.sortedPods() {
		if p.broken && p.template != o.world.template {
			p.leaving = true
		}
	}
}

func (o *Operator) round() (plan.Decision, error) {
	facts, err := o.observe()
	if err != nil {
		return plan.Decision{}, err
	}
	if o.rules.Facts != nil {
		o.rules.Facts(&facts)
	}
	d := plan.Next(facts)
	if o.rules.Decision != nil {
		o.rules.Decision(&facts, &d)
	}
	for _, step := range d.Steps {
		if err := o.interlude(); err != nil {
			return d, err
		}
		if err := o.do(step); err != nil {
			return d, err
		}
	}
	return d, nil
}

// observe gathers the facts, one member after the other.
func (o *Operator) observe() (plan.Facts, error) {
	w := o.world
	o.wanted, o.observed, o.version = w.wanted, w.now, w.version
	f := plan.Facts{Wanted: w.wanted, MoveTo: w.moveTo, Accept: w.accept, MinReplicas: w.strict, Persistent: w.persistent, Service: w.service, Gone: map[types.UID]plan.Proof{}, Record: w.record.DeepCopy()}
	pods := w.sortedPods()
	present := map[types.UID]bool{}
	for _, p := range pods {
		f.Members = append(f.Members, plan.Member{Pod: p.name, PodUID: p.uid, Ordinal: p.ordinal, IP: p.ip, Leaving: p.leaving, Killed: p.killed, Role: p.role,
			Outdated: p.template != w.template, Persistent: w.persistent})
		present[p.uid] = true
	}
	for ordinal := range w.wanted {
		if name := fmt.Sprintf("r-%d", ordinal); w.pods[name] == nil {
			f.Members = append(f.Members, plan.Member{Pod: name, Ordinal: ordinal})
		}
	}
	slices.SortFunc(f.Members, func(a, b plan.Member) int { return a.Ordinal - b.Ordinal })
	for _, suspect := range []bool{true, false} {
		for i := range f.Members {
			if m := &f.Members[i]; m.PodUID != "" && f.MayAcceptWrites(m) == suspect {
				if err := o.interlude(); err != nil {
					return f, err
				}
				if err := o.ask(m, pods); err != nil {
					return f, err
				}
			}
		}
	}
	o.marks.Apply(&f)
	for uid, p := range o.pods {
		if !present[uid] {
			f.Gone[uid] = p.proof
		}
	}
	f.ProxiesIdle, f.ProxiesFollowed = !w.chance(3), !w.chance(3)
	f.SilentFor = o.since(&o.silentSince, f.Silent())
	f.BootingFor = o.since(&o.bootingSince, f.Booting())
	f.DetachedFor = o.since(&o.detachedSince, f.Detached())
	return f, nil
}

func (o *Operator) since(start *time.Duration, holds bool) time.Duration {
	switch {
	case !holds:
		*start = -1
		return 0
	case *start < 0:
		*start = o.world.now
	}
	return o.world.now - *start
}

// ask reads INFO, or finds out why it cannot. The only error is that another leads.
func (o *Operator) ask(m *plan.Member, pods []*pod) error {
	i := slices.IndexFunc(pods, func(p *pod) bool { return p.uid == m.PodUID })
	pod, remembered := pods[i], o.pod(m.PodUID)
	p := pod.proc
	switch {
	case p.isolated || p.deaf:
		delete(o.connections, p)
	case p.hung:
		m.Hangs = true
		delete(o.connections, p)
	case p.alive:
		if err := o.connect(p); err != nil {
			return err
		}
		m.Info = o.world.info(p)
		if remembered.runID != p.runID {
			*remembered = memory{runID: p.runID}
		}
		remembered.proof, remembered.hangsSince = plan.NotProved, -1
		m.Serving, m.KeptAside = remembered.serving, remembered.kept
		return nil
	case pod.leaving:
		m.Proof = plan.ProofTerminated
	default:
		m.Proof = plan.ProofRefused
	}
	if m.Proof == plan.NotProved {
		m.Proof = remembered.proof
	}
	remembered.proof, m.HangsFor = m.Proof, o.since(&remembered.hangsSince, m.Hangs)
	return nil
}
