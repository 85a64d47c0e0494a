package plan

import (
	"fmt"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis"
)

// keepAside saves what a member has on its volume before it follows the primary,
// where the record does not say that the primary has it too: an old primary that
// wrote on, or one whose append-only file tells no history (rule KeepAside). False
// while that goes on.
func keepAside(f *Facts, d *Decision, record *v1alpha1.Record, primary, m *Member) bool {
	switch {
	case !m.Persistent, m.Info.Keys == 0, continues(record, m), f.accepted() == primary:
		return true
	case !m.KeptAside:
		if m.Info.Role == redis.RolePrimary {
			d.step(Detach{Why: "it is not the primary any more", Member: m.ID()})
		}
		d.step(KeepAside{Why: Why(fmt.Sprintf("%s has %d keys of a history that the record does not contain, and is to follow %s", m.Pod, m.Info.Keys, primary.Pod)), Member: m.ID()})
	case m.Info.Saving:
	case m.Info.SaveFailed:
		d.wait(Wait{Reason: v1alpha1.ReasonNotKeptAside, Poll: true, Stuck: true, Message: fmt.Sprintf(
			"%s cannot save the %d keys that only it may hold: make room on its volume, or %s", m.Pod, m.Info.Keys, f.howToAccept(primary))})
		return false
	default:
		return true
	}
	d.wait(Wait{Reason: v1alpha1.ReasonReplicaSyncing, Poll: true, Message: fmt.Sprintf("%s saves what only it may hold in %s of its volume", m.Pod, naming.FileAside)})
	return false
}

// rebuild names the members whose files cannot be loaded. They are renamed only while
// a primary answers: it has what was acknowledged, and before that an unreadable
// file may be the last copy (rule RebuildFromPrimary).
func rebuild(f *Facts, primary *Member) []string {
	var pods []string
	for i := range f.Members {
		if m := &f.Members[i]; m != primary && m.Unreadable != "" && m.Info == nil {
			pods = append(pods, m.Pod)
		}
	}
	return pods
}

// saving reports a member whose Redis cannot write to its volume. A primary refuses
// writes then; to move it would not help, since all volumes are of one size. Redis
// tries again by itself, and nothing tells when that succeeds.
func saving(d *Decision, primary, m *Member) {
	if !m.CannotSave() || (m != primary && !m.follows(primary)) {
		return
	}
	d.wait(Wait{Reason: v1alpha1.ReasonNotSaving, Poll: true, Message: fmt.Sprintf(
		"%s cannot save to its volume, and as primary accepts no writes until it can: make room or raise spec.storage.size; its log has the error", m.Pod)})
}
