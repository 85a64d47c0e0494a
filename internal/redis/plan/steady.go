package plan

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/version"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis"
)

// steady keeps the members of a living primary in sync.
func steady(f *Facts, primary *Member) Decision {
	d := Decision{Primary: primary, Service: primary.Pod}
	record := *f.Record.DeepCopy()
	// A primary takes a new ID once more when its first replica attaches: before
	// that it has no backlog (measured).
	renamed := record.ReplicationID != string(primary.Info.ReplicationID)
	record.ReplicationID = string(primary.Info.ReplicationID)
	if string(primary.Info.SecondaryID) == record.ForkID && primary.Info.BranchedAt-1 > record.ForkOffset {
		// A move is recorded before the old primary is demoted, which writes on until then.
		record.ForkOffset, renamed = primary.Info.BranchedAt-1, true
	}
	record.Previous = nil
	synced := refresh(f, &record, primary)
	departed(f, &d, &record, primary)
	admitted := admit(f, &record, primary)
	d.InSync = synced
	lease(f, &d, &record, primary, slices.ContainsFunc(synced, func(pod string) bool { return !f.pod(pod).Leaving }))
	if admitted || renamed {
		d.step(WriteRecord{Why: Why("before members are told to follow " + primary.Pod), Record: record})
	}
	if f.Service != primary.Pod && !f.wantsMove(primary) {
		point(&d, primary)
	}
	for i := range f.Members {
		if m := &f.Members[i]; m != primary {
			attach(f, &d, &record, primary, m)
		}
	}
	d.Rebuild = rebuild(f, primary)
	for i := range f.Members {
		saving(&d, primary, &f.Members[i])
	}
	label(&d, primary, naming.RolePrimary)
	serve(&d, primary, "it is the primary, so it stays readable if it is demoted")
	d.Record = &record
	target := handOver(f, &d, &record, primary)
	answerAcceptance(f, &d, primary)
	if target == nil {
		// One disruption at a time.
		target = roll(f, &d, &record, primary)
	}
	move(f, &d, &record, primary, target)
	d.Removable = removable(f, primary, synced)
	return d
}

// refresh drops the holders that cannot hold data of this epoch any more, or none
// that others lack, marks those in sync, and returns the names of the replicas
// that are in sync now.
func refresh(f *Facts, record *v1alpha1.Record, primary *Member) []string {
	var synced []string
	copied := f.copied(primary)
	kept := record.MayHold[:0]
	for _, holder := range record.MayHold {
		m := f.member(holder.MemberID)
		switch {
		case holder.MemberID == record.Primary:
			holder.InSync = true
		case m == nil && f.ended(holder.MemberID) != NotProved:
			continue
		case f.Left[holder.MemberID] > 0 && f.Left[holder.MemberID] <= copied:
			continue
		case m == nil:
			holder.InSync = holder.InSync && inSyncUnseen(primary, f.pod(holder.Pod))
		case InSync(primary, m):
			holder.InSync = true
			synced = append(synced, m.Pod)
		case stale(m):
			holder.InSync = false
		}
		holder.Forked = branched(record, holder, m)
		kept = append(kept, holder)
	}
	record.MayHold = kept
	return synced
}

// branched says that the holder forked, as far as is known; the primary's history is the
// record's.
func branched(record *v1alpha1.Record, h v1alpha1.Holder, m *Member) bool {
	switch {
	case h.MemberID == record.Primary:
		return false
	case m == nil || !m.Answers():
		return h.Forked
	}
	return forked(record, m)
}

// departed waits for holders without a pod to leave the record. While one is in it, the
// next failover would wait for a process that nobody will ever read, and no event tells
// when another copy has all that it may have confirmed. That there is no other copy
// yet, others say.
func departed(f *Facts, d *Decision, record *v1alpha1.Record, primary *Member) {
	if f.copied(primary) == 0 {
		return
	}
	for _, h := range record.MayHold {
		if _, gone := f.Left[h.MemberID]; gone {
			d.wait(Wait{Reason: v1alpha1.ReasonReplicaSyncing, Poll: true, Message: fmt.Sprintf(
				"no replica is known yet to have all that %s, which has no pod any more, may have confirmed", h.Pod)})
		}
	}
}

