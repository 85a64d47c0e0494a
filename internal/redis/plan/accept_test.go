package plan

import "testing"

func TestAccept(t *testing.T) {
	accepting := func(value string, f Facts) Facts { f.Accept = value; return f }
	forked := facts(record(func(r *v1Record) { r.MayHold = r.MayHold[:2] }), member(0, primary(1)), member(1, replica(0)), member(2, primary()))
	silent := facts(record(), member(0), member(1, replica(0), linkDown(9)), member(2))
	unknown := facts(nil, member(0, booted), member(1, booted, keys(3)), member(2, booted))
	whole := facts(record(), member(0, primary(1, 2)), member(1, replica(0)), member(2, replica(0)))
	decide(t, map[string]struct {
		facts Facts
		want  string
	}{
		"a person may choose a member without waiting for the others": {
			facts: accepting("uid-1@1", silent),
			want: `record epoch 2 of r-1, lease false, holders 1*
				promote r-1
				service r-1`,
		},
		"not for another epoch": {
			facts: accepting("uid-1@2", silent),
			want:  "wait Fencing: r-0 does not answer and may still accept writes: waiting for a proof that it ended, or for its lease to run out",
		},
		"nor a member that does not answer": {
			facts: accepting("uid-2@1", silent),
			want:  "wait Fencing: r-0 does not answer and may still accept writes: waiting for a proof that it ended, or for its lease to run out",
		},
		"where no record is, it is the decision of epoch 0": {
			facts: accepting("uid-1@0", unknown),
			want: `record epoch 1 of r-1, lease false, holders 1*
				promote r-1
				service r-1`,
		},
		"a fork is discarded for the primary that a person names": {
			facts: accepting("uid-0@1", forked),
			want: `record epoch 1 of r-0, lease true, holders 0* 1* 2
				follow r-2 10.0.0.1
				wait ReplicaSyncing: r-2 copies from the primary`,
		},
		"it is done once the primary has the data":     {facts: accepting("uid-0@1", whole), want: "done: the data of r-0 is kept"},
		"also where that began with another epoch":     {facts: accepting("uid-0@0", whole), want: "done: the data of r-0 is kept"},
		"it is refused where another lives as primary": {facts: accepting("uid-1@1", whole), want: "refused: the primary r-0 lives: move it with switchover-to, or name it to discard what others hold"},
		"it is refused for an epoch that is over":      {facts: accepting("uid-1@0", whole), want: "refused: it speaks of epoch 0, and this is epoch 1"},
		"it is refused where it names nothing":         {facts: accepting("yes", whole), want: `refused: "yes" is not POD-UID@EPOCH`},
		"it does not answer while something is left to do": {
			facts: accepting("uid-0@1", func() Facts { f := whole; f.Service = "r-1"; return f }()),
			want:  "service r-0",
		},
	})
}

func TestStrictDurability(t *testing.T) {
	strict := func(n int, f Facts) Facts { f.MinReplicas = n; return f }
	decide(t, map[string]struct {
		facts Facts
		want  string
	}{
		"the limit of the spec is set": {
			facts: strict(2, facts(record(), member(0, primary(1, 2)), member(1, replica(0)), member(2, replica(0)))),
			want:  "lease r-0 2",
		},
		"and never lowered": {
			facts: strict(1, facts(record(notInSync(1), notInSync(2)), member(0, primary()), member(1, noPod), member(2, noPod))),
			want: `wait Scaling: the pod r-1 does not exist yet
				wait Scaling: the pod r-2 does not exist yet`,
		},
		"but where the spec is": {
			facts: facts(record(), member(0, primary(1, 2), func(m *Member) { m.Info.MinReplicas = 2 }), member(1, replica(0)), member(2, replica(0))),
			want:  "lease r-0 1",
		},
	})
}
