package plan

import (
	"testing"

	"seang.org/operator/api/v1alpha1"
)

func TestRoll(t *testing.T) {
	old := func(m *Member) { m.Outdated = true }
	onVolume := func(m *Member) { m.Persistent = true }
	broken := func(m *Member) {
		m.Trouble = Wait{Reason: v1alpha1.ReasonImageNotPulled, Message: m.Pod + " has no image"}
	}
	inOrder := func(f Facts) Facts { f.InOrder = true; return f }
	pointed := func(pod string, f Facts) Facts { f.Service = pod; return f }
	lost := func(ordinal int) *v1Record {
		return record(func(r *v1Record) { r.MayHold = append(r.MayHold[:ordinal], r.MayHold[ordinal+1:]...) })
	}
	decide(t, map[string]struct {
		facts Facts
		want  string
	}{
		"replicas come first": {
			facts: facts(record(), member(0, primary(1, 2), old), member(1, replica(0), old), member(2, replica(0), old)),
			want: `replace r-1
				wait Rolling: 3 of 3 pods were made from an older template and are replaced one at a time`,
		},
		"the next waits until the one before is back": {
			facts: facts(lost(1), member(0, primary(2), old), member(1, noPod), member(2, replica(0), old)),
			want: `wait Scaling: the pod r-1 does not exist yet
				wait Rolling: 2 of 3 pods were made from an older template and are replaced one at a time`,
		},
		"and until it is in sync": {
			facts: facts(record(notInSync(1)), member(0, primary(2), old), member(1, replica(0)), member(2, replica(0), old)),
			want: `wait ReplicaSyncing: r-1 copies from the primary
				wait Rolling: 2 of 3 pods were made from an older template and are replaced one at a time`,
		},
		"the primary hands over before its turn": {
			facts: pointed("r-1", facts(record(), member(0, primary(1, 2), old), member(1, replica(0)), member(2, replica(0)))),
			want: `record epoch 2 of r-1, lease false, holders 1* 0* 2*, before r-0
				switchover r-0 r-1
				wait Rolling: 1 of 3 pods were made from an older template and are replaced one at a time
				wait Promoting: r-0 is about to hand over to r-1`,
		},
		"a revision that does not come up stops the roll": {
			facts: facts(lost(1), member(0, primary(2), old), member(1, broken), member(2, replica(0), old)),
			want: `wait ImageNotPulled: r-1 has no image
				wait Rolling: 2 of 3 pods were made from an older template and are replaced one at a time`,
		},
		"and is the first to go once another is wanted": {
			facts: facts(record(notInSync(1)), member(0, primary(2)), member(1, booted, old), member(2, replica(0))),
			want: `follow r-1 10.0.0.1
				wait ReplicaSyncing: r-1 copies from the primary
				wait Rolling: 1 of 3 pods were made from an older template and are replaced one at a time`,
		},
		"but none while the primary is being deleted, which needs every copy (simulation)": {
			facts: facts(record(notInSync(1)), member(0, primary(2), leaving), member(1, replica(0), old, linkDown(9), unserved), member(2, replica(0), old, linkDown(9))),
			want: `record epoch 1 of r-0, lease false, holders 0* 1 2
				lease r-0 0
				wait ReplicaSyncing: r-1 copies from the primary
				wait ReplicaSyncing: r-2 copies from the primary
				wait Rolling: 2 of 3 pods were made from an older template and are replaced one at a time`,
		},
		"also if it never comes into sync": {
			facts: facts(record(notInSync(1)), member(0, primary(2)), member(1, replica(0), old, linkDown(9), unserved), member(2, replica(0))),
			want: `replace r-1
				wait ReplicaSyncing: r-1 copies from the primary
				wait Rolling: 1 of 3 pods were made from an older template and are replaced one at a time`,
		},
		"but not while another is on its way": {
			facts: facts(record(notInSync(1)), member(0, primary(2)), member(1, replica(0), old, linkDown(9), unserved), member(2, replica(0), leaving)),
			want: `record epoch 1 of r-0, lease false, holders 0* 1 2*
				lease r-0 0
				wait ReplicaSyncing: r-1 copies from the primary
				wait PodNotRunning: r-2 is being deleted and will be replaced
				wait Rolling: 1 of 3 pods were made from an older template and are replaced one at a time`,
		},
		"where volumes are added, the lowest ordinal comes first, and the primary hands over for it": {
			facts: inOrder(facts(record(), member(0, primary(1, 2), old), member(1, replica(0), old), member(2, replica(0), old))),
			want: `service r-1
				wait Rolling: 3 of 3 pods were made from an older template and are replaced one at a time
				wait Promoting: r-0 is about to hand over to r-1`,
		},
		"and one that the StatefulSet cannot make before holds nothing up": {
			facts: inOrder(facts(lost(2), member(0, primary(1), old), member(1, replica(0), old), member(2, noPod))),
			want: `service r-1
				wait Scaling: the pod r-2 does not exist yet
				wait Rolling: 2 of 3 pods were made from an older template and are replaced one at a time
				wait Promoting: r-0 is about to hand over to r-1`,
		},
		"the last replica that is in sync leaves the primary its writes": {
			facts: facts(record(func(r *v1Record) { r.MayHold = r.MayHold[:2] }), member(0, primary(1)), member(1, replica(0), leaving)),
			want: `record epoch 1 of r-0, lease false, holders 0* 1*
				lease r-0 0
				wait PodNotRunning: r-1 is being deleted and will be replaced`,
		},
		"a member that started from a snapshot gets its append-only file": {
			facts: facts(record(), member(0, primary(1, 2)), member(1, replica(0)), member(2, replica(0), onVolume)),
			want:  "append r-2",
		},
	})
}

func unserved(m *Member) { m.Serving, m.Role = false, "" }