// copied is the offset up to which the primary's data has another copy, or up to
// which it is the only one that is asked for.
func (f *Facts) copied(primary *Member) int64 {
	if f.Wanted == 1 {
		return primary.Info.Offset
	}
	var most int64
	for i := range f.Members {
		if m := &f.Members[i]; m != primary && InSync(primary, m) {
			most = max(most, primary.Info.Replica(m.IP).Offset)
		}
	}
	return most
}

// stale says that the member has not received for longer than a short break of
// its link explains: what the primary acknowledges meanwhile it does not have.
func stale(m *Member) bool {
	return m.Info != nil && !m.Info.LinkUp && m.Info.LinkDownSeconds > MaxLagSeconds
}

// inSyncUnseen says that the primary still streams to the member, although the
// operator cannot reach it.
func inSyncUnseen(primary, m *Member) bool {
	return m != nil && primary.Info.Replica(m.IP) != nil
}

// admit adds the members that are to follow to the holders (rule RecordFirst).
func admit(f *Facts, record *v1alpha1.Record, primary *Member) bool {
	admitted := false
	for i := range f.Members {
		m := &f.Members[i]
		if m == primary || !f.mayFollow(record, primary, m) || m.Leaving || holder(record, m.ID()) != nil {
			continue
		}
		record.MayHold = append(record.MayHold, v1alpha1.Holder{MemberID: m.ID()})
		admitted = true
	}
	return admitted
}

func holder(record *v1alpha1.Record, id v1alpha1.MemberID) *v1alpha1.Holder {
	for i := range record.MayHold {
		if record.MayHold[i].MemberID == id {
			return &record.MayHold[i]
		}
	}
	return nil
}

// lease keeps min-replicas-to-write in step with the record: raised before it
// is recorded, recorded before it is lowered, so that a recorded lease holds (rule
// LeaseInRecord).
func lease(f *Facts, d *Decision, record *v1alpha1.Record, primary *Member, synced bool) {
	have, want := primary.Info.MinReplicas, f.MinReplicas
	why := Why(fmt.Sprintf("writes need %d replicas, as the spec says", want))
	switch {
	case want > 0:
	case synced:
		want, why = 1, "a replica is in sync: without one the primary must stop accepting writes"
	default:
		why = "no replica is in sync: the primary goes on alone"
	}
	if want == 0 && have > 0 && record.Lease {
		record.Lease = false
		d.step(WriteRecord{Why: "the last replica in sync is lost: recorded before the primary may write alone", Record: *record})
	}
	record.Lease = have > 0 && want > 0
	if have != want {
		d.step(SetLease{Why: why, Member: primary.ID(), Replicas: want})
	}
}

// attach brings one replica to follow the primary, and says what it waits for.
func attach(f *Facts, d *Decision, record *v1alpha1.Record, primary, m *Member) {
	if m.Ordinal >= f.Wanted && m.PodUID != "" {
		d.wait(Wait{Reason: v1alpha1.ReasonScaling, Message: m.Pod + " is being removed"})
	}
	switch {
	case !m.Answers() || m.Leaving:
		withdraw(f, d, primary, m)
		missing(f, d, m)
	case !f.mayFollow(record, primary, m):
		label(d, m, "")
		d.wait(Wait{Reason: v1alpha1.ReasonForkedHistory, Stuck: true, Message: fmt.Sprintf(
			"%s has a history that the record does not know, with %d keys: its data is left untouched until a person decides; %s", m.Pod, m.Info.Keys, f.howToAccept(primary))})
	case !m.follows(primary):
		if !m.Serving {
			label(d, m, "")
		}
		if !keepAside(f, d, record, primary, m) {
			return
		}
		d.step(Follow{Why: Why(fmt.Sprintf("%s must follow %s", m.Pod, primary.Pod)), Member: m.ID(), IP: primary.IP, TLS: m.secures(primary)})
		d.wait(syncing(m))
	case !InSync(primary, m):
		d.wait(copying(primary, m))
		if !m.Serving {
			label(d, m, "")
			return
		}
		withdraw(f, d, primary, m)
	default:
		serve(d, m, "it is in sync, so its data may be read from now on")
		label(d, m, naming.RoleReplica)
	}
}

