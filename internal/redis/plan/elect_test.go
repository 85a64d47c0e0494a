package plan

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestElect(t *testing.T) {
	silent := func(f Facts, silent, detached time.Duration) Facts {
		f.SilentFor, f.DetachedFor = silent, detached
		return f
	}
	gone := func(f Facts, proof Proof) Facts {
		f.Gone = map[types.UID]Proof{id(0).PodUID: proof}
		return f
	}
	const failover = `
		record epoch 2 of r-2, lease false, holders 2* 1
		promote r-2
		service r-2`
	nowhere := func(m *Member) { m.Info.LinkUp, m.Info.PrimaryHost, m.Info.PrimaryPort = false, "127.0.0.1", 1 }
	ahead := []func(*Member){replica(0), nowhere, offset(120)}
	behind := []func(*Member){replica(0), nowhere, offset(110)}
	decide(t, map[string]struct {
		facts Facts
		want  string
	}{
		"a primary that is silent without a proof is waited for": {
			facts: silent(facts(record(noLease), member(0), member(1, behind...), member(2, ahead...)), time.Hour, time.Hour),
			want:  "wait Fencing: r-0 does not answer and may still accept writes: waiting for a proof that it ended; if you know that it ended, annotate the RedisCluster with cache.seang.org/accept-data-loss: uid-2@1 to keep the data of r-2",
		},
		"a lease is not let run out before the limit of silence": {
			facts: silent(facts(record(), member(0), member(1, replica(0)), member(2, replica(0))), time.Second, 0),
			want:  "wait Fencing: r-0 does not answer and may still accept writes: waiting for a proof that it ended, or for its lease to run out",
		},
		"after it the replicas are detached, even one whose link is down just now": {
			facts: silent(facts(record(), member(0), member(1, replica(0)), member(2, replica(0), linkDown(0))), SilenceLimit, 0),
			want: `detach r-1
				detach r-2
				wait Fencing: r-0 does not answer and may still accept writes: waiting for a proof that it ended, or for its lease to run out`,
		},
		"a lease that has not run out is no proof": {
			facts: silent(facts(record(), member(0), member(1, behind...), member(2, ahead...)), time.Hour, Lease-time.Millisecond),
			want:  "wait Fencing: r-0 does not answer and may still accept writes: waiting for a proof that it ended, or for its lease to run out",
		},
		"a lease that has run out is a proof":      {facts: silent(facts(record(), member(0), member(1, behind...), member(2, ahead...)), time.Hour, Lease), want: failover},
		"a terminated container is a proof":        {facts: facts(record(), member(0, proved(ProofTerminated)), member(1, behind...), member(2, ahead...)), want: failover},
		"a refused dial is a proof":                {facts: facts(record(), member(0, proved(ProofRefused)), member(1, behind...), member(2, ahead...)), want: failover},
		"another process in the pod is a proof":    {facts: facts(record(), member(0, booted, restarted), member(1, behind...), member(2, ahead...)), want: failover},
		"a pod that is gone with a proof is ended": {facts: gone(facts(record(), member(0, noPod), member(1, behind...), member(2, ahead...)), ProofRefused), want: failover},
		"a pod that is gone without a proof is not": {
			facts: gone(facts(record(noLease), member(0, noPod), member(1, behind...), member(2, ahead...)), NotProved),
			want:  "wait Fencing: r-0 does not answer and may still accept writes: waiting for a proof that it ended; if you know that it ended, annotate the RedisCluster with cache.seang.org/accept-data-loss: uid-2@1 to keep the data of r-2",
		},
		"a replica that reads what a dead primary sent is left to drain": {
			facts: facts(record(), member(0, proved(ProofRefused)), member(1, behind...), member(2, replica(0))),
			want:  "wait Promoting: r-2 still reads what the old primary sent",
		},
		"a replica whose link seems up for too long is detached": {
			facts: silent(facts(record(), member(0, proved(ProofTerminated)), member(1, behind...), member(2, replica(0))), SilenceLimit, 0),
			want:  "detach r-2",
		},
		"replicas that follow each other are detached (simulation)": {
			facts: facts(record(), member(0, proved(ProofTerminated)), member(1, replica(2)), member(2, replica(1))),
			want:  "detach r-1\ndetach r-2",
		},
		"a holder that does not answer may hold confirmed writes": {
			facts: facts(record(), member(0, proved(ProofRefused)), member(1), member(2, ahead...)),
			want:  "wait NoCandidate: r-1 may hold confirmed writes and does not answer",
		},
		"a holder that ended is not waited for": {
			facts: facts(record(), member(0, proved(ProofRefused)), member(1, proved(ProofTerminated)), member(2, ahead...)),
			want: `record epoch 2 of r-2, lease false, holders 2*
				promote r-2
				service r-2`,
		},
		"a holder that loads what it copied is waited for (simulation)": {
			facts: facts(record(), member(0, proved(ProofRefused)), member(1, behind...), member(2, replica(0), linkDown(1), loading)),
			want:  "wait MemberLoading: r-2 loads what it copied from the old primary",
		},
		"a holder ahead of one in sync wins, seen in sync or not (simulation)": {
			facts: facts(record(notInSync(2)), member(0, proved(ProofRefused)), member(1, behind...), member(2, ahead...)),
			want:  failover,
		},
		"a replica that a person attached is detached, and has what it confirmed (seed 389671)": {
			facts: facts(record(unknown(2)), member(0, proved(ProofRefused)), member(1, behind...), member(2, replica(0), offset(120))),
			want:  "detach r-2",
		},
		"a replica that a person had attached wins with more of the history (seed 389671)": {
			facts: facts(record(unknown(2)), member(0, proved(ProofRefused)), member(1, behind...), member(2, ahead...)),
			want: `record epoch 2 of r-2, lease false, holders 2* 1
				promote r-2
				service r-2`,
		},
		"alone it is no candidate": {
			facts: facts(record(unknown(2)), member(0, proved(ProofRefused)), member(1, proved(ProofRefused)), member(2, ahead...)),
			want:  "wait NoCandidate: the recorded primary's data is gone; a person must choose between r-2 (5 keys): annotate the RedisCluster with cache.seang.org/accept-data-loss: uid-2@1 to keep the data of r-2",
		},
		"a holder that never was in sync is no candidate alone": {
			facts: facts(record(notInSync(2)), member(0, proved(ProofRefused)), member(1, proved(ProofRefused)), member(2, ahead...)),
			want:  "wait NoCandidate: only r-2 lives and it was not in sync with r-0: promoting it would lose acknowledged writes; bring back a pod with a newer copy, or annotate the RedisCluster with cache.seang.org/accept-data-loss: uid-2@1 to keep the data of r-2",
		},
		"a promotion that was recorded and not done is done": {
			facts: facts(record(moving), member(0, proved(ProofRefused)), member(1, behind...), member(2, behind...)),
			want:  "promote r-1\nservice r-1",
		},
		"after a demotion that was the last act, the one with more is promoted": {
			facts: facts(record(moving), member(0, replica(1), linkDown(0), offset(130), detached), member(1, behind...), member(2, behind...)),
			want: `record epoch 3 of r-0, lease false, holders 0* 1 2
				promote r-0
				service r-0`,
		},
		"none is promoted over a member that was made a primary by hand and had more": {
			facts: facts(record(), member(0, proved(ProofTerminated)), member(1, replica(0), linkDown(1)), member(2, byHand(110))),
			want:  "wait ForkedHistory: r-2 was made a primary by hand and has 5 keys, some of which no other member may hold: annotate the RedisCluster with cache.seang.org/accept-data-loss: uid-2@1 to keep the data of r-2, or uid-1@1 to keep the data of r-1",
		},
		"one that had no more does not matter": {
			facts: facts(record(), member(0, proved(ProofTerminated)), member(1, replica(0), linkDown(1)), member(2, byHand(100))),
			want: `record epoch 2 of r-1, lease false, holders 1*
				promote r-1
				service r-1`,
		},
		"nor one that forked in an earlier epoch, which stays what it is (seed 763903)": {
			facts: facts(record(forkedBefore(2)), member(0, proved(ProofTerminated)), member(1, replica(0), linkDown(1)), member(2, earlier)),
			want: `record epoch 2 of r-1, lease false, holders 1* 2!
				promote r-1
				service r-1`,
		},
		"one that was not written to is a replica again": {
			facts: facts(record(), member(0, proved(ProofTerminated)), member(1, replica(0), linkDown(1)), member(2, byHand(110), unwritten)),
			want:  "detach r-2",
		},
		"a move whose target a person promoted is not done while the old primary is one": {
			facts: facts(record(moving), member(0, primary(2)), member(1, byHand(100)), member(2, replica(0))),
			want:  "record epoch 3 of r-0, lease false, holders 0* 1* 2*",
		},
		"a switchover goes on while its target is in sync": {
			facts: facts(record(moving), member(0, primary(1, 2)), member(1, replica(0)), member(2, replica(0))),
			want:  "switchover r-0 r-1",
		},
		"a switchover is given up for a target that is not known to be in sync (simulation)": {
			facts: facts(record(moving), member(0, primary(1, 2)), member(1, replica(0), func(m *Member) { m.SyncTarget = 0 }), member(2, replica(0))),
			want:  "record epoch 3 of r-0, lease false, holders 0* 1* 2*, before r-1",
		},
	})
}

