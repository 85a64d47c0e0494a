package plan

import (
	"testing"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/redis"
)

type v1Record = v1alpha1.Record

func TestBootstrap(t *testing.T) {
	old := func(m *Member) { m.OldClaim = true }
	decide(t, map[string]struct {
		facts Facts
		want  string
	}{
		"a new cluster waits a moment for members that start with the first": {
			facts: facts(nil, member(0, booted), member(1, booted), member(2)),
			want:  "wait MemberUnreachable: r-2 does not answer yet",
		},
		"it does not wait for one that cannot start": {
			facts: facts(nil, member(0, booted), member(1, booted), member(2, func(m *Member) { m.Trouble.Reason = "PodFailing" })),
			want: `record epoch 1 of r-0, lease false, holders 0* 1
				promote r-0`,
		},
		"a new cluster starts with its first member": {
			facts: func() Facts {
				f := facts(nil, member(0, booted), member(1, booted), member(2))
				f.BootingFor = bootPatience
				return f
			}(),
			want: `record epoch 1 of r-0, lease false, holders 0* 1
				promote r-0`,
		},
		"it waits for the first member":      {facts: facts(nil, member(0, noPod), member(1, booted), member(2)), want: "wait Scaling: the pod r-0 does not exist yet"},
		"a member with keys is unknown data": {facts: facts(nil, member(0, booted), member(1, booted, keys(3)), member(2)), want: "wait NoCandidate: no record says who holds the data, and r-1 has 3 keys; annotate the RedisCluster with cache.seang.org/accept-data-loss: uid-1@0 to keep the data of r-1"},
		"an older volume may hold data":      {facts: facts(nil, member(0, booted), member(1, old), member(2)), want: "wait NoCandidate: no record says who holds the data, and r-1 has an older volume that was not read yet"},
		"a member that loads may hold data":  {facts: facts(nil, member(0, booted), member(1, booted, loading), member(2)), want: "wait NoCandidate: no record says who holds the data, and r-1 loads data"},
	})
}

