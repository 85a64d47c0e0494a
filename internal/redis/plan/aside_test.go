package plan

import "testing"

func TestKeepAside(t *testing.T) {
	volume := func(m *Member) { m.Persistent = true }
	full := func(m *Member) { m.Info.Keys, m.Info.AppendOnly = 7, true }
	kept := func(m *Member) { m.KeptAside = true }
	back := record(func(r *v1Record) { r.MayHold = r.MayHold[:2] })
	with := func(changes ...func(*Member)) Facts {
		return facts(back, member(0, primary(1)), member(1, replica(0)), member(2, append([]func(*Member){booted, restarted, volume, full}, changes...)...))
	}
	accepting := func(f Facts) Facts { f.Accept = "uid-0@1"; return f }
	const recorded = "record epoch 1 of r-0, lease true, holders 0* 1* 2-again\n"
	decide(t, map[string]struct {
		facts Facts
		want  string
	}{
		"a member whose volume has another history saves it before it follows": {facts: with(),
			want: recorded + "aside r-2\nwait ReplicaSyncing: r-2 saves what only it may hold in set-aside.rdb of its volume"},
		"and waits for the end of that": {facts: with(kept, func(m *Member) { m.Info.Saving = true }),
			want: recorded + "wait ReplicaSyncing: r-2 saves what only it may hold in set-aside.rdb of its volume"},
		"it does not follow where that fails": {facts: with(kept, func(m *Member) { m.Info.SaveFailed = true }),
			want: recorded + "wait NotKeptAside: r-2 cannot save the 7 keys that only it may hold: make room on its volume, or annotate the RedisCluster with cache.seang.org/accept-data-loss: uid-0@1 to keep the data of r-0"},
		"but where a person decides so": {facts: accepting(with()),
			want: recorded + "follow r-2 10.0.0.1\nwait ReplicaSyncing: r-2 copies from the primary"},
		"it follows once it has": {facts: with(kept),
			want: recorded + "follow r-2 10.0.0.1\nwait ReplicaSyncing: r-2 copies from the primary"},
		"one with the recorded history saves nothing": {facts: with(lineage(history)),
			want: recorded + "follow r-2 10.0.0.1\nwait ReplicaSyncing: r-2 copies from the primary"},
		"nor does an empty one": {facts: with(keys(0)),
			want: recorded + "follow r-2 10.0.0.1\nwait ReplicaSyncing: r-2 copies from the primary"},
		"an old primary that goes on is demoted first": {
			facts: facts(record(), member(0, primary(1)), member(1, replica(0)), member(2, primary(), lineage(fork), volume, full)),
			want: `detach r-2
				aside r-2
				wait ReplicaSyncing: r-2 saves what only it may hold in set-aside.rdb of its volume`,
		},
	})
}
