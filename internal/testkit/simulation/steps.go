package simulation

import (
	"fmt"
	"strings"
	"time"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/redis"
	"seang.org/operator/internal/redis/plan"
)

// do does one step.
func (o *Operator) do(step plan.Step) error {
	w := o.world
	w.note("operator: %T %s", step, step.Reason())
	switch step := step.(type) {
	case plan.WriteRecord:
		if !o.write(&step.Record) {
			return errLost
		}
		if w.traced {
			w.note("record: %s", recordText(w.record))
		}
		return nil
	case plan.PointService:
		w.service = step.Pod
		return nil
	case plan.Label:
		if p := w.pods[step.Pod]; p != nil {
			p.role = step.Role
		}
		return nil
	case plan.Switchover:
		return o.switchover(step)
	case plan.Promote:
		return o.on(step.Member, w.promote)
	case plan.Follow:
		return o.on(step.Member, func(p *process) {
			w.checkFollow(p, w.at(step.IP))
			w.follow(p, step.IP)
		})
	case plan.Detach:
		return o.on(step.Member, func(p *process) { w.follow(p, "") })
	case plan.Serve:
		err := o.on(step.Member, func(p *process) { p.serving = true })
		o.pod(step.Member.PodUID).serving = err == nil
		return err
	case plan.Kill:
		if o.term != w.term {
			return errCrashed
		}
		if p := w.pods[step.Pod]; p != nil && p.uid == step.UID {
			p.leaving, p.killed = true, true
		}
		return nil
	case plan.Replace:
		if o.term != w.term {
			return errCrashed
		}
		if p := w.pods[step.Pod]; p != nil && p.uid == step.UID {
			w.observed = o.observed
			w.checkReplace(p)
			p.leaving = true
		}
		return nil
	case plan.KeepAside:
		err := o.on(step.Member, func(p *process) { p.keptAside = true })
		o.pod(step.Member.PodUID).kept = err == nil
		return err
	case plan.AppendOnly:
		return o.on(step.Member, func(p *process) { p.appendOnly = true })
	case plan.SetLease:
		return o.on(step.Member, func(p *process) { p.minReplicas = step.Replicas })
	}
	return fmt.Errorf("no code does the step %T", step)
}

// How long a switchover pauses writes, as in package controllers.
const switchoverPause = 2 * time.Second

// switchover is the order of safety rule 6, with an interlude after each command.
func (o *Operator) switchover(step plan.Switchover) error {
	w := o.world
	var demoted, goal int64
	var id redis.ReplicationID
	behind := false
	var commands []func() error
	on := func(id v1alpha1.MemberID, command func(*process)) {
		commands = append(commands, func() error {
			return o.on(id, command)
		})
	}
	on(step.To, func(*process) {})
	on(step.From, func(p *process) { p.pausedUntil, goal = w.now+switchoverPause, p.offset })
	commands = append(commands, func() error { return o.catchUp(step, &goal) })
	on(step.From, func(p *process) {
		w.follow(p, "")
		demoted, id = p.offset, p.id
		w.note("%s is demoted at %d", p, demoted)
	})
	on(step.From, func(p *process) { p.pausedUntil = 0 })
	on(step.To, func(p *process) { behind = p.offset < demoted || p.id != id })
	commands = append(commands, func() error {
		target := step.To
		if behind {
			target = step.From
		}
		return o.on(target, w.promote)
	})
	on(step.From, func(p *process) {
		if !behind {
			w.follow(p, step.ToIP)
		}
	})
	for _, command := range commands {
		if err := command(); err != nil {
			return err
		}
		if err := o.interlude(); err != nil {
			return err
		}
	}
	if behind {
		return errLost
	}
	w.service = step.To.Pod
	return nil
}

// catchUp waits until the target has what the old primary had when it paused.
func (o *Operator) catchUp(step plan.Switchover, goal *int64) error {
	for range 20 {
		reached := false
		if err := o.on(step.To, func(p *process) { reached = p.offset >= *goal }); err != nil {
			return err
		}
		if reached {
			return nil
		}
		o.world.elapse(5)
	}
	_ = o.on(step.From, func(p *process) { p.pausedUntil = 0 })
	return errLost
}

func recordText(r *v1alpha1.Record) string {
	var text strings.Builder
	fmt.Fprintf(&text, "epoch %d primary %s/%s id %q fork %s:%d lease %t holders", r.Epoch, r.Primary.Pod, r.Primary.RunID, r.ReplicationID, r.ForkID, r.ForkOffset, r.Lease)
	for _, h := range r.MayHold {
		fmt.Fprintf(&text, " %s/%s", h.Pod, h.RunID)
		if h.InSync {
			text.WriteString("*")
		}
	}
	return text.String()
}
