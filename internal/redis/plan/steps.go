package plan

import (
	"k8s.io/apimachinery/pkg/types"

	"seang.org/operator/api/v1alpha1"
)

// Step is one thing to do. Its fields beyond Why depend on its type.
type Step interface {
	// Reason says, for people, what is done and for what reason.
	Reason() string
}

// Why is the reason of a step; it is embedded in each.
type Why string

// Reason returns it as text.
func (w Why) Reason() string { return string(w) }

type (
	// WriteRecord stores the record; the steps after it depend on it.
	WriteRecord struct {
		Why
		Record v1alpha1.Record
	}
	// Promote makes the member the primary.
	Promote struct {
		Why
		Member v1alpha1.MemberID
	}
	// Follow makes the member a replica of the address, with TLS or without.
	Follow struct {
		Why
		Member v1alpha1.MemberID
		IP     string
		TLS    bool
	}
	// Detach makes the member a replica of nobody.
	Detach struct {
		Why
		Member v1alpha1.MemberID
	}
	// Switchover moves the primary from From to To without losing a write; it
	// ends with one of them primary.
	Switchover struct {
		Why
		From, To     v1alpha1.MemberID
		FromIP, ToIP string
		// TLS says that From is to follow To with TLS.
		TLS bool
	}
	// PointService makes the primary Service select the pod.
	PointService struct {
		Why
		Pod string
	}
	// Kill ends the process of a pod that hangs: the pod is deleted with next to
	// no grace, and the kubelet's report is the proof.
	Kill struct {
		Why
		Pod string
		UID types.UID
	}
	// Replace deletes a pod so that one of the wanted template takes its place.
	Replace struct {
		Why
		Pod string
		UID types.UID
	}
	// KeepAside has the member save its data into a file that nothing overwrites but
	// the next such step.
	KeepAside struct {
		Why
		Member v1alpha1.MemberID
	}
	// AppendOnly turns the append-only file of the member on.
	AppendOnly struct {
		Why
		Member v1alpha1.MemberID
	}
	// Serve lets the member answer reads while its link is down.
	Serve struct {
		Why
		Member v1alpha1.MemberID
	}
	// Label sets the role label of the pod; an empty role removes it.
	Label struct {
		Why
		Pod, Role string
	}
	// SetLease makes the primary refuse writes unless that many replicas
	// acknowledged recently.
	SetLease struct {
		Why
		Member   v1alpha1.MemberID
		Replicas int
	}
)

// Wait says what keeps the cluster from being as asked.
type Wait struct {
	// Reason is one of the condition reasons of v1alpha1.
	Reason string
	// Message names what is waited for.
	Message string
	// Blocking says that there is no primary until this ends.
	Blocking bool
	// Poll says that no event will tell when this ends: look again soon.
	Poll bool
	// Stuck says that a person must act.
	Stuck bool
}

// Decision is what to do now.
type Decision struct {
	// Steps in their order; if one fails the rest must not be done.
	Steps []Step
	// Record as it should be stored with the next status write; nil if none.
	Record *v1alpha1.Record
	// Primary is the member that accepts writes now; nil if none.
	Primary *Member
	// Service names the pod that the primary Service is to select: the primary, or
	// the one that is about to take over; empty if that is not decided.
	Service string
	// InSync names the replicas that are in sync, by ordinal.
	InSync []string
	// Rebuild names the pods that cannot load their files and are to start without
	// them, once: the primary has the data.
	Rebuild []string
	// Removable says that members beyond the wanted ones may be removed.
	Removable bool
	// Waits is empty when all is as asked.
	Waits []Wait
	// DataLost says that this decision starts the cluster empty after it held data.
	DataLost bool
	// Answers end requests of people.
	Answers []Answer
	// FailedOver names the primary that this decision replaces unplanned.
	FailedOver string
}

// Request is what a person can ask.
type Request string

// Requests of people.
const (
	// RequestSwitchover is Facts.MoveTo.
	RequestSwitchover Request = "Switchover"
	// RequestAcceptDataLoss is Facts.Accept.
	RequestAcceptDataLoss Request = "AcceptDataLoss"
)

// Answer says what became of a request.
type Answer struct {
	Request Request
	Done    bool
	Message string
}

func (d *Decision) answer(request Request, done bool, message string) {
	d.Answers = append(d.Answers, Answer{Request: request, Done: done, Message: message})
}

func (d *Decision) step(s Step) { d.Steps = append(d.Steps, s) }

func (d *Decision) wait(w Wait) { d.Waits = append(d.Waits, w) }
