package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis"
)

// History is the replication ID of the first epoch, and fork the one before it.
const (
	history = "aaaa"
	fork    = "bbbb"
)

// id names the process of the pod with an ordinal.
func id(ordinal int) v1alpha1.MemberID {
	return v1alpha1.MemberID{Pod: fmt.Sprintf("r-%d", ordinal), PodUID: types.UID(fmt.Sprintf("uid-%d", ordinal)), RunID: fmt.Sprintf("run-%d", ordinal)}
}

func ip(ordinal int) string { return fmt.Sprintf("10.0.0.%d", ordinal+1) }

// member makes a member that does not answer.
func member(ordinal int, changes ...func(*Member)) Member {
	m := Member{Pod: id(ordinal).Pod, PodUID: id(ordinal).PodUID, Ordinal: ordinal, IP: ip(ordinal)}
	for _, change := range changes {
		change(&m)
	}
	return m
}

// booted answers as every process does at first: a replica of nobody.
func booted(m *Member) {
	m.Info = &redis.Info{RunID: fmt.Sprintf("run-%d", m.Ordinal), Role: redis.RoleReplica, PrimaryHost: "127.0.0.1", PrimaryPort: 1,
		LinkDownSeconds: -1, ReplicationID: redis.ReplicationID(fmt.Sprintf("boot-%d", m.Ordinal))}
}

// primary answers as the primary of the others, at offset 100.
func primary(others ...int) func(*Member) {
	return func(m *Member) {
		m.Role, m.Serving = naming.RolePrimary, true
		m.Info = &redis.Info{RunID: fmt.Sprintf("run-%d", m.Ordinal), Role: redis.RolePrimary, ReplicationID: history, Offset: 100, Keys: 5, MinReplicas: 1}
		for _, other := range others {
			m.Info.Replicas = append(m.Info.Replicas, redis.Replica{IP: ip(other), State: redis.ReplicaOnline, Offset: 100})
		}
	}
}

// replica answers as a replica of the member with an ordinal, in sync.
func replica(of int) func(*Member) {
	return func(m *Member) {
		m.Role, m.Serving, m.SyncTarget = naming.RoleReplica, true, 90
		m.Info = &redis.Info{RunID: fmt.Sprintf("run-%d", m.Ordinal), Role: redis.RoleReplica, PrimaryHost: ip(of), PrimaryPort: redis.Port,
			LinkUp: true, ReplicationID: history, Offset: 100, Keys: 5}
	}
}

// byHand is a member that a person made a primary at an offset, and wrote to.
func byHand(at int64) func(*Member) {
	return func(m *Member) {
		primary()(m)
		m.Role = naming.RoleReplica
		m.Info.ReplicationID, m.Info.SecondaryID, m.Info.BranchedAt, m.Info.Offset = "by-hand", history, at+1, at+20
	}
}

func unwritten(m *Member) { m.Info.Offset = m.Info.BranchedAt - 1 }

func persistent(m *Member) { m.Persistent, m.Info.AppendOnly = true, true }

func detached(m *Member) { m.Info.PrimaryHost, m.Info.PrimaryPort = "127.0.0.1", 1 }

func linkDown(seconds int64) func(*Member) {
	return func(m *Member) { m.Info.LinkUp, m.Info.LinkDownSeconds = false, seconds }
}

func offset(o int64) func(*Member) { return func(m *Member) { m.Info.Offset = o } }

func keys(n int64) func(*Member) { return func(m *Member) { m.Info.Keys = n } }

func lineage(primary redis.ReplicationID) func(*Member) {
	return func(m *Member) { m.Info.ReplicationID, m.Info.SecondaryID = primary, "" }
}

func leaving(m *Member) { m.Leaving = true }

func loading(m *Member) { m.Info.Loading = true }

func restarted(m *Member) { m.Info.RunID += "-again" }

func proved(p Proof) func(*Member) { return func(m *Member) { m.Proof = p } }

func noPod(m *Member) { m.PodUID, m.IP = "", "" }

// record is epoch 1 of the first member, with holders in sync.
func record(changes ...func(*v1alpha1.Record)) *v1alpha1.Record {
	r := &v1alpha1.Record{Epoch: 1, Primary: id(0), ReplicationID: history, ForkID: fork, ForkOffset: 10, Lease: true}
	for ordinal := range 3 {
		r.MayHold = append(r.MayHold, v1alpha1.Holder{MemberID: id(ordinal), InSync: true})
	}
	for _, change := range changes {
		change(r)
	}
	return r
}

func notInSync(ordinal int) func(*v1alpha1.Record) {
	return func(r *v1alpha1.Record) { r.MayHold[ordinal].InSync = false }
}

