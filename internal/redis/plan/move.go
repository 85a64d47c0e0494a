package plan

import (
	"fmt"

	"seang.org/operator/api/v1alpha1"
)

// wantsMove says that the primary is to move, once it can.
func (f *Facts) wantsMove(primary *Member) bool {
	return primary.Leaving || primary.Outdated || primary.Ordinal >= f.Wanted || (f.MoveTo != "" && f.MoveTo != primary.Pod)
}

// handOver is the member to which the primary moves from a pod that leaves or is
// superfluous, or to which a person wants it to move; nil if there is none.
func handOver(f *Facts, d *Decision, record *v1alpha1.Record, primary *Member) *Member {
	switch {
	case primary.Leaving || primary.Ordinal >= f.Wanted:
		target := successor(f, record, primary)
		if target == nil && primary.Ordinal >= f.Wanted {
			d.wait(Wait{Reason: v1alpha1.ReasonScaling, Poll: true,
				Message: fmt.Sprintf("%s must hand over before it is removed, and no replica that stays is in sync", primary.Pod)})
		}
		return target
	case f.MoveTo == "":
	case f.MoveTo == primary.Pod:
		d.answer(RequestSwitchover, true, primary.Pod+" is the primary")
	default:
		target := f.pod(f.MoveTo)
		if why := refusal(f, record, primary, target); why != "" {
			d.answer(RequestSwitchover, false, fmt.Sprintf("%s stays primary: %s %s", primary.Pod, f.MoveTo, why))
			return nil
		}
		return target
	}
	return nil
}

// refusal says why a member cannot take over; empty if it can.
func refusal(f *Facts, record *v1alpha1.Record, primary, m *Member) string {
	switch {
	case m == nil || m.PodUID == "":
		return "is no pod of this RedisCluster"
	case m.Ordinal >= f.Wanted, m.Leaving:
		return "is being removed"
	case !m.Answers():
		return "does not answer"
	case holder(record, m.ID()) == nil, !InSync(primary, m):
		return "is not in sync"
	}
	return ""
}

// move moves the primary to the target, if there is one. The Service goes first, and
// kube-proxy gets the time to follow: new connections are those of the target by the
// time at which the old primary is demoted, and the old ones write until then (safety
// rule 6, docs/adr/0003-service-before-switchover.md). A primary that leaves has no
// time to wait for a moment at which kube-proxy is quick.
func move(f *Facts, d *Decision, record *v1alpha1.Record, primary, target *Member) {
	switch {
	case target == nil:
		if f.Service != primary.Pod && f.wantsMove(primary) && len(d.Steps) == 0 {
			point(d, primary)
		}
		return
	case f.Service != target.Pod && !f.ProxiesIdle && !primary.Leaving:
		d.Service = f.Service
	case f.Service != target.Pod:
		point(d, target)
	case !f.ProxiesFollowed:
		d.Service = target.Pod
	default:
		d.Service = target.Pod
		d.step(WriteRecord{Why: Why(fmt.Sprintf("%s is to take over from %s", target.Pod, primary.Pod)), Record: succession(f, target, record.MayHold)})
		d.step(switchover(primary, target))
		d.Record = nil
	}
	d.wait(Wait{Reason: v1alpha1.ReasonPromoting, Poll: true, Message: fmt.Sprintf("%s is about to hand over to %s", primary.Pod, target.Pod)})
}

func point(d *Decision, to *Member) {
	d.Service = to.Pod
	d.step(PointService{Why: Why("the primary Service must select " + to.Pod), Pod: to.Pod})
}

func switchover(from, to *Member) Switchover {
	return Switchover{Why: Why(fmt.Sprintf("%s hands over to %s, which is in sync", from.Pod, to.Pod)),
		From: from.ID(), To: to.ID(), FromIP: from.IP, ToIP: to.IP, TLS: from.secures(to)}
}

// successor is the member that can take over: of those of the wanted template, if
// there are any, the one of the lowest ordinal.
func successor(f *Facts, record *v1alpha1.Record, primary *Member) *Member {
	var found *Member
	for i := range f.Members {
		m := &f.Members[i]
		if m != primary && refusal(f, record, primary, m) == "" && (found == nil || (found.Outdated && !m.Outdated)) {
			found = m
		}
	}
	return found
}