// missing waits for a member that does not answer, or is about to go.
func missing(f *Facts, d *Decision, m *Member) {
	if !m.Answers() && m.Role == naming.RolePrimary {
		label(d, m, "")
	}
	switch {
	case m.Ordinal >= f.Wanted:
	case !m.Answers():
		if m.HangsFor >= ReplicaHangLimit && !m.Killed {
			d.step(Kill{Why: Why(fmt.Sprintf("%s accepts connections and answers nothing for %s; the primary has its data", m.Pod, ReplicaHangLimit)), Pod: m.Pod, UID: m.PodUID})
		}
		d.wait(absent(m))
	default:
		d.wait(Wait{Reason: v1alpha1.ReasonPodNotRunning, Message: m.Pod + " is being deleted and will be replaced"})
	}
}

func label(d *Decision, m *Member, role string) {
	if m.PodUID != "" && m.Role != role {
		d.step(Label{Why: Why(fmt.Sprintf("%s has the role %q", m.Pod, role)), Pod: m.Pod, Role: role})
	}
}

func syncing(m *Member) Wait {
	return Wait{Reason: v1alpha1.ReasonReplicaSyncing, Poll: true, Message: m.Pod + " copies from the primary"}
}

// copyLimit is how long a member of an older version may copy before it is taken to
// be unable to read what it gets: Redis tries for ever.
const copyLimit = 15 * time.Second

func copying(primary, m *Member) Wait {
	if m.FollowsFor < copyLimit || !older(m.Info, primary.Info) {
		return syncing(m)
	}
	return Wait{Reason: v1alpha1.ReasonDowngradeRefused, Poll: true, Stuck: true, Message: fmt.Sprintf(
		"%s runs %s %s, which is older than %s %s of %s, and is not in sync after %s: it cannot read the data; set spec.image to the newer version",
		m.Pod, m.Info.Flavour, m.Info.Version, primary.Info.Flavour, primary.Info.Version, primary.Pod, copyLimit)}
}

// older says that a process may not be able to read what another writes: it is of an
// earlier version, or of the other flavour.
func older(mine, theirs *redis.Info) bool {
	m, err := version.ParseGeneric(mine.Version)
	if err != nil {
		return false
	}
	t, err := version.ParseGeneric(theirs.Version)
	return err == nil && (mine.Flavour != theirs.Flavour || m.LessThan(t))
}

func absent(m *Member) Wait {
	switch {
	case m.Unreadable != "":
		return Wait{Reason: v1alpha1.ReasonDataUnreadable, Message: fmt.Sprintf(
			"%s cannot load its data: the files are renamed to %s/ on its volume, and it copies from the primary", m.Pod, naming.DirUnreadable)}
	case m.Trouble.Reason != "":
		return m.Trouble
	case m.PodUID == "":
		return Wait{Reason: v1alpha1.ReasonScaling, Message: "the pod " + m.Pod + " does not exist yet"}
	case m.Info != nil:
		return Wait{Reason: v1alpha1.ReasonMemberLoading, Poll: true, Message: m.Pod + " loads its data"}
	case m.IP == "":
		return Wait{Reason: v1alpha1.ReasonPodNotRunning, Message: m.Pod + " is being started"}
	}
	// No event tells when a process begins to listen.
	return Wait{Reason: v1alpha1.ReasonMemberUnreachable, Poll: true, Message: m.Pod + " does not answer yet"}
}

// removable says that the members beyond the wanted ones can go: the primary
// stays, and so does every copy that is needed (rule KeepTheLastCopy).
func removable(f *Facts, primary *Member, synced []string) bool {
	if primary.Ordinal >= f.Wanted {
		return false
	}
	staying := 0
	for _, name := range synced {
		if m := f.pod(name); m.Ordinal < f.Wanted {
			staying++
		}
	}
	return staying > 0
}
