package plan

import (
	"fmt"
	"slices"
	"strings"

	"seang.org/operator/api/v1alpha1"
)

// recoverData finds a primary when no process that was in sync lives. Memory is
// gone; what volumes hold decides, and an empty member is never the source
// while another may hold data (rule NeverFromEmpty).
func recoverData(f *Facts, d Decision) Decision {
	if stale := firstWithData(slices.DeleteFunc(f.liveHolders(), f.outdone)); stale != nil {
		d.wait(Wait{Reason: v1alpha1.ReasonNoCandidate, Blocking: true, Stuck: true, Message: fmt.Sprintf(
			"only %s lives and it was not in sync with %s: promoting it would lose acknowledged writes; bring back a pod with a newer copy, or %s", stale.Pod, f.Record.Primary.Pod, f.howToAccept(stale))})
		return d
	}
	if alive := f.unreached(); alive != "" {
		d.wait(Wait{Reason: v1alpha1.ReasonNoCandidate, Blocking: true, Poll: true, Message: fmt.Sprintf(
			"%s accepts no writes, but may live and hold the data: waiting for it to answer or to end", alive)})
		return d
	}
	if f.Persistent {
		return recoverVolumes(f, d)
	}
	var first *Member
	for i := range f.Members {
		m := &f.Members[i]
		switch {
		case !m.Answers():
		case m.Info.Keys > 0:
			d.wait(f.chooseByHand([]*Member{m}))
			return d
		case first == nil && m.Ordinal < f.Wanted && !m.Leaving:
			first = m
		}
	}
	if first != nil {
		d.DataLost = true
		startFrom(f, &d, first, "every member lost its memory at once, and there are no volumes: starting empty")
		return d
	}
	d.wait(Wait{Reason: v1alpha1.ReasonNoCandidate, Blocking: true, Message: "no member answers"})
	return d
}

// outdone says that the volume of the recorded primary is back, with the whole history of
// a process that was not in sync. Another history is no proof that it has less.
func (f *Facts) outdone(stale *Member) bool {
	own := f.pod(f.Record.Primary.Pod)
	return f.Persistent && own != nil && own != stale && own.Answers() && own.Info.Keys > 0 && own.Info.Has(stale.Info)
}

// unreached names the pod of a process that may hold data in its memory and
// neither answers nor is known to have ended; empty if there is none. A primary
// that was fenced by its lease is one, even if the record has moved on.
func (f *Facts) unreached() string {
	ids := f.suspects()
	for _, h := range f.Record.MayHold {
		ids = append(ids, h.MemberID)
	}
	for _, id := range ids {
		if f.member(id) == nil && f.ended(id) == NotProved {
			return id.Pod
		}
	}
	for i := range f.Members {
		if m := &f.Members[i]; m.IP != "" && m.Info == nil && m.Proof == NotProved {
			return m.Pod
		}
	}
	return ""
}

// recoverVolumes prefers the volume of the recorded primary, then the only
// volume of a member that was in sync.
func recoverVolumes(f *Facts, d Decision) Decision {
	own := f.pod(f.Record.Primary.Pod)
	if own != nil && own.Info == nil && own.Unreadable != "" {
		d.wait(unreadable(f, own))
		return d
	}
	if own == nil || !own.Answers() {
		d.wait(Wait{Reason: v1alpha1.ReasonNoCandidate, Blocking: true, Poll: own != nil && own.Info != nil,
			Message: fmt.Sprintf("waiting for %s, whose volume has the newest data, to load it", f.Record.Primary.Pod)})
		return d
	}
	if own.Info.Keys > 0 {
		startFrom(f, &d, own, "its volume is that of the recorded primary")
		return d
	}
	others := otherVolumes(f, &d, own)
	switch {
	case len(d.Waits) > 0:
	case len(others) == 1:
		startFrom(f, &d, others[0], "it is the only member that was in sync and loads its data")
	case len(others) > 1:
		d.wait(f.chooseByHand(others))
	case f.removed() != "":
		d.wait(Wait{Reason: v1alpha1.ReasonNoCandidate, Blocking: true, Stuck: true, Message: fmt.Sprintf(
			"every member is empty, and the volume of %s, which was removed, may hold the data: raise replicas to bring it back", f.removed())})
	default:
		startFrom(f, &d, own, "every member that may hold data answers, and all are empty")
	}
	return d
}

// unreadable is the wait for a person where the newest copy cannot be loaded.
func unreadable(f *Facts, own *Member) Wait {
	message := fmt.Sprintf("%s, whose volume has the newest data, cannot load it (%s): put its files right", own.Pod, own.Trouble.Message)
	var others []*Member
	for i := range f.Members {
		if m := &f.Members[i]; m.Answers() && m.Info.Keys > 0 {
			others = append(others, m)
		}
	}
	if len(others) > 0 {
		message += ", or " + f.howToAccept(others...)
	}
	return Wait{Reason: v1alpha1.ReasonDataUnreadable, Blocking: true, Stuck: true, Message: message}
}

// otherVolumes returns the members with data that were in sync, where the
// recorded primary came back empty, and waits for what is not clear.
func otherVolumes(f *Facts, d *Decision, own *Member) []*Member {
	var others []*Member
	for i := range f.Members {
		m := &f.Members[i]
		switch {
		case m == own:
		case !m.Answers():
			d.wait(Wait{Reason: v1alpha1.ReasonNoCandidate, Blocking: true, Poll: m.Info != nil,
				Message: fmt.Sprintf("%s came back empty and %s, which may hold the data, does not answer", own.Pod, m.Pod)})
		case m.Info.Keys > 0 && f.podInSync(m.Pod):
			others = append(others, m)
		case m.Info.Keys > 0:
			d.wait(f.chooseByHand([]*Member{m}))
		}
	}
	return others
}

// removed names a pod of a holder that does not exist any more, nor is
// wanted; empty if there is none.
func (f *Facts) removed() string {
	for _, h := range f.Record.MayHold {
		if f.pod(h.Pod) == nil {
			return h.Pod
		}
	}
	return ""
}

// podInSync says that a process of the pod was in sync, as recorded.
func (f *Facts) podInSync(pod string) bool {
	for _, h := range f.Record.MayHold {
		if h.Pod == pod && h.InSync {
			return true
		}
	}
	return false
}

func startFrom(f *Facts, d *Decision, m *Member, why string) {
	record := promotion(f, m)
	promote(d, m, record, why)
}

func (f *Facts) chooseByHand(choices []*Member) Wait {
	var message strings.Builder
	message.WriteString("the recorded primary's data is gone; a person must choose between")
	for _, m := range choices {
		fmt.Fprintf(&message, " %s (%d keys)", m.Pod, m.Info.Keys)
	}
	return Wait{Reason: v1alpha1.ReasonNoCandidate, Blocking: true, Stuck: true, Message: message.String() + ": " + f.howToAccept(choices...)}
}

func firstWithData(members []*Member) *Member {
	for _, m := range members {
		if m.Info.Keys > 0 {
			return m
		}
	}
	return nil
}