func TestSteady(t *testing.T) {
	wanted := func(n int, f Facts) Facts { f.Wanted = n; return f }
	renamed := func(m *Member) { m.Info.ReplicationID = "cccc" }
	full := func(m *Member) { m.Persistent, m.Info.SaveFailed, m.Info.AppendOnly = true, true, true }
	alone := func(m *Member) { m.Info.MinReplicas = 0 }
	pointed := func(pod string, f Facts) Facts { f.Service = pod; return f }
	moveTo := func(pod string, members ...Member) Facts {
		f := facts(record(), members...)
		f.MoveTo = pod
		return f
	}
	decide(t, map[string]struct {
		facts Facts
		want  string
	}{
		"a cluster that is as asked needs nothing": {
			facts: facts(record(), member(0, primary(1, 2)), member(1, replica(0)), member(2, replica(0))),
		},
		"a member that cannot load its files starts without them while a primary answers": {
			facts: facts(record(), member(0, primary(1)), member(1, replica(0)), member(2, unloadable)),
			want: `rebuild r-2
				wait DataUnreadable: r-2 cannot load its data: the files are renamed to unreadable/ on its volume, and it copies from the primary`,
		},
		"a member that cannot save is reported": {
			facts: facts(record(), member(0, primary(1, 2), full), member(1, replica(0)), member(2, replica(0))),
			want:  "wait NotSaving: r-0 cannot save to its volume, and as primary accepts no writes until it can: make room or raise spec.storage.size; its log has the error",
		},
		"a new member is recorded before it is told to follow": {
			facts: facts(record(func(r *v1Record) { r.MayHold = r.MayHold[:2] }), member(0, primary(1)), member(1, replica(0)), member(2, booted)),
			want: `record epoch 1 of r-0, lease true, holders 0* 1* 2
				follow r-2 10.0.0.1
				wait ReplicaSyncing: r-2 copies from the primary`,
		},
		"a replica whose pod is being deleted is missed until another takes its place": {
			facts: facts(record(), member(0, primary(1)), member(1, replica(0)), member(2, booted, leaving)),
			want:  "wait PodNotRunning: r-2 is being deleted and will be replaced",
		},
		"a restarted process is a new one": {
			facts: facts(record(), member(0, primary(1)), member(1, replica(0)), member(2, booted, restarted)),
			want: `record epoch 1 of r-0, lease true, holders 0* 1* 2-again
				follow r-2 10.0.0.1
				wait ReplicaSyncing: r-2 copies from the primary`,
		},
		"the ID that a primary takes with its first replica is recorded": {
			facts: facts(record(), member(0, primary(1, 2), renamed), member(1, replica(0)), member(2, replica(0))),
			want:  "record epoch 1 of r-0, lease true, holders 0* 1* 2*",
		},
		"the lease is raised once a replica is in sync": {
			facts: facts(record(noLease), member(0, primary(1, 2), alone), member(1, replica(0)), member(2, replica(0))),
			want:  "lease r-0 1",
		},
		"its end is recorded before the primary may write alone": {
			facts: facts(record(), member(0, primary()), member(1, replica(0), linkDown(9)), member(2, proved(ProofRefused))),
			want: `record epoch 1 of r-0, lease false, holders 0* 1
				lease r-0 0
				wait ReplicaSyncing: r-1 copies from the primary
				wait MemberUnreachable: r-2 does not answer yet`,
		},
		"a primary that the record does not know keeps its data": {
			facts: facts(record(func(r *v1Record) { r.MayHold = r.MayHold[:2] }), member(0, primary(1)), member(1, replica(0)), member(2, primary())),
			want: `label r-2 ""
				wait ForkedHistory: r-2 has a history that the record does not know, with 5 keys: its data is left untouched until a person decides; annotate the RedisCluster with cache.seang.org/accept-data-loss: uid-0@1 to keep the data of r-0`,
		},
		"a second primary that was made by hand, and written to, is left to a person": {
			facts: facts(record(), member(0, primary(1)), member(1, replica(0)), member(2, byHand(100))),
			want: `label r-2 ""
				wait ForkedHistory: r-2 has a history that the record does not know, with 5 keys: its data is left untouched until a person decides; annotate the RedisCluster with cache.seang.org/accept-data-loss: uid-0@1 to keep the data of r-0`,
		},
		"even once it was told to follow nobody": {
			facts: facts(record(), member(0, primary(1)), member(1, replica(0)), member(2, byHand(100), func(m *Member) { m.Info.Role = redis.RoleReplica }, detached)),
			want: `label r-2 ""
				wait ForkedHistory: r-2 has a history that the record does not know, with 5 keys: its data is left untouched until a person decides; annotate the RedisCluster with cache.seang.org/accept-data-loss: uid-0@1 to keep the data of r-0`,
		},
		"even in a later epoch (seed 763903)": {
			facts: facts(record(forkedBefore(2)), member(0, primary(1)), member(1, replica(0)), member(2, earlier)),
			want: `label r-2 ""
				wait ForkedHistory: r-2 has a history that the record does not know, with 5 keys: its data is left untouched until a person decides; annotate the RedisCluster with cache.seang.org/accept-data-loss: uid-0@1 to keep the data of r-0`,
		},
		"where it has a volume, what it has is kept aside": {
			facts: facts(record(), member(0, primary(1), persistent), member(1, replica(0), persistent), member(2, byHand(100), persistent)),
			want: `detach r-2
				aside r-2
				wait ReplicaSyncing: r-2 saves what only it may hold in set-aside.rdb of its volume`,
		},
		"where nothing was written to it, it follows": {
			facts: facts(record(), member(0, primary(1)), member(1, replica(0)), member(2, byHand(100), unwritten)),
			want: `follow r-2 10.0.0.1
				wait ReplicaSyncing: r-2 copies from the primary`,
		},
		"the Service follows the primary": {
			facts: func() Facts {
				f := facts(record(), member(0, primary(1, 2)), member(1, replica(0)), member(2, replica(0)))
				f.Service = "r-1"
				return f
			}(),
			want: "service r-0",
		},
		"a superfluous primary hands over to the lowest that stays": {
			facts: pointed("r-0", wanted(2, facts(record(func(r *v1Record) { r.Primary = id(2) }), member(0, replica(2)), member(1, replica(2)), member(2, primary(0, 1))))),
			want: `record epoch 2 of r-0, lease false, holders 0* 1* 2*, before r-2
				switchover r-2 r-0
				wait Promoting: r-2 is about to hand over to r-0`,
		},
		"a person moves the primary": {
			facts: pointed("r-2", moveTo("r-2", member(0, primary(1, 2)), member(1, replica(0)), member(2, replica(0)))),
			want: `record epoch 2 of r-2, lease false, holders 2* 0* 1*, before r-0
				switchover r-0 r-2
				wait Promoting: r-0 is about to hand over to r-2`,
		},
		"where it is already": {
			facts: moveTo("r-0", member(0, primary(1, 2)), member(1, replica(0)), member(2, replica(0))),
			want:  "done: r-0 is the primary",
		},
		"not to a pod that does not exist": {
			facts: moveTo("r-7", member(0, primary(1, 2)), member(1, replica(0)), member(2, replica(0))),
			want:  "refused: r-0 stays primary: r-7 is no pod of this RedisCluster",
		},
		"not to a pod that is not in sync": {
			facts: moveTo("r-2", member(0, primary(1, 2)), member(1, replica(0)), member(2, replica(0), func(m *Member) { m.SyncTarget = 101 })),
			want: `wait ReplicaSyncing: r-2 copies from the primary
				refused: r-0 stays primary: r-2 is not in sync`,
		},
		"not to a pod that does not answer": {
			facts: moveTo("r-2", member(0, primary(1)), member(1, replica(0)), member(2)),
			want: `wait MemberUnreachable: r-2 does not answer yet
				refused: r-0 stays primary: r-2 does not answer`,
		},
		"not to a pod that leaves": {
			facts: moveTo("r-2", member(0, primary(1, 2)), member(1, replica(0)), member(2, replica(0), leaving)),
			want: `wait PodNotRunning: r-2 is being deleted and will be replaced
				refused: r-0 stays primary: r-2 is being removed`,
		},
		"a copy is complete once it is on the volume": {
			facts: facts(record(), member(0, primary(1, 2)), member(1, replica(0), func(m *Member) { m.Serving, m.Info.Rewriting = false, true }), member(2, replica(0), func(m *Member) { m.Info.Rewriting = true })),
			want:  "wait ReplicaSyncing: r-1 writes its copy to its volume",
		},
		"a leaving primary hands over": {
			facts: pointed("r-1", facts(record(), member(0, primary(1, 2), leaving), member(1, replica(0)), member(2, replica(0)))),
			want: `record epoch 2 of r-1, lease false, holders 1* 0* 2*, before r-0
				switchover r-0 r-1
				wait Promoting: r-0 is about to hand over to r-1`,
		},
		"to nobody that is not in sync": {
			facts: facts(record(notInSync(1)), member(0, primary(1), leaving), member(1, replica(0), func(m *Member) { m.SyncTarget = 101 }), member(2, leaving)),
			want: `record epoch 1 of r-0, lease false, holders 0* 1 2
				lease r-0 0
				wait ReplicaSyncing: r-1 copies from the primary
				wait MemberUnreachable: r-2 does not answer yet`,
		},
	})
}

