package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"seang.org/operator/internal/redis"
)

// newWorld makes a cluster of 2 to 4 members that is about to be created.
func newWorld(seed uint64, traced bool) *World {
	w := &World{traced: traced, rng: rand.New(rand.NewPCG(seed, 1)), pods: map[string]*pod{}, volumes: map[string]*volume{},
		acknowledged: map[*process][]int{}}
	w.wanted = 2 + w.rng.IntN(3)
	w.persistent = w.chance(3)
	if w.chance(5) {
		w.strict, w.wanted = 1, max(w.wanted, 3)
	}
	w.failures = w.rng.IntN(7)
	w.calm = time.Duration(w.rng.IntN(3)) * 3 * time.Second
	all := []func(*process){w.kill, w.killAll, w.hang, w.isolate, w.deafen, w.deletePod, w.forceDelete, w.scale, w.roll, w.trim, w.heal, w.ask, w.fork, w.misdirect}
	for range 2 + w.rng.IntN(6) {
		w.kinds = append(w.kinds, all[w.rng.IntN(len(all))])
	}
	w.size = w.wanted
	w.note("seed %d: %d members, persistent %t, up to %d failures", seed, w.wanted, w.persistent, w.failures)
	w.createPods()
	return w
}

// elapse lets a little happen, mostly ordinary things.
func (w *World) elapse(events int) {
	for range events {
		w.now += time.Duration(w.rng.IntN(40)) * time.Millisecond
		if len(w.processes) == 0 {
			w.settlePods()
			continue
		}
		p := w.processes[w.rng.IntN(len(w.processes))]
		switch w.rng.IntN(8) {
		case 0, 1:
			for _, q := range w.processes {
				if q.primary() && !q.forked {
					w.write(q, w.chance(2))
				}
			}
		case 2:
			w.settlePods()
		default:
			w.replicate(p)
		}
	}
}

// settlePods is what kubelets and the StatefulSet controller do in time.
func (w *World) settlePods() {
	for _, p := range w.sortedPods() {
		switch {
		case p.leaving && p.proc.alive:
			w.terminate(p)
		case p.leaving:
			delete(w.pods, p.name)
			w.note("the pod object %s is gone", p.name)
		case !p.proc.alive && w.chance(3):
			w.start(p)
		}
	}
	for _, p := range slices.Backward(w.processes) {
		if w.ghost(p) && !p.isolated && w.chance(8) {
			w.end(p, "its kubelet learned that its pod is gone")
		}
	}
	if w.chance(2) {
		w.createPods()
	}
}

// ghost says that the process runs without a pod.
func (w *World) ghost(p *process) bool { return w.pods[p.pod.name] != p.pod }

// terminate is SIGTERM: writes stop until the replicas have everything, at most
// for the shutdown timeout.
func (w *World) terminate(p *pod) {
	proc := p.proc
	if p.killed && !proc.isolated {
		w.end(proc, "killed by its kubelet")
		return
	}
	if proc.hung || !w.chance(4) {
		return
	}
	if proc.pausedUntil < w.now {
		proc.pausedUntil = w.now + 20*time.Second
		return
	}
	for r, v := range proc.views {
		if r.alive && v.online && r.offset < proc.offset && !w.chance(10) {
			return
		}
	}
	w.end(proc, terminated)
}

// maybeFail lets a failure happen, rarely.
func (w *World) maybeFail(oneIn int) {
	if w.healing || w.failures == 0 || w.now < w.calm || !w.chance(oneIn) || len(w.processes) == 0 {
		return
	}
	w.failures--
	p := w.processes[w.rng.IntN(len(w.processes))]
	if w.last != nil && w.last.alive && w.chance(2) {
		p = w.last
	}
	w.kinds[w.rng.IntN(len(w.kinds))](p)
}

func (w *World) kill(p *process) {
	p.disturbed = true
	w.end(p, "killed")
	if w.persistent && w.chance(6) && w.pods[p.pod.name] == p.pod {
		delete(w.volumes, p.pod.name)
		w.note("the volume of %s is lost", p.pod.name)
	}
}

func (w *World) killAll(*process) {
	for len(w.processes) > 0 {
		w.kill(w.processes[0])
	}
}

func (w *World) hang(p *process) {
	p.hung, p.disturbed = true, true
	p.unseen = p.unseen || p.deaf || p.isolated
	w.note("%s hangs", p)
}

