package plan

import (
	"slices"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
)

// StalenessLimit in seconds bounds how old a read at a replica of the replicas' Service
// can be, as long as another replica is in sync.
const StalenessLimit = 10

// withdraw takes a replica out of the replicas' Service whose data may be too old to be
// read, unless no other is there.
func withdraw(f *Facts, d *Decision, primary, m *Member) {
	if m.Role != naming.RoleReplica || m.Leaving || !behind(primary, m) {
		return
	}
	if slices.ContainsFunc(f.Members, func(other Member) bool { return other.Role == naming.RoleReplica && InSync(primary, &other) }) {
		label(d, m, "")
	}
}

// behind says that the replica may lack what the primary acknowledged StalenessLimit ago.
func behind(primary, m *Member) bool {
	seen := primary.Info.Replica(m.IP)
	switch {
	case m.Info != nil && !m.Info.LinkUp:
		return m.Info.LinkDownSeconds > StalenessLimit
	case seen == nil:
		return m.Info == nil
	}
	return seen.Lag > StalenessLimit
}

// serve lets a member that has its data answer reads from then on, once a restart
// would find the data too.
func serve(d *Decision, m *Member, why Why) {
	switch {
	case m.Persistent && !m.Info.AppendOnly:
		d.step(AppendOnly{Why: "it started from a snapshot, which later writes are not in", Member: m.ID()})
	case m.Serving:
	case m.Info.Rewriting:
		// Until its first append-only file is complete, a restart would find
		// nothing, and Redis refuses to end at a SIGTERM (measured).
		d.wait(Wait{Reason: v1alpha1.ReasonReplicaSyncing, Poll: true, Message: m.Pod + " writes its copy to its volume"})
	default:
		d.step(Serve{Why: why, Member: m.ID()})
	}
}