func TestInSync(t *testing.T) {
	for name, c := range map[string]struct {
		primary, replica func(*Member)
		want             bool
	}{
		"it acknowledged an earlier offset of the primary":        {want: true},
		"its link is up, and it has not acknowledged that offset": {primary: func(m *Member) { m.Info.Replicas[0].Offset = 89 }},
		"the primary does not see it":                             {primary: func(m *Member) { m.Info.Replicas = nil }},
		"it is not online yet":                                    {primary: func(m *Member) { m.Info.Replicas[0].State = "wait_bgsave" }},
		"an old connection from its address is ahead of its own":  {primary: func(m *Member) { m.Info.Replicas = append(m.Info.Replicas, redis.Replica{IP: ip(1), State: "online"}) }},
		"no offset of the primary was read since it began":        {replica: func(m *Member) { m.SyncTarget = 0 }},
		"its link is down":                                        {replica: linkDown(0)},
		"it loads":                                                {replica: loading},
		"it follows another":                                      {replica: func(m *Member) { m.Info.PrimaryHost = ip(2) }},
		"it follows another port at the address":                  {replica: func(m *Member) { m.Info.PrimaryPort = 1 }},
		"it is a primary itself":                                  {replica: func(m *Member) { m.Info.Role = redis.RolePrimary }},
		"it does not answer":                                      {replica: func(m *Member) { m.Info = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			p, r := member(0, primary(1)), member(1, replica(0))
			if c.primary != nil {
				c.primary(&p)
			}
			if c.replica != nil {
				c.replica(&r)
			}
			if got := InSync(&p, &r); got != c.want {
				t.Errorf("InSync is %t, want %t", got, c.want)
			}
		})
	}
}

