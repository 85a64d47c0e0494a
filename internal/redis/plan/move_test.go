package plan

import "testing"

// The Service moves before the primary does, and kube-proxy gets the time to follow.
func TestTheServiceMovesFirst(t *testing.T) {
	asked := func(changes ...func(*Facts)) Facts {
		f := facts(record(), member(0, primary(1, 2)), member(1, replica(0)), member(2, replica(0)))
		f.MoveTo = "r-2"
		for _, change := range changes {
			change(&f)
		}
		return f
	}
	pointed := func(f *Facts) { f.Service = "r-2" }
	busy := func(f *Facts) { f.ProxiesIdle = false }
	behind := func(f *Facts) { f.ProxiesFollowed = false }
	leaves := func(f *Facts) { f.Members[0].Leaving, f.MoveTo = true, "" }
	rolling := func(f *Facts) { f.Members[1].Outdated, f.Members[2].Outdated = true, true }
	lost := func(f *Facts) { f.Members[2].Info = nil }
	const waits = "wait Promoting: r-0 is about to hand over to r-2"
	decide(t, map[string]struct {
		facts Facts
		want  string
	}{
		"the Service goes first":                          {facts: asked(), want: "service r-2\n" + waits},
		"not while kube-proxy would be slow":              {facts: asked(busy), want: waits},
		"but at once for a primary that leaves":           {facts: asked(busy, leaves), want: "service r-1\nwait Promoting: r-0 is about to hand over to r-1"},
		"the primary follows once kube-proxy has":         {facts: asked(pointed, behind), want: waits},
		"no pod is replaced meanwhile":                    {facts: asked(pointed, rolling), want: "record epoch 2 of r-2, lease false, holders 2* 0* 1*, before r-0\nswitchover r-0 r-2\n" + waits},
		"and then at once":                                {facts: asked(pointed), want: "record epoch 2 of r-2, lease false, holders 2* 0* 1*, before r-0\nswitchover r-0 r-2\n" + waits},
		"the Service goes back if nobody can be moved to": {facts: asked(pointed, lost), want: "service r-0\nwait MemberUnreachable: r-2 does not answer yet\nrefused: r-0 stays primary: r-2 does not answer"},
	})
}

// The old primary writes on until it is demoted, beyond the offset of the record (seed 449093).
func TestTheForkOfAMoveIsWhereTheNewPrimaryBranched(t *testing.T) {
	f := facts(record(moving), member(0, replica(1), lineage(history), offset(130)), member(1, primary(0), func(m *Member) {
		m.Info.ReplicationID, m.Info.SecondaryID, m.Info.BranchedAt, m.Info.Offset = "moved", history, 131, 140
	}), member(2, replica(1)))
	for _, step := range Next(f).Steps {
		if s, ok := step.(WriteRecord); ok {
			if s.Record.ForkOffset != 130 || s.Record.ReplicationID != "moved" {
				t.Errorf("the fork is recorded at %d of history %s, want 130 of moved", s.Record.ForkOffset, s.Record.ReplicationID)
			}
			return
		}
	}
	t.Error("the new primary's history is not recorded")
}