func (w *World) isolate(p *process) {
	p.isolated, p.disturbed = true, true
	p.unseen = p.unseen || p.hung
	w.note("%s is isolated", p)
}

func (w *World) deafen(p *process) {
	p.deaf, p.disturbed = true, true
	p.unseen = p.unseen || p.hung
	w.note("%s and the operator do not reach each other", p)
}

func (w *World) deletePod(p *process) {
	p.pod.leaving, p.pod.deletedAt, p.disturbed = true, w.now, true
	w.note("%s is deleted", p.pod.name)
}

// forceDelete removes the pod object while its process runs on: until its kubelet
// learns of it, or out of reach.
func (w *World) forceDelete(p *process) {
	if w.ghost(p) {
		return
	}
	p.disturbed, p.isolated = true, p.isolated || w.chance(2)
	p.unseen = p.unseen || p.hung
	delete(w.pods, p.pod.name)
	w.note("%s is deleted by force and runs on", p)
}

func (w *World) scale(*process) {
	w.wanted = min(4, 2+w.strict+w.rng.IntN(3))
	w.note("%d members are wanted", w.wanted)
}

// roll asks for another template; one in three does not start.
func (w *World) roll(*process) {
	w.template++
	w.broken = w.chance(3)
	w.note("template %d is wanted, broken %t", w.template, w.broken)
}

// ask is a person who wants another primary.
func (w *World) ask(*process) {
	w.moveTo = fmt.Sprintf("r-%d", w.rng.IntN(4))
	w.note("a person wants %s as primary", w.moveTo)
}

// fork is a person who makes a replica a second primary and writes to it: no promise
// holds for these writes, but that they are not discarded unasked. One mistake of a
// person is enough: the record knows one fork. In the moment of a promotion nobody
// could tell a person's from the operator's.
func (w *World) fork(p *process) {
	if w.mistaken || w.promoting() || !p.runs() || p.primary() || p.loading || !p.backlog {
		return
	}
	p.role, p.source, p.link, p.copying = redis.RolePrimary, "", nil, nil
	p.secondary, p.secondOffset, p.id = p.id, p.offset+1, w.newReplicationID()
	p.dropReplicas()
	w.mistaken = true
	p.forked, p.forkedAt, p.disturbed = true, w.now, true
	w.writes++
	p.append(w.writes)
	w.note("a person makes %s a primary and writes to it", p)
}

func (w *World) promoting() bool { return w.record != nil && w.record.ReplicationID == "" }

// misdirect is a person who has a member follow another: in a ring, if that is the primary.
func (w *World) misdirect(p *process) {
	// Whoever gives an old primary a replica that was fenced by its lease undoes that proof.
	other := w.processes[w.rng.IntN(len(w.processes))]
	undone := other.primary() && other != w.last
	if other != p && p.runs() && !p.loading && !w.mistaken && !w.promoting() && !undone {
		w.mistaken, p.disturbed = true, true
		w.follow(p, other.pod.ip)
		w.note("a person has %s follow %s", p, other)
	}
}

func (w *World) trim(p *process) {
	p.backlogStart = p.offset
	w.note("the backlog of %s is short", p)
}

// heal ends what can end by itself.
func (w *World) heal(*process) {
	w.note("the network is healed, hung processes go on")
	for _, p := range w.processes {
		early := p.hung && p.late() && w.chance(2)
		if early {
			w.arrive(p)
		}
		if p.hung && p.primary() && !p.loading && !p.unseen && !p.forked {
			// What clients sent meanwhile is served before replicas are counted. A
			// frozen node that is cut off too is the residual of docs/safety-rules.md.
			w.acknowledge(p, false)
		}
		if p.hung && p.late() {
			w.arrive(p)
		}
		p.unseen = false
		p.hung, p.deaf = false, false
		p.isolated = p.isolated && w.ghost(p)
	}
}

// healAll ends every failure, and processes that have no pod.
func (w *World) healAll() {
	w.healing = true
	w.heal(nil)
	if w.broken {
		w.template, w.broken = w.template+1, false
		w.note("a person puts the template right")
	}
	for _, p := range slices.Backward(w.processes) {
		if w.ghost(p) {
			w.end(p, "its node is gone")
		}
	}
}
