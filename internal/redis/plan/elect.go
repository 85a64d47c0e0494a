package plan

import (
	"fmt"
	"slices"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/redis"
)

// elect finds a primary when the recorded one does not answer as such:
// fence, settle, read, record, promote (safety rule 5).
func elect(f *Facts) Decision {
	d := Decision{FailedOver: f.Record.Primary.Pod}
	if old := f.unfinishedSwitchover(); old != nil {
		return finishSwitchover(f, old)
	}
	if !fence(f, &d) {
		return d
	}
	holders, settled := settle(f, &d)
	if !settled {
		return d
	}
	best := MostAdvanced(f.Record, holders)
	if rival := f.rival(best); rival != nil {
		d.wait(rivalry(f, best, rival))
		return d
	}
	if best == nil {
		return recoverData(f, d)
	}
	if best.is(f.Record.Primary) && f.Record.ReplicationID == "" {
		d.step(Promote{Why: "its promotion was recorded and not done", Member: best.ID()})
		d.step(PointService{Why: "the primary Service must select the primary", Pod: best.Pod})
		return d
	}
	record := promotion(f, best)
	for _, m := range holders {
		if m != best {
			record.MayHold = append(record.MayHold, v1alpha1.Holder{
				MemberID: m.ID(), InSync: m.Info.Offset >= record.ForkOffset && continues(f.Record, m), Forked: forked(f.Record, m)})
		}
	}
	promote(&d, best, record, fmt.Sprintf("%s has the most of the history, to offset %d", best.Pod, best.Info.Offset))
	return d
}

func promote(d *Decision, to *Member, record v1alpha1.Record, why string) {
	// All suspects are fenced, and no proof can be undone: none is left to fence
	// if the promotion must be repeated.
	record.Previous = nil
	d.step(WriteRecord{Why: Why(fmt.Sprintf("%s is to be primary in epoch %d: %s", to.Pod, record.Epoch, why)), Record: record})
	d.step(Promote{Why: Why(why), Member: to.ID()})
	d.step(PointService{Why: "the primary Service must select the primary", Pod: to.Pod})
}

// MayAcceptWrites says that the record names a process of the member's pod that may.
func (f *Facts) MayAcceptWrites(m *Member) bool {
	return f.Record != nil && slices.ContainsFunc(f.suspects(), func(id v1alpha1.MemberID) bool { return id.PodUID == m.PodUID })
}

// suspects are the processes that may accept writes.
func (f *Facts) suspects() []v1alpha1.MemberID {
	suspects := []v1alpha1.MemberID{f.Record.Primary}
	if f.Record.Previous != nil {
		suspects = append(suspects, *f.Record.Previous)
	}
	return suspects
}

// unfinishedSwitchover is the previous primary, if it still is one.
func (f *Facts) unfinishedSwitchover() *Member {
	if f.Record.Previous == nil {
		return nil
	}
	if old := f.member(*f.Record.Previous); old != nil && old.isPrimary() {
		return old
	}
	return nil
}

// moveUndone says that a recorded move is not done although its target is a primary: so
// is the old one, which is demoted before its successor is promoted. A person promoted
// the target.
func (f *Facts) moveUndone() bool {
	return f.Record.ReplicationID == "" && f.unfinishedSwitchover() != nil
}

// finishSwitchover goes on with a recorded move if its target is known to be in
// sync, and else records that the old primary stays: an operator that restarted
// knows nothing of the target, and a new move follows once it does.
func finishSwitchover(f *Facts, old *Member) Decision {
	d := Decision{Primary: old, Service: f.Service}
	target := f.member(f.Record.Primary)
	if target != nil && !target.Leaving && InSync(old, target) {
		d.step(switchover(old, target))
		return d
	}
	record := succession(f, old, f.Record.MayHold)
	if target != nil && target.isPrimary() {
		// It is no earlier primary, but a fork; named as one it would be the next to stay.
		record.Previous = nil
	}
	d.step(WriteRecord{Why: Why(fmt.Sprintf("%s stays primary: the recorded move did not happen", old.Pod)), Record: record})
	return d
}

// fence reports whether every suspect is proved unable to acknowledge a write.
// While one is silent for too long, its replicas are detached so that its lease
// runs out; one that hangs is killed.
func fence(f *Facts, d *Decision) bool {
	fenced, hangs := true, false
	for _, id := range f.suspects() {
		if f.fenced(id) != NotProved {
			continue
		}
		fenced = false
		hangs = hangs || f.hanging(id) != nil
		message := fmt.Sprintf("%s does not answer and may still accept writes: waiting for a proof that it ended", id.Pod)
		if f.Record.Lease {
			message += ", or for its lease to run out"
		} else if best := MostAdvanced(f.Record, f.liveHolders()); best != nil {
			message += "; if you know that it ended, " + f.howToAccept(best)
		}
		d.wait(Wait{Reason: v1alpha1.ReasonFencing, Message: message, Blocking: true, Poll: true})
	}
	if hangs {
		kill(f, d)
		return false
	}
	if fenced || !f.Record.Lease || f.SilentFor < SilenceLimit {
		return fenced
	}
	detachAll(f, d)
	return false
}

// detachAll ends what can give the old primary an acknowledgement.
func detachAll(f *Facts, d *Decision) {
	for i := range f.Members {
		if m := &f.Members[i]; m.Answers() && m.attached() {
			d.step(Detach{Why: Why(fmt.Sprintf("%s is silent for %s: its lease must run out", f.Record.Primary.Pod, SilenceLimit)), Member: m.ID()})
		}
	}
}