func TestMayFollow(t *testing.T) {
	for name, c := range map[string]struct {
		member Member
		want   bool
	}{
		"a replica may":                                         {member(2, booted, keys(4)), true},
		"an empty primary may":                                  {member(2, primary(), restarted, keys(0)), true},
		"a primary that the record knows may":                   {member(2, primary()), true},
		"a primary with keys of its own may not":                {member(2, primary(), restarted), false},
		"the old primary of the recorded fork, which hung, may": {member(2, primary(), restarted, lineage(fork)), true},
		"a process that loads may not":                          {member(2, booted, loading), false},
		"a process that does not answer may not":                {member(2), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := MayFollow(record(), &c.member); got != c.want {
				t.Errorf("MayFollow is %t, want %t", got, c.want)
			}
		})
	}
}

func TestMostAdvanced(t *testing.T) {
	for name, c := range map[string]struct {
		record  *v1alpha1.Record
		members []Member
		want    string
	}{
		"the highest offset wins":                        {record(), []Member{member(1, replica(0)), member(2, replica(0), offset(101))}, "r-2"},
		"of equals the recorded primary":                 {record(func(r *v1Record) { r.Primary = id(2) }), []Member{member(1, replica(0)), member(2, replica(0))}, "r-2"},
		"of equals the first":                            {record(), []Member{member(2, replica(0)), member(1, replica(0))}, "r-1"},
		"of equals one that stays":                       {record(), []Member{member(1, replica(0), leaving), member(2, replica(0))}, "r-2"},
		"another history is not compared":                {record(), []Member{member(1, replica(0), offset(999), lineage("zzzz")), member(2, replica(0))}, "r-2"},
		"the history before the fork is, up to the fork": {record(), []Member{member(1, replica(0), offset(10), lineage(fork))}, "r-1"},
		"beyond the fork it is another branch":           {record(), []Member{member(1, replica(0), offset(999), lineage(fork)), member(2, replica(0))}, "r-2"},
		"a process that is no holder is none":            {record(), []Member{member(1, replica(0), restarted)}, ""},
		"none is in sync":                                {record(notInSync(1), notInSync(2)), []Member{member(1, replica(0)), member(2, replica(0))}, ""},
		"there is none":                                  {record(), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var holders []*Member
			for i := range c.members {
				holders = append(holders, &c.members[i])
			}
			got := ""
			if m := MostAdvanced(c.record, holders); m != nil {
				got = m.Pod
			}
			if got != c.want {
				t.Errorf("MostAdvanced is %q, want %q", got, c.want)
			}
		})
	}
}

func TestRemovable(t *testing.T) {
	for name, c := range map[string]struct {
		facts Facts
		want  bool
	}{
		"with a replica in sync that stays": {facts(record(), member(0, primary(1, 2)), member(1, replica(0)), member(2, replica(0))), true},
		"not the last one in sync":          {facts(record(), member(0, primary(2)), member(1, replica(0)), member(2, replica(0))), false},
		"not the primary":                   {facts(record(func(r *v1Record) { r.Primary = id(2) }), member(0, replica(2)), member(1, replica(2)), member(2, primary(0, 1))), false},
		"not while no primary answers":      {facts(record(), member(0), member(1, replica(0)), member(2, replica(0))), false},
	} {
		t.Run(name, func(t *testing.T) {
			c.facts.Wanted = 2
			if got := Next(c.facts).Removable; got != c.want {
				t.Errorf("Removable is %t, want %t", got, c.want)
			}
		})
	}
}
