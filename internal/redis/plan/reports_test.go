package plan

import "testing"

// TestReports has what users of other operators reported, by project and number
// (docs/field-reports.md).
func TestReports(t *testing.T) {
	detached := func(m *Member) { m.Info.LinkUp, m.Info.PrimaryHost, m.Info.PrimaryPort = false, "127.0.0.1", 1 }
	persistent := func(m *Member) { m.Persistent = true; m.Info.AppendOnly = true }
	decide(t, map[string]struct {
		facts Facts
		want  string
	}{
		"OT#1779: a replica that follows an address of before is brought back": {
			facts: facts(record(), member(0, primary(1)), member(1, replica(0)), member(2, replica(7))),
			want: `follow r-2 10.0.0.1
				wait ReplicaSyncing: r-2 copies from the primary`,
		},
		"OT#1777, OT#1719: members that follow each other in a ring are detached": {
			facts: facts(record(), member(0, replica(1)), member(1, replica(2)), member(2, replica(0))),
			want: `detach r-0
				detach r-1
				detach r-2`,
		},
		"OT#1777: all are replicas of nobody, and the most advanced is promoted": {
			facts: facts(record(), member(0, replica(0), detached), member(1, replica(0), detached, offset(120)), member(2, replica(0), detached)),
			want: `record epoch 2 of r-1, lease false, holders 1* 0 2
				promote r-1
				service r-1`,
		},
		"SPO#600: of two primaries the recorded one stays, and the other follows it": {
			facts: facts(record(), member(0, primary(2)), member(1, primary()), member(2, replica(0))),
			want: `follow r-1 10.0.0.1
				wait ReplicaSyncing: r-1 copies from the primary`,
		},
		"SPO#600: what the other has on its volume is kept aside first": {
			facts: facts(record(), member(0, primary(2), persistent), member(1, primary(), persistent, lineage("zzzz")), member(2, replica(0), persistent)),
			want: `detach r-1
				aside r-1
				wait ReplicaSyncing: r-1 saves what only it may hold in set-aside.rdb of its volume`,
		},
		"KB#10753, SPO#97, DF#302, DF#385: a primary that came back empty feeds nobody": {
			facts: facts(record(), member(0, booted, restarted), member(1, replica(0), linkDown(1)), member(2, replica(0), linkDown(1), detached)),
			want:  `detach r-1`,
		},
		"KB#10753, and once they do not follow it, another leads": {
			facts: facts(record(), member(0, booted, restarted), member(1, replica(0), linkDown(1), detached), member(2, replica(0), linkDown(1), detached)),
			want: `record epoch 2 of r-1, lease false, holders 1* 2*
				promote r-1
				service r-1`,
		},
		"DF#289: a replica that was not in sync is not promoted": {
			facts: facts(record(notInSync(1), notInSync(2)), member(0, proved(ProofTerminated)), member(1, replica(0), linkDown(9)), member(2, proved(ProofTerminated))),
			want:  "wait NoCandidate: only r-1 lives and it was not in sync with r-0: promoting it would lose acknowledged writes; bring back a pod with a newer copy, or annotate the RedisCluster with cache.seang.org/accept-data-loss: uid-1@1 to keep the data of r-1",
		},
	})
}

// TestTwoRequestsAtOnce shows that each wish of a person is answered for itself, and that
// two of them never move more than one does.
func TestTwoRequestsAtOnce(t *testing.T) {
	asked := func(moveTo, accept string, f Facts) Facts {
		f.MoveTo, f.Accept, f.Service = moveTo, accept, moveTo
		return f
	}
	whole := func() Facts {
		return facts(record(), member(0, primary(1, 2)), member(1, replica(0)), member(2, replica(0)))
	}
	decide(t, map[string]struct {
		facts Facts
		want  string
	}{
		"a move, and to keep the data of another": {facts: asked("r-2", "uid-1@1", whole()), want: `record epoch 2 of r-2, lease false, holders 2* 0* 1*, before r-0
				switchover r-0 r-2
				wait Promoting: r-0 is about to hand over to r-2
				refused: the primary r-0 lives: move it with switchover-to, or name it to discard what others hold`},
		"a move that is refused, too": {facts: asked("r-7", "uid-1@1", whole()), want: `service r-0
				refused: r-0 stays primary: r-7 is no pod of this RedisCluster
				refused: the primary r-0 lives: move it with switchover-to, or name it to discard what others hold`},
		"a move to the primary, and to keep its data": {facts: asked("r-0", "uid-0@1", whole()), want: `done: r-0 is the primary
				done: the data of r-0 is kept`},
		"a move, and a wish that cannot be read": {facts: asked("r-0", "all of it", whole()), want: `done: r-0 is the primary
				refused: "all of it" is not POD-UID@EPOCH`},
	})
}
