package plan

import (
	"testing"
	"time"

	"seang.org/operator/internal/naming"
)

// Reads at the replicas' Service are of bounded staleness, and a replica that hangs does
// not hang for ever.
func TestReads(t *testing.T) {
	lag := func(ordinal int, seconds int64) func(*Member) {
		return func(m *Member) {
			for i := range m.Info.Replicas {
				if m.Info.Replicas[i].IP == ip(ordinal) {
					m.Info.Replicas[i].Lag = seconds
				}
			}
		}
	}
	labelled := func(m *Member) { m.Role = naming.RoleReplica }
	hangs := func(d time.Duration) func(*Member) {
		return func(m *Member) { m.Role, m.Hangs, m.HangsFor = naming.RoleReplica, true, d }
	}
	killed := func(m *Member) { m.Killed = true }
	const (
		copies  = "wait ReplicaSyncing: r-2 copies from the primary"
		nothing = "wait MemberUnreachable: r-2 does not answer yet"
	)
	decide(t, map[string]struct {
		facts Facts
		want  string
	}{
		"a link that is down for a moment changes nothing": {
			facts: facts(record(), member(0, primary(1)), member(1, replica(0)), member(2, replica(0), linkDown(2))),
			want:  copies,
		},
		"one that is down for long is not read from any more": {
			facts: facts(record(notInSync(2)), member(0, primary(1)), member(1, replica(0)), member(2, replica(0), linkDown(StalenessLimit+1))),
			want:  "label r-2 \"\"\n" + copies,
		},
		"unless it is the last": {
			facts: facts(record(notInSync(1), notInSync(2)), member(0, primary(), func(m *Member) { m.Info.MinReplicas = 0 }),
				member(1, replica(0), linkDown(StalenessLimit+1)), member(2, replica(0), linkDown(StalenessLimit+1))),
			want: "wait ReplicaSyncing: r-1 copies from the primary\n" + copies,
		},
		"one that is silent, which the primary still hears, is": {
			facts: facts(record(), member(0, primary(1, 2)), member(1, replica(0)), member(2, labelled)),
			want:  nothing,
		},
		"until the primary has not heard it for long": {
			facts: facts(record(), member(0, primary(1, 2), lag(2, StalenessLimit+1)), member(1, replica(0)), member(2, labelled)),
			want:  "label r-2 \"\"\n" + nothing,
		},
		"or dropped it": {
			facts: facts(record(), member(0, primary(1)), member(1, replica(0)), member(2, labelled)),
			want:  "label r-2 \"\"\n" + nothing,
		},
		"a pod that is deleted needs no label": {
			facts: facts(record(), member(0, primary(1)), member(1, replica(0)), member(2, labelled, leaving)),
			want:  nothing,
		},
		"one that hangs is given time": {
			facts: facts(record(), member(0, primary(1, 2)), member(1, replica(0)), member(2, hangs(ReplicaHangLimit-1))),
			want:  nothing,
		},
		"and then its process is killed": {
			facts: facts(record(), member(0, primary(1, 2)), member(1, replica(0)), member(2, hangs(ReplicaHangLimit))),
			want:  "kill r-2\n" + nothing,
		},
		"once": {
			facts: facts(record(), member(0, primary(1, 2)), member(1, replica(0)), member(2, hangs(ReplicaHangLimit), killed)),
			want:  nothing,
		},
	})
	if StalenessLimit*time.Second >= ReplicaHangLimit {
		t.Error("a replica is killed before reads leave it")
	}
}
