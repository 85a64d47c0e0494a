package plan

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestRecover(t *testing.T) {
	fresh := func(n int64) []func(*Member) { return []func(*Member){booted, restarted, keys(n)} }
	volumes := func(f Facts) Facts { f.Persistent = true; return f }
	graceful := func(m *Member) { m.Info.ReplicationID, m.Info.Offset = history, 100 }
	decide(t, map[string]struct {
		facts Facts
		want  string
	}{
		"the newest copy that cannot be loaded is for a person to decide on": {
			facts: volumes(facts(record(), member(0, unloadable), member(1, fresh(6)...), member(2, fresh(7)...))),
			want:  "wait DataUnreadable: r-0, whose volume has the newest data, cannot load it (r-0 cannot load its data: Bad file format): put its files right, or annotate the RedisCluster with cache.seang.org/accept-data-loss: uid-1@1 to keep the data of r-1, or uid-2@1 to keep the data of r-2",
		},
		"without volumes, and all memory gone, the cluster starts empty": {
			facts: facts(record(), member(0, fresh(0)...), member(1, fresh(0)...), member(2, fresh(0)...)),
			want: `record epoch 2 of r-0, lease false, holders 0-again*
				promote r-0
				service r-0`,
		},
		"a member with data keeps an empty one before it from being the source": {
			facts: facts(record(), member(0, fresh(0)...), member(1, fresh(0)...), member(2, fresh(7)...)),
			want:  "wait NoCandidate: the recorded primary's data is gone; a person must choose between r-2 (7 keys): annotate the RedisCluster with cache.seang.org/accept-data-loss: uid-2@1 to keep the data of r-2",
		},
		"an unreachable process may hold the data (simulation)": {
			facts: facts(record(func(r *v1Record) { r.Primary = id(1); r.MayHold = r.MayHold[1:2] }), member(0), member(1, fresh(0)...), member(2, fresh(0)...)),
			want:  "wait NoCandidate: r-0 accepts no writes, but may live and hold the data: waiting for it to answer or to end",
		},
		"the recorded primary's volume is the source": {
			facts: volumes(facts(record(), member(0, fresh(5)...), member(1, fresh(6)...), member(2, fresh(0)...))),
			want: `record epoch 2 of r-0, lease false, holders 0-again*
				promote r-0
				service r-0`,
		},
		"a holder that was not in sync and has a part of it does not keep it from that": {
			facts: volumes(facts(record(notInSync(2)), member(0, append(fresh(5), graceful)...), member(1, proved(ProofTerminated)), member(2, replica(0), detached, linkDown(1)))),
			want: `record epoch 2 of r-0, lease false, holders 0-again*
				promote r-0
				service r-0`,
		},
		"one that has more does": {
			facts: volumes(facts(record(notInSync(2)), member(0, append(fresh(5), graceful)...), member(1, proved(ProofTerminated)), member(2, replica(0), detached, linkDown(1), offset(101)))),
			want:  "wait NoCandidate: only r-2 lives and it was not in sync with r-0: promoting it would lose acknowledged writes; bring back a pod with a newer copy, or annotate the RedisCluster with cache.seang.org/accept-data-loss: uid-2@1 to keep the data of r-2",
		},
		"one with another history may have more": {
			facts: volumes(facts(record(notInSync(2)), member(0, append(fresh(5), graceful)...), member(1, proved(ProofTerminated)), member(2, replica(0), detached, linkDown(1), lineage("zzzz")))),
			want:  "wait NoCandidate: only r-2 lives and it was not in sync with r-0: promoting it would lose acknowledged writes; bring back a pod with a newer copy, or annotate the RedisCluster with cache.seang.org/accept-data-loss: uid-2@1 to keep the data of r-2",
		},
		"it is waited for while it loads": {
			facts: volumes(facts(record(), member(0, booted, restarted, loading), member(1, fresh(6)...), member(2, fresh(0)...))),
			want:  "wait NoCandidate: waiting for r-0, whose volume has the newest data, to load it",
		},
		"it is waited for while it is away": {
			facts: volumes(facts(record(), member(0, proved(ProofTerminated)), member(1, fresh(6)...), member(2, fresh(0)...))),
			want:  "wait NoCandidate: waiting for r-0, whose volume has the newest data, to load it",
		},
		"if its volume is lost, the only other one in sync is the source": {
			facts: volumes(facts(record(notInSync(2)), member(0, fresh(0)...), member(1, fresh(6)...), member(2, fresh(0)...))),
			want: `record epoch 2 of r-1, lease false, holders 1-again*
				promote r-1
				service r-1`,
		},
		"between two of those a person chooses": {
			facts: volumes(facts(record(), member(0, fresh(0)...), member(1, fresh(6)...), member(2, fresh(7)...))),
			want:  "wait NoCandidate: the recorded primary's data is gone; a person must choose between r-1 (6 keys) r-2 (7 keys): annotate the RedisCluster with cache.seang.org/accept-data-loss: uid-1@1 to keep the data of r-1, or uid-2@1 to keep the data of r-2",
		},
		"data of a member that the record does not know is not discarded (simulation)": {
			facts: volumes(facts(record(func(r *v1Record) { r.MayHold = r.MayHold[:1] }), member(0, fresh(0)...), member(1, fresh(0)...), member(2, fresh(7)...))),
			want:  "wait NoCandidate: the recorded primary's data is gone; a person must choose between r-2 (7 keys): annotate the RedisCluster with cache.seang.org/accept-data-loss: uid-2@1 to keep the data of r-2",
		},
		"a member that does not answer may hold data": {
			facts: volumes(facts(record(), member(0, fresh(0)...), member(1, fresh(0)...), member(2, proved(ProofTerminated)))),
			want:  "wait NoCandidate: r-0 came back empty and r-2, which may hold the data, does not answer",
		},
		"a removed member's volume may be the last copy (simulation)": {
			facts: func() Facts {
				f := volumes(facts(record(), member(0, fresh(0)...), member(1, fresh(0)...)))
				f.Wanted, f.Gone = 2, map[types.UID]Proof{id(2).PodUID: ProofTerminated}
				return f
			}(),
			want: "wait NoCandidate: every member is empty, and the volume of r-2, which was removed, may hold the data: raise replicas to bring it back",
		},
		"with all empty the recorded primary is started": {
			facts: volumes(facts(record(), member(0, fresh(0)...), member(1, fresh(0)...), member(2, fresh(0)...))),
			want: `record epoch 2 of r-0, lease false, holders 0-again*
				promote r-0
				service r-0`,
		},
	})
}
