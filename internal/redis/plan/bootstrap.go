package plan

import (
	"fmt"

	"seang.org/operator/api/v1alpha1"
)

// bootstrap starts a cluster that has no record. Only one with no data
// anywhere starts by itself (rule NoRecordNoData).
func bootstrap(f *Facts) Decision {
	d := Decision{}
	for i := range f.Members {
		m := &f.Members[i]
		if reason := holdsUnknownData(m); reason != "" {
			message := fmt.Sprintf("no record says who holds the data, and %s %s", m.Pod, reason)
			if m.Answers() {
				message += "; " + f.howToAccept(m)
			}
			d.wait(Wait{Reason: v1alpha1.ReasonNoCandidate, Blocking: true, Stuck: m.Answers(), Message: message})
		}
	}
	first := f.firstEmpty()
	if first == nil {
		wait := absent(&f.Members[0])
		wait.Blocking = true
		d.wait(wait)
	}
	if len(d.Waits) > 0 {
		return d
	}
	if late := f.late(); late != nil {
		wait := absent(late)
		wait.Blocking, wait.Poll = true, true
		d.wait(wait)
		return d
	}
	record := promotion(f, first)
	admitBoot(f, &record, first)
	d.step(WriteRecord{Why: Why(fmt.Sprintf("%s is to be the first primary", first.Pod)), Record: record})
	d.step(Promote{Why: "a new cluster starts with its first member", Member: first.ID()})
	return d
}

// late is a wanted member that may answer in a moment, while the first waits for it
// still.
func (f *Facts) late() *Member {
	if f.BootingFor >= bootPatience {
		return nil
	}
	for i := range f.Members {
		if m := &f.Members[i]; m.Ordinal < f.Wanted && !m.Answers() && (m.Trouble.Reason == "" || m.Trouble.Reason == v1alpha1.ReasonPodNotRunning) {
			return m
		}
	}
	return nil
}

// Booting says that the first member of a new cluster could become primary.
func (f *Facts) Booting() bool {
	return (f.Record == nil || f.Record.Epoch == 0) && f.firstEmpty() != nil
}

// admitBoot adds every other member that answers to the holders, so that one
// record suffices for all that boot together.
func admitBoot(f *Facts, record *v1alpha1.Record, primary *Member) {
	for i := range f.Members {
		if m := &f.Members[i]; m != primary && m.Answers() && !m.Leaving && m.Ordinal < f.Wanted {
			record.MayHold = append(record.MayHold, v1alpha1.Holder{MemberID: m.ID()})
		}
	}
}

// holdsUnknownData says why a member without a record may hold data, or "".
func holdsUnknownData(m *Member) string {
	switch {
	case m.Answers() && m.Info.Keys > 0:
		return fmt.Sprintf("has %d keys", m.Info.Keys)
	case m.OldClaim && !m.Answers():
		return "has an older volume that was not read yet"
	case m.Info != nil && m.Info.Loading:
		return "loads data"
	}
	return ""
}

// firstEmpty is the wanted member of the lowest ordinal, if it answers and is empty.
func (f *Facts) firstEmpty() *Member {
	for i := range f.Members {
		if m := &f.Members[i]; m.Ordinal == 0 && m.empty() && !m.Leaving {
			return m
		}
	}
	return nil
}
