package plan

import (
	"slices"
	"strings"
	"testing"

	"seang.org/operator/internal/redis"
)

// TestLeft shows when a holder whose pod was deleted by force leaves the record.
func TestLeft(t *testing.T) {
	// The pod of r-2 was deleted by force; another took its name.
	successor := func(m *Member) { m.PodUID, m.IP = "uid-2b", "10.0.0.9" }
	acknowledged := func(o int64) func(*Member) {
		return func(m *Member) { m.Info.Replicas[0].Offset = o }
	}
	primaryAt := func(o int64, changes ...func(*Member)) Member {
		return member(0, append([]func(*Member){primary(1), offset(o)}, changes...)...)
	}
	haunted := func(m *Member) {
		m.Info.Replicas = append(m.Info.Replicas, redis.Replica{IP: ip(2), State: redis.ReplicaOnline, Offset: 100})
	}
	for name, c := range map[string]struct {
		looks []Member // the primary as seen, pass after pass
		epoch int64    // of the last look
		gone  bool
	}{
		"another replica has all that it can have confirmed":    {looks: []Member{primaryAt(100)}, gone: true},
		"the other replica lacks what it may have confirmed":    {looks: []Member{primaryAt(120)}},
		"later the other replica has it, the primary went on":   {looks: []Member{primaryAt(120), primaryAt(200, acknowledged(120))}, gone: true},
		"its process runs and follows the primary":              {looks: []Member{primaryAt(100, haunted)}},
		"it came back in between: what was read before is void": {looks: []Member{primaryAt(100), primaryAt(110, haunted), primaryAt(120)}},
		"an offset of an earlier epoch means nothing":           {looks: []Member{primaryAt(100), primaryAt(120)}, epoch: 2},
	} {
		t.Run(name, func(t *testing.T) {
			marks, left, waits := Marks{}, false, false
			for i, look := range c.looks {
				f := facts(record(), look, member(1, replica(0)), member(2, successor))
				if i == len(c.looks)-1 && c.epoch > 0 {
					f.Record.Epoch = c.epoch
				}
				marks.Apply(&f)
				f.Members[1].SyncTarget = 90
				d := Next(f)
				left = holder(d.Record, id(2)) == nil
				waits = slices.ContainsFunc(d.Waits, func(w Wait) bool { return w.Poll && strings.Contains(w.Message, "r-2, which has no pod") })
			}
			if waits == left {
				t.Errorf("looks again for it to leave: %t", waits)
			}
			if left != c.gone {
				t.Errorf("it left the record: %t, want %t", left, c.gone)
			}
		})
	}
}

// TestLeftAlone shows that a holder without a pod leaves where no replica is asked
// for: nobody else will ever have what it has.
func TestLeftAlone(t *testing.T) {
	f := facts(record(), member(0, primary()))
	f.Wanted = 1
	Marks{}.Apply(&f)
	if held := Next(f).Record.MayHold; len(held) != 1 {
		t.Errorf("holders %v, want the primary alone", held)
	}
}

func TestSyncTarget(t *testing.T) {
	down := linkDown(1)
	for name, c := range map[string]struct {
		replica func(*Member)
		notHeld bool
		want    int64
	}{
		"one that the record does not know must acknowledge what the primary has":  {replica: replica(0), notHeld: true, want: 100},
		"one that was in sync and is connected still is, for a restarted operator": {replica: replica(0), want: 1},
		"one that was in sync and is not connected must acknowledge once more":     {replica: func(m *Member) { replica(0)(m); down(m) }, want: 100},
		"one that follows nobody has none":                                         {replica: booted},
	} {
		t.Run(name, func(t *testing.T) {
			r := record()
			if c.notHeld {
				r.MayHold = r.MayHold[:1]
			}
			f := facts(r, member(0, primary(1)), member(1, c.replica))
			f.Members[1].SyncTarget = 0
			Marks{}.Apply(&f)
			if got := f.Members[1].SyncTarget; got != c.want {
				t.Errorf("target %d, want %d", got, c.want)
			}
		})
	}
}
