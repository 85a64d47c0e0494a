package plan

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
)

// acceptance is a person's decision whose data is kept, for one epoch.
type acceptance struct {
	uid   types.UID
	epoch int64
}

func (f *Facts) acceptance() (acceptance, bool) {
	uid, epoch, found := strings.Cut(f.Accept, "@")
	n, err := strconv.ParseInt(epoch, 10, 64)
	return acceptance{uid: types.UID(uid), epoch: n}, found && err == nil && uid != ""
}

// epoch of the record; 0 if there is none.
func (f *Facts) epoch() int64 {
	if f.Record == nil {
		return 0
	}
	return f.Record.Epoch
}

// accepted is the member whose data a person decided to keep, whatever others may
// hold (rule PersonDecides); nil if there is no such decision for this epoch, or
// the member cannot be promoted.
func (f *Facts) accepted() *Member {
	a, ok := f.acceptance()
	if !ok || a.epoch != f.epoch() {
		return nil
	}
	for i := range f.Members {
		if m := &f.Members[i]; m.PodUID == a.uid && m.Answers() && !m.Leaving {
			return m
		}
	}
	return nil
}

// accept promotes the member that a person chose. It need not wait for a proof, nor
// for holders that are silent: that is what the person decided.
func accept(f *Facts, m *Member) Decision {
	d := Decision{}
	promote(&d, m, promotion(f, m), "a person decided that its data is kept, whatever other members may hold")
	return d
}

// mayFollow is MayFollow, or a person's decision that the primary's data is kept.
func (f *Facts) mayFollow(record *v1alpha1.Record, primary, m *Member) bool {
	return MayFollow(record, m) || (m.Answers() && f.accepted() == primary)
}

// answerAcceptance ends a person's decision: the primary has the data that is kept.
func answerAcceptance(f *Facts, d *Decision, primary *Member) {
	if f.Accept == "" || len(d.Steps) > 0 {
		return
	}
	a, ok := f.acceptance()
	switch {
	case !ok:
		d.answer(RequestAcceptDataLoss, false, fmt.Sprintf("%q is not POD-UID@EPOCH", f.Accept))
	case a.uid == primary.PodUID && (a.epoch == f.Record.Epoch || a.epoch == f.Record.Epoch-1):
		d.answer(RequestAcceptDataLoss, true, "the data of "+primary.Pod+" is kept")
	case a.epoch != f.Record.Epoch:
		d.answer(RequestAcceptDataLoss, false, fmt.Sprintf("it speaks of epoch %d, and this is epoch %d", a.epoch, f.Record.Epoch))
	default:
		d.answer(RequestAcceptDataLoss, false, fmt.Sprintf("the primary %s lives: move it with switchover-to, or name it to discard what others hold", primary.Pod))
	}
}

// howToAccept says how a person decides between members.
func (f *Facts) howToAccept(members ...*Member) string {
	var values []string
	for _, m := range members {
		values = append(values, fmt.Sprintf("%s@%d to keep the data of %s", m.PodUID, f.epoch(), m.Pod))
	}
	return fmt.Sprintf("annotate the RedisCluster with %s: %s", naming.AnnotationAcceptDataLoss, strings.Join(values, ", or "))
}