// kill ends suspects that hang, if another holder can take over: the last copy
// is not ours to delete (safety rule 16).
func kill(f *Facts, d *Decision) {
	if f.SilentFor < HangLimit || MostAdvanced(f.Record, f.liveHolders()) == nil {
		return
	}
	for _, id := range f.suspects() {
		if m := f.hanging(id); m != nil && !m.Killed {
			d.step(Kill{Why: Why(fmt.Sprintf("%s accepts connections and answers nothing for %s", m.Pod, HangLimit)), Pod: m.Pod, UID: m.PodUID})
		}
	}
}

// liveHolders are the holders whose process answers as a replica.
func (f *Facts) liveHolders() []*Member {
	var live []*Member
	for _, h := range f.Record.MayHold {
		if m := f.member(h.MemberID); m != nil && m.Answers() && m.Info.Role == redis.RoleReplica {
			live = append(live, m)
		}
	}
	return live
}

// strays are replicas that have the recorded history and that the record does not know: a
// person had them follow a member, to which they may have confirmed what others lack.
func (f *Facts) strays() []*Member {
	var strays []*Member
	for i := range f.Members {
		m := &f.Members[i]
		if m.Answers() && m.Info.Role == redis.RoleReplica && m.Info.Keys > 0 && holder(f.Record, m.ID()) == nil && continues(f.Record, m) {
			strays = append(strays, m)
		}
	}
	return strays
}

// Detached says that no process but the suspects can give the old primary an
// acknowledgement: the lease of the old primary runs out from here on.
func (f *Facts) Detached() bool {
	if f.Record == nil || slices.ContainsFunc(f.Members, func(m Member) bool { return m.attached() }) {
		return false
	}
	for _, h := range f.Record.MayHold {
		if h.MemberID == f.Record.Primary || f.ended(h.MemberID) != NotProved {
			continue
		}
		if m := f.member(h.MemberID); m == nil || !m.detached() {
			return false
		}
	}
	return true
}

// settle waits until no member receives any more and every holder was read, so
// that the most advanced one has every write that WAIT confirmed (rule Settled).
func settle(f *Facts, d *Decision) ([]*Member, bool) {
	for _, h := range f.Record.MayHold {
		if m := f.member(h.MemberID); m != nil {
			settleHolder(f, d, m)
		} else if f.fenced(h.MemberID) == NotProved && h.MemberID != f.Record.Primary {
			d.wait(Wait{Reason: v1alpha1.ReasonNoCandidate, Blocking: true, Poll: true, Message: fmt.Sprintf(
				"%s may hold confirmed writes and does not answer", h.Pod)})
		}
	}
	strays := f.strays()
	for _, m := range strays {
		if m.attached() {
			d.step(Detach{Why: "it follows a member, and nobody recorded that it does", Member: m.ID()})
		}
	}
	return append(f.liveHolders(), strays...), len(d.Steps) == 0 && len(d.Waits) == 0
}

func settleHolder(f *Facts, d *Decision, m *Member) {
	switch {
	case m.Info.Loading:
		// It will hold what it copied, which may be more than others have.
		d.wait(Wait{Reason: v1alpha1.ReasonMemberLoading, Blocking: true, Poll: true, Message: m.Pod + " loads what it copied from the old primary"})
	case m.isPrimary() && continues(f.Record, m):
		d.step(Detach{Why: "it was made a primary by hand, and nothing was written to it", Member: m.ID()})
	case f.answersAt(m.Info.PrimaryHost):
		// It may copy what that one has at any time, and with less than it has now;
		// two replicas that follow each other would do so for ever.
		d.step(Detach{Why: "it follows a member that is not the primary", Member: m.ID()})
	case !m.Info.LinkUp:
	case f.SilentFor >= SilenceLimit:
		// Behind a partition a link looks up for long.
		d.step(Detach{Why: "its link to the old primary is still open", Member: m.ID()})
	default:
		// A dead primary's socket is left to drain.
		d.wait(Wait{Reason: v1alpha1.ReasonPromoting, Blocking: true, Poll: true, Message: m.Pod + " still reads what the old primary sent"})
	}
}

// rival is a holder that was made a primary by hand and written to, where what it had
// before may be more than the best has: confirmed writes (rule UnrecordedFork).
func (f *Facts) rival(best *Member) *Member {
	for _, h := range f.Record.MayHold {
		m := f.member(h.MemberID)
		if m == nil || m.Info.Keys == 0 || (!m.isPrimary() && !forked(f.Record, m)) {
			continue
		}
		common := m.Info.BranchedAt - 1
		known := contains(f.Record, m.Info.SecondaryID, common)
		if h.Forked && !known {
			continue // It was compared in the epoch in which it forked.
		}
		if best == nil || common > best.Info.Offset || !known {
			return m
		}
	}
	return nil
}

// rivalry is the wait for a person where two histories hold what the other lacks.
func rivalry(f *Facts, best, rival *Member) Wait {
	choices := []*Member{rival}
	if best != nil {
		choices = append(choices, best)
	}
	return Wait{Reason: v1alpha1.ReasonForkedHistory, Blocking: true, Stuck: true, Message: fmt.Sprintf(
		"%s was made a primary by hand and has %d keys, some of which no other member may hold: %s", rival.Pod, rival.Info.Keys, f.howToAccept(choices...))}
}

// answersAt says that a process answers at the address.
func (f *Facts) answersAt(ip string) bool {
	for i := range f.Members {
		if f.Members[i].IP == ip && f.Members[i].Answers() {
			return true
		}
	}
	return false
}