func TestTheLeaseRunsFromWhenEveryHolderIsDetached(t *testing.T) {
	detached := func(m *Member) { m.Info.LinkUp, m.Info.PrimaryHost, m.Info.PrimaryPort = false, "127.0.0.1", 1 }
	for name, c := range map[string]struct {
		members []Member
		want    bool
	}{
		"all follow nobody":             {[]Member{member(0), member(1, replica(0), detached), member(2, replica(0), detached)}, true},
		"one ended":                     {[]Member{member(0), member(1, replica(0), detached), member(2, proved(ProofRefused))}, true},
		"one has a link":                {[]Member{member(0), member(1, replica(0), detached), member(2, replica(0))}, false},
		"one may get its link back":     {[]Member{member(0), member(1, replica(0), detached), member(2, replica(0), linkDown(9))}, false},
		"one follows that nobody knows": {[]Member{member(0), member(1, replica(0), detached), member(2, proved(ProofRefused)), member(3, replica(0))}, false},
		"one does not answer":           {[]Member{member(0), member(1, replica(0), detached), member(2)}, false},
		"one is gone, nobody knows how": {[]Member{member(0), member(1, replica(0), detached), member(2, noPod)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts(record(), c.members...)
			if got := f.Detached(); got != c.want {
				t.Errorf("Detached is %t, want %t", got, c.want)
			}
		})
	}
}

func TestAFailoverRecordsNoSuspect(t *testing.T) {
	f := facts(record(), member(0, proved(ProofRefused)), member(1, replica(0), linkDown(0)), member(2, replica(0), linkDown(0)))
	for _, step := range Next(f).Steps {
		if s, ok := step.(WriteRecord); ok && s.Record.Previous != nil {
			t.Errorf("the record names %s, whose proof would be needed again if the promotion is repeated", s.Record.Previous.Pod)
		}
	}
}
