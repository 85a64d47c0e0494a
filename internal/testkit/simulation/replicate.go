package simulation

import (
	"slices"

	"seang.org/operator/internal/redis"
)

// replicate does one small thing of a process's replication.
func (w *World) replicate(p *process) {
	if !p.runs() {
		return
	}
	if p.late() && p.reachable() && w.chance(4) {
		w.arrive(p)
	}
	w.notice(p)
	switch {
	case p.primary():
		if len(p.views) > 0 && w.chance(10) {
			p.offset++ // a PING to the replicas
		}
	case p.copying != nil:
		w.copy(p)
	case p.link != nil:
		w.stream(p)
	default:
		w.connect(p)
	}
}

// notice drops replicas whose connection ended.
func (w *World) notice(p *process) {
	for r, v := range p.views {
		connected := (r.link != nil && r.link.from == p && r.link.connections == p.connections) ||
			(r.copying != nil && r.copying.from == p)
		if (!connected || !r.alive) && (reach(p, r) || w.now-v.ackTime > linkTimeout) {
			delete(p.views, r)
		}
	}
}

// connect tries to continue with a partial resync, or begins a full one.
func (w *World) connect(p *process) {
	from := w.at(p.source)
	if from == nil || from == p || !from.runs() || !reach(p, from) || from.loading || (!from.primary() && !from.linkUp()) {
		return
	}
	if !from.backlog {
		from.backlog, from.id, from.secondary = true, w.newReplicationID(), ""
		from.offset++
		from.backlogStart = from.offset
	}
	if w.continues(p, from) {
		if p.id != from.id {
			p.secondary, p.secondOffset, p.id = p.id, p.offset+1, from.id
			p.dropReplicas()
		}
		w.attach(p, from, from.connections, slices.Clip(p.log))
		w.note("%s continues from %s at %d", p, from, p.offset)
		return
	}
	p.copying = &fullCopy{from: from, connections: from.connections, log: slices.Clip(from.log), offset: from.offset, id: from.id}
	from.views[p] = &view{ackTime: w.now}
	w.note("%s begins a full copy of %s at %d", p, from, from.offset)
}

// continues says that PSYNC gives a partial resync.
func (w *World) continues(p, from *process) bool {
	if !p.backlog || p.offset < from.backlogStart {
		return false
	}
	return (p.id == from.id && p.offset <= from.offset) ||
		(from.secondary != "" && p.id == from.secondary && p.offset+1 <= from.secondOffset && p.offset <= from.offset)
}

func (w *World) attach(p, from *process, connections int, log []entry) {
	p.link = &link{from: from, connections: connections, log: log, sent: p.offset, heard: w.now}
	from.views[p] = &view{online: true, ackTime: w.now}
}

// copy goes on with a full copy: it arrives, is loaded in place of the old data,
// and is followed by what was written since.
func (w *World) copy(p *process) {
	c := p.copying
	intact := c.from.alive && c.from.connections == c.connections
	switch {
	case !c.arrived && !intact:
		p.copying = nil
	case !c.arrived:
		if c.from.runs() && reach(p, c.from) && w.chance(2) {
			c.arrived, p.loading = true, true
		}
	case w.chance(2):
		p.log, p.offset, p.id, p.secondary = c.log, c.offset, c.id, ""
		p.backlog, p.backlogStart = true, c.offset
		p.loading, p.copying, p.linkDownSince, p.forked = false, nil, w.now, false
		p.dropReplicas()
		if intact && reach(p, c.from) {
			w.attach(p, c.from, c.connections, c.log)
		}
		w.note("%s has copied %s to %d", p, c.from, p.offset)
	}
}

// stream sends, applies and acknowledges.
func (w *World) stream(p *process) {
	l := p.link
	open := l.from.connections == l.connections && reach(p, l.from)
	if open && l.from.runs() && !w.chance(4) {
		l.log, l.sent, l.heard = slices.Clip(l.from.log), l.from.offset, w.now
	}
	if p.offset < l.sent && !w.chance(3) {
		w.apply(p, l)
	}
	switch v := l.from.views[p]; {
	case open && l.from.runs():
		if v != nil && !w.chance(3) {
			v.acked, v.ackTime, v.online = p.offset, w.now, true
			w.confirm(l.from)
		}
	case l.from.alive && l.from.connections == l.connections && w.now-l.heard < linkTimeout:
		// A partition or a hang: the link looks up.
	case p.offset >= l.sent || w.chance(4):
		p.link, p.linkDownSince = nil, w.now
	}
}

// apply takes some of what was sent.
func (w *World) apply(p *process, l *link) {
	goal := l.sent
	if w.chance(3) {
		goal = p.offset + w.rng.Int64N(l.sent-p.offset) + 1
	}
	next := len(p.log)
	for next < len(l.log) && l.log[next].offset <= goal {
		next++
	}
	// Positions are those of writes: an offset between two is on neither.
	if next < len(l.log) && goal != l.sent {
		goal = min(goal, l.log[next].offset-writeBytes)
	}
	p.log, p.offset = slices.Clip(l.log[:next]), max(p.offset, goal)
}

// confirm answers the WAIT 1 of clients whose write a replica acknowledged.
func (w *World) confirm(p *process) {
	if p.role != redis.RolePrimary {
		return
	}
	p.pod.waiting = slices.DeleteFunc(p.pod.waiting, func(wr *write) bool {
		if wr.by != p || !p.has(wr.id) {
			return true
		}
		for _, r := range w.processes {
			if v := p.views[r]; v != nil && v.online && v.acked >= wr.offset {
				wr.copies = append(wr.copies, r)
			}
		}
		if len(wr.copies) > 0 {
			w.confirmed = append(w.confirmed, wr)
		}
		return len(wr.copies) > 0
	})
}
