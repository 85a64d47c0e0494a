package plan

import (
	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/redis"
)

// InSync says that the replica is in sync with the primary: in the primary's
// own word, the replica acknowledged an offset that the primary had read out
// earlier in this epoch, and its link is up (safety rule 3).
func InSync(primary, m *Member) bool {
	if !m.follows(primary) || !m.Info.LinkUp || m.Info.Loading || m.SyncTarget == 0 {
		return false
	}
	seen := primary.Info.Replica(m.IP)
	return seen != nil && seen.State == redis.ReplicaOnline && seen.Offset >= m.SyncTarget
}

// MayFollow says that the member may be told to follow the primary, which
// discards what only it holds: it answers, and it holds nothing, or it is a replica,
// or a primary whose whole history the record contains, or the branch that lost at
// the recorded fork: an old primary that hung and goes on (safety rules 2 and 16).
// What a person made of it by hand it keeps, unless its volume does.
func MayFollow(record *v1alpha1.Record, m *Member) bool {
	switch {
	case !m.Answers():
		return false
	case m.Info.Keys == 0:
		return true
	case m.Info.Role == redis.RoleReplica:
		return m.Persistent || !forked(record, m)
	case record.ReplicationID != "" && string(m.Info.ReplicationID) == record.ForkID:
		return true
	}
	return holder(record, m.ID()) != nil && (m.Persistent || continues(record, m))
}

// forked says that the process left the recorded history, in this epoch or in an earlier
// one, and was written to: it was made a primary by hand.
func forked(record *v1alpha1.Record, m *Member) bool {
	if continues(record, m) {
		return false
	}
	h := holder(record, m.ID())
	return (h != nil && h.Forked) || contains(record, m.Info.SecondaryID, m.Info.BranchedAt-1)
}

// MostAdvanced is the member to promote: of those whose history the record
// contains, the one with the highest offset; of equals the recorded primary,
// then the first. It must be known to be in sync, or to have all that a holder which
// is in sync has; nil if there is none (safety rules 2, 4 and 5). A write may be
// confirmed by a member before the operator saw that it is in sync.
func MostAdvanced(record *v1alpha1.Record, members []*Member) *Member {
	var best *Member
	inSync := false
	for _, m := range members {
		if !continues(record, m) {
			continue
		}
		h := holder(record, m.ID())
		inSync = inSync || (h != nil && h.InSync)
		switch {
		case best == nil || m.Info.Offset > best.Info.Offset:
			best = m
		case m.Info.Offset == best.Info.Offset && preferred(record, m, best):
			best = m
		}
	}
	if !inSync {
		return nil
	}
	return best
}

// preferred orders members of equal offset.
func preferred(record *v1alpha1.Record, m, other *Member) bool {
	if m.Leaving != other.Leaving {
		return !m.Leaving
	}
	if other.is(record.Primary) || m.is(record.Primary) {
		return m.is(record.Primary)
	}
	return m.Ordinal < other.Ordinal
}

// continues says that the process has the history of the recorded primary, or
// the one that it continued, up to where it was promoted: what lies beyond is
// another branch, whose offsets mean something else. So is what a process wrote
// since it left the history, unless it is one of the promotion that the record awaits.
func continues(record *v1alpha1.Record, m *Member) bool {
	if contains(record, m.Info.ReplicationID, m.Info.Offset) {
		return true
	}
	awaited := record.ReplicationID == "" && (m.is(record.Primary) || (record.Previous != nil && m.is(*record.Previous)))
	return contains(record, m.Info.SecondaryID, m.Info.Offset) && (awaited || m.Info.Offset < m.Info.BranchedAt)
}

// contains says that the history is in the record, up to the offset.
func contains(record *v1alpha1.Record, id redis.ReplicationID, offset int64) bool {
	switch {
	case id == "":
	case string(id) == record.ReplicationID:
		return true
	case string(id) == record.ForkID:
		return record.ReplicationID == "" || offset <= record.ForkOffset
	}
	return false
}
