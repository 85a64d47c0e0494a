package plan

import (
	"fmt"
	"slices"

	"seang.org/operator/api/v1alpha1"
)

// roll replaces the pods that were made from an older template (rule OneAtATime):
// replicas first, by ordinal; the primary last, and not before it handed over. It
// stops while a member is not well, but for that member itself: a revision that
// does not come up is replaced by the next, or by the one before. It returns the
// member to which the primary is to move, if that is next.
func roll(f *Facts, d *Decision, record *v1alpha1.Record, primary *Member) *Member {
	outdated := f.outdated()
	if len(outdated) == 0 {
		return nil
	}
	// A primary that goes needs every copy, and its going is a disruption already.
	busy := len(d.Steps) > 0 || primary.Leaving
	next := nextToReplace(f, record, primary, outdated)
	d.wait(Wait{Reason: v1alpha1.ReasonRolling, Message: fmt.Sprintf("%d of %d pods were made from an older template and are replaced one at a time", len(outdated), f.Wanted)})
	switch {
	case busy || next == nil:
	case next != primary:
		d.step(Replace{Why: Why(next.Pod + " was made from an older template"), Pod: next.Pod, UID: next.PodUID})
	default:
		return successor(f, record, primary)
	}
	return nil
}

// outdated are the wanted members whose pod was made from an older template.
func (f *Facts) outdated() []*Member {
	var found []*Member
	for i := range f.Members {
		if m := &f.Members[i]; m.Outdated && m.Ordinal < f.Wanted {
			found = append(found, m)
		}
	}
	return found
}

// nextToReplace is the member whose turn it is, or nil while the others must come
// back first.
func nextToReplace(f *Facts, record *v1alpha1.Record, primary *Member, outdated []*Member) *Member {
	ill := f.ill(primary, outdated[0])
	for _, m := range outdated {
		switch {
		case len(ill) > 0 && !replaceable(record, m, ill):
		case m == primary && len(outdated) > 1 && !f.InOrder:
		default:
			return m
		}
	}
	return nil
}

// ill are the members, the primary aside, that are not well: superfluous, not there,
// not in sync, about to go, or with nothing on their volume yet. One that the StatefulSet
// makes only after first was replaced does not count.
func (f *Facts) ill(primary, first *Member) []*Member {
	var ill []*Member
	for i := range f.Members {
		m := &f.Members[i]
		held := f.InOrder && m.PodUID == "" && m.Ordinal > first.Ordinal
		if m != primary && !held && (m.Ordinal >= f.Wanted || !well(primary, m)) {
			ill = append(ill, m)
		}
	}
	return ill
}

func well(primary, m *Member) bool {
	return !m.Leaving && InSync(primary, m) && m.Serving
}

// replaceable says that the member is not well and holds nothing that the primary
// does not: its place is disturbed already. Others that are not well must be as
// old, or one that is coming up would be a second disturbance.
func replaceable(record *v1alpha1.Record, m *Member, ill []*Member) bool {
	for _, other := range ill {
		if !other.Outdated || other.Leaving {
			return false
		}
	}
	h := holder(record, m.ID())
	return slices.Contains(ill, m) && (h == nil || !h.InSync)
}
