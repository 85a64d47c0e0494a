package simulation

import (
	"slices"

	"seang.org/operator/api/v1alpha1"
)

// connection is one of an operator to a process. Commands that could not be delivered
// wait in it: the kernel of the operator's node sends them again, or that of a process
// that hangs keeps them, although the operator gave it up.
type connection struct {
	late []func(*process)
}

// connect makes sure that the operator is connected to a process. A new connection needs
// the Lease, and closes all others before anything is read through it (safety rule 13).
func (o *Operator) connect(p *process) error {
	if c := o.connections[p]; c != nil && slices.Contains(p.open, c) {
		return nil
	}
	if o.term != o.world.term {
		return errCrashed
	}
	c := &connection{}
	o.connections[p] = c
	if !o.rules.KeepConnections {
		p.open = nil
	}
	p.open = append(p.open, c)
	return nil
}

// reachable says that the operator and the process exchange packets, and that it reads.
func (p *process) reachable() bool { return p.runs() && !p.isolated && !p.deaf }

// on runs a command on the very process id, which refuses it while it loads. It may be
// lost on its way, or come late, and so may its reply be: then it ran all the same.
func (o *Operator) on(id v1alpha1.MemberID, command func(*process)) error {
	pod := o.world.pods[id.Pod]
	if pod == nil || pod.uid != id.PodUID || pod.proc.runID != id.RunID || !pod.proc.alive {
		return errLost
	}
	p, observed := pod.proc, o.observed
	arrives := func(p *process) {
		o.world.observed = observed
		command(p)
	}
	if !p.reachable() || o.loses(p) {
		if c := o.connections[p]; c != nil && o.world.chance(2) {
			c.late = append(c.late, arrives)
		}
		delete(o.connections, p)
		return errLost
	}
	if err := o.connect(p); err != nil {
		return err
	}
	if p.loading {
		return errLost
	}
	arrives(p)
	if o.loses(p) {
		delete(o.connections, p)
		return errLost
	}
	return nil
}

// loses breaks a connection, rarely.
func (o *Operator) loses(p *process) bool {
	if o.world.healing || !o.world.chance(60) {
		return false
	}
	o.world.note("a command to %s is lost", p)
	return true
}

// arrive delivers what is late, on every connection that is still open.
func (w *World) arrive(p *process) {
	for _, c := range p.open {
		for _, command := range c.late {
			if p.loading {
				break
			}
			w.note("a late command reaches %s", p)
			command(p)
		}
		c.late = nil
	}
}

// late says that commands are on their way to the process.
func (p *process) late() bool {
	return slices.ContainsFunc(p.open, func(c *connection) bool { return len(c.late) > 0 })
}

// overtaken pauses the operator while another leads. Then it goes on with what it had
// planned, in the belief that it leads.
func (o *Operator) overtaken() {
	w := o.world
	next := &Operator{world: w, rules: o.rules}
	next.restart()
	w.note("the operator is paused, and another leads")
	for range 1 + w.rng.IntN(8) {
		w.maybeFail(6)
		w.elapse(w.rng.IntN(60))
		next.Pass()
	}
	w.note("the operator that was paused goes on")
}

// write stores the record; false if another did since it was read.
func (o *Operator) write(record *v1alpha1.Record) bool {
	w := o.world
	if o.version != w.version {
		w.note("the record was written by another")
		return false
	}
	w.handDown(record)
	w.version++
	o.version, w.record = w.version, record.DeepCopy()
	return true
}
