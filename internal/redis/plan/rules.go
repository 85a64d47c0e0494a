package plan

import (
	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/redis"
)

// InSync says that the replica is in sync with the primary: in the primary's
// own word, the replica acknowledged an offset that the primary had read out
// earlier in this epoch, and its link is up (safety rule 3).
func InSync(primary, m *Member) bool {
	if !m.follows(primary.IP) || !m.Info.LinkUp || m.Info.Loading || m.SyncTarget == 0 {
		return false
	}
	seen := primary.Info.Replica(m.IP)
	return seen != nil && seen.State == redis.ReplicaOnline && seen.Offset >= m.SyncTarget
}

// MayFollow says that the member may be told to follow the primary, which
// discards what only it holds: it answers, and it is either a replica, or a
// primary that holds nothing, or one whose whole history the record contains,
// or the branch that lost at the recorded fork: an old primary that hung and
// goes on (safety rules 2 and 16).
func MayFollow(record *v1alpha1.Record, m *Member) bool {
	if !m.Answers() {
		return false
	}
	if m.Info.Role == redis.RoleReplica || m.Info.Keys == 0 {
		return true
	}
	lost := record.ReplicationID != "" && string(m.Info.ReplicationID) == record.ForkID
	return lost || holder(record, m.ID()) != nil
}

// MostAdvanced is the holder to promote: of those whose history the record
// contains, the one with the highest offset; of equals the recorded primary,
// then the first. It must be known to be in sync, or to have all that one which
// is in sync has; nil if there is none (safety rules 2, 4 and 5). A write may be
// confirmed by a holder before the operator saw that it is in sync.
func MostAdvanced(record *v1alpha1.Record, holders []*Member) *Member {
	var best *Member
	inSync := false
	for _, m := range holders {
		h := holder(record, m.ID())
		if h == nil || !continues(record, m.Info) {
			continue
		}
		inSync = inSync || h.InSync
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
// another branch, whose offsets mean something else.
func continues(record *v1alpha1.Record, info *redis.Info) bool {
	for _, id := range []redis.ReplicationID{info.ReplicationID, info.SecondaryID} {
		switch {
		case id == "":
		case string(id) == record.ReplicationID:
			return true
		case string(id) == record.ForkID:
			return record.ReplicationID == "" || info.Offset <= record.ForkOffset
		}
	}
	return false
}
