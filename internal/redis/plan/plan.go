// Package plan decides what to do to the members of one RedisCluster. It is
// pure: facts in, steps with reasons out.
//
// The algorithm. Without a record the cluster is new: once nothing can hold
// data, the first member is recorded and promoted (bootstrap.go). With one, the
// recorded primary is looked for:
//
//   - It answers as primary: the others are recorded as possible holders, then
//     told to follow it; those that reached an offset it had earlier are in
//     sync, get their label and may become primary (steady.go). What only a
//     returning member holds is kept aside first (aside.go). A leaving or
//     superfluous primary hands over to one of them (move.go), and pods of an
//     older template are replaced (roll.go).
//   - Otherwise a primary is elected (elect.go): every process that may be
//     primary is fenced, the holders are detached and their offsets read, the
//     choice is recorded, then promoted.
//   - No process that was in sync lives: the volumes decide, or the operator
//     waits and names the copy that is missing (recover.go), past which only a
//     person's decision leads (accept.go).
//
// Rules that more than one file depends on are predicates in rules.go, compared
// with docs/safety-rules.md.
package plan

import "seang.org/operator/api/v1alpha1"

// Next decides what to do now. Facts read after the steps were done, given to
// Next again, lead to no further step once all is as asked.
func Next(f Facts) Decision {
	var primary *Member
	if f.epoch() > 0 {
		primary = f.member(f.Record.Primary)
	}
	switch chosen := f.accepted(); {
	case primary != nil && primary.isPrimary() && !f.moveUndone():
		return steady(&f, primary)
	case chosen != nil:
		return accept(&f, chosen)
	case f.epoch() == 0:
		return bootstrap(&f)
	}
	return elect(&f)
}

// promotion is the record of the next epoch with to as its primary.
func promotion(f *Facts, to *Member) v1alpha1.Record {
	next := v1alpha1.Record{
		Epoch:      1,
		Primary:    to.ID(),
		ForkID:     string(to.Info.ReplicationID),
		ForkOffset: to.Info.Offset,
		MayHold:    []v1alpha1.Holder{{MemberID: to.ID(), InSync: true}},
	}
	if f.Record != nil && f.Record.Epoch > 0 {
		next.Epoch = f.Record.Epoch + 1
		previous := f.Record.Primary
		next.Previous = &previous
	}
	return next
}

// succession is the record of the next epoch with to as its primary, in which the
// other holders stay what they are.
func succession(f *Facts, to *Member, holders []v1alpha1.Holder) v1alpha1.Record {
	next := promotion(f, to)
	for _, h := range holders {
		if h.MemberID != to.ID() {
			next.MayHold = append(next.MayHold, h)
		}
	}
	return next
}