// unknown is a member that the record does not name.
func unknown(ordinal int) func(*v1alpha1.Record) {
	return func(r *v1alpha1.Record) { r.MayHold = slices.Delete(r.MayHold, ordinal, ordinal+1) }
}

// forkedBefore is a record of a later epoch, which has forgotten where the member branched.
func forkedBefore(ordinal int) func(*v1alpha1.Record) {
	return func(r *v1alpha1.Record) { r.MayHold[ordinal].InSync, r.MayHold[ordinal].Forked = false, true }
}

// earlier is the process of forkedBefore, a replica of nobody since.
func earlier(m *Member) {
	byHand(100)(m)
	m.Info.Role, m.Info.SecondaryID = redis.RoleReplica, "earlier"
	detached(m)
}

// unloadable is a member whose last process could not load its files.
func unloadable(m *Member) {
	m.Info, m.Proof, m.Unreadable = nil, ProofTerminated, "2026-12-02T10:00:00Z"
	m.Trouble = Wait{Reason: v1alpha1.ReasonDataUnreadable, Message: m.Pod + " cannot load its data: Bad file format"}
}

func noLease(r *v1alpha1.Record) { r.Lease = false }

// moving is the record of a switchover from the first to the second member.
func moving(r *v1alpha1.Record) {
	previous := id(0)
	r.Epoch, r.Primary, r.Previous, r.ReplicationID, r.ForkID, r.ForkOffset, r.Lease = 2, id(1), &previous, "", history, 100, false
}

// facts are those of three wanted members.
func facts(record *v1alpha1.Record, members ...Member) Facts {
	service := ""
	if record != nil {
		service = record.Primary.Pod
	}
	return Facts{Wanted: 3, Record: record, Members: members, Service: service, ProxiesIdle: true, ProxiesFollowed: true, Gone: map[types.UID]Proof{}}
}

// text writes a decision as lines, for comparison and for people.
func text(d Decision) string {
	var b strings.Builder
	for _, step := range d.Steps {
		switch s := step.(type) {
		case WriteRecord:
			fmt.Fprintf(&b, "record %s\n", recordText(&s.Record))
		case Promote:
			fmt.Fprintf(&b, "promote %s\n", s.Member.Pod)
		case Follow:
			fmt.Fprintf(&b, "follow %s %s\n", s.Member.Pod, s.IP)
		case Detach:
			fmt.Fprintf(&b, "detach %s\n", s.Member.Pod)
		case Switchover:
			fmt.Fprintf(&b, "switchover %s %s\n", s.From.Pod, s.To.Pod)
		case PointService:
			fmt.Fprintf(&b, "service %s\n", s.Pod)
		case Replace:
			fmt.Fprintf(&b, "replace %s\n", s.Pod)
		case Kill:
			fmt.Fprintf(&b, "kill %s\n", s.Pod)
		case KeepAside:
			fmt.Fprintf(&b, "aside %s\n", s.Member.Pod)
		case AppendOnly:
			fmt.Fprintf(&b, "append %s\n", s.Member.Pod)
		case Serve:
			fmt.Fprintf(&b, "serve %s\n", s.Member.Pod)
		case Label:
			fmt.Fprintf(&b, "label %s %q\n", s.Pod, s.Role)
		case SetLease:
			fmt.Fprintf(&b, "lease %s %d\n", s.Member.Pod, s.Replicas)
		}
	}
	for _, pod := range d.Rebuild {
		fmt.Fprintf(&b, "rebuild %s\n", pod)
	}
	for _, w := range d.Waits {
		fmt.Fprintf(&b, "wait %s: %s\n", w.Reason, w.Message)
	}
	for _, a := range d.Answers {
		b.WriteString(map[bool]string{true: "done: ", false: "refused: "}[a.Done] + a.Message + "\n")
	}
	return b.String()
}

func recordText(r *v1alpha1.Record) string {
	s := fmt.Sprintf("epoch %d of %s, lease %t, holders", r.Epoch, r.Primary.Pod, r.Lease)
	for _, h := range r.MayHold {
		s += " " + strings.TrimPrefix(h.RunID, "run-")
		if h.InSync {
			s += "*"
		}
		if h.Forked {
			s += "!"
		}
	}
	if r.Previous != nil {
		s += ", before " + r.Previous.Pod
	}
	return s
}

// decide runs a table of facts against the text of what is decided.
func decide(t *testing.T, cases map[string]struct {
	facts Facts
	want  string
}) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := text(Next(c.facts))
			if want := lines(c.want); got != want {
				t.Errorf("decided:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

func lines(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}
