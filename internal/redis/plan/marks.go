package plan

import (
	"maps"
	"slices"
	"time"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/redis"
)

// Marks are offsets of the primary that are remembered between passes, by process.
// Without them nothing is in sync until it acknowledges a newer offset.
type Marks map[v1alpha1.MemberID]mark

// mark holds for one epoch, in which offsets can be compared.
type mark struct {
	epoch int64
	// since when the process follows.
	since time.Time
	// target was read after the process began to follow; 0 if it does not.
	target int64
	// left was read when the process's pod was gone and no process without a pod
	// followed the primary; 0 if there was no such moment.
	left int64
}

// Apply brings the marks up to date with the facts, and adds them to the facts.
func (k Marks) Apply(f *Facts) {
	f.Left = map[v1alpha1.MemberID]int64{}
	if f.Record == nil {
		return
	}
	primary := f.member(f.Record.Primary)
	if primary == nil || primary.Info.Role != redis.RolePrimary {
		return
	}
	k.follow(f, primary)
	k.leave(f, primary)
	maps.DeleteFunc(k, func(id v1alpha1.MemberID, _ mark) bool {
		return f.member(id) == nil && holder(f.Record, id) == nil
	})
}

// follow marks each member that is seen to follow the primary: once it acknowledges
// the mark, it is in sync (safety rule 3).
func (k Marks) follow(f *Facts, primary *Member) {
	for i := range f.Members {
		m := &f.Members[i]
		if m.Info == nil || m == primary {
			continue
		}
		n := k[m.ID()]
		if n.epoch != f.Record.Epoch || !m.follows(primary) {
			n = mark{epoch: f.Record.Epoch}
		}
		if n.target == 0 && m.follows(primary) {
			n.target, n.since = target(f.Record, primary, m), f.Now
		}
		if !n.since.IsZero() {
			m.FollowsFor = f.Now.Sub(n.since)
		}
		k[m.ID()], m.SyncTarget = n, n.target
	}
}

// target is the offset that proves the member in sync. The record proves it for a
// process that was in sync before the operator restarted and whose link still
// stands.
func target(record *v1alpha1.Record, primary, m *Member) int64 {
	if h := holder(record, m.ID()); h != nil && h.InSync && m.Info.LinkUp {
		return 1
	}
	return max(primary.Info.Offset, 1)
}

// leave marks each holder whose pod is gone and that does not follow the primary
// any more: it confirmed nothing beyond the mark (safety rule 4).
func (k Marks) leave(f *Facts, primary *Member) {
	haunted := slices.ContainsFunc(primary.Info.Replicas, func(r redis.Replica) bool {
		return !slices.ContainsFunc(f.Members, func(m Member) bool { return m.IP == r.IP })
	})
	for _, h := range f.Record.MayHold {
		if slices.ContainsFunc(f.Members, func(m Member) bool { return m.PodUID == h.PodUID }) {
			continue
		}
		n := k[h.MemberID]
		if haunted || n.epoch != f.Record.Epoch {
			n = mark{epoch: f.Record.Epoch}
		}
		if !haunted && n.left == 0 {
			n.left = max(primary.Info.Offset, 1)
		}
		k[h.MemberID], f.Left[h.MemberID] = n, n.left
	}
}
