package status

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/redis/plan"
	"seang.org/operator/internal/redis/versions"
)

// conditions computes every condition, the summary last.
func conditions(in Input) []metav1.Condition {
	parts := []metav1.Condition{accepted(in), paused(in), available(in), progressing(in), degraded(in), versionSupported(in)}
	if !in.CertificateExpires.IsZero() {
		parts = append(parts, certificateExpiring(in))
	}
	return append(parts, ready(in))
}

// certificateExpiring says that a certificate was not renewed when it should have been.
func certificateExpiring(in Input) metav1.Condition {
	when := in.CertificateExpires.UTC().Format(time.RFC3339)
	switch {
	case in.Now.After(in.CertificateExpires):
		return condition(v1alpha1.ConditionCertificateExpiring, metav1.ConditionTrue, v1alpha1.ReasonCertificateExpired, "the certificate expired at "+when+": renew it")
	case in.Now.After(in.CertificateWarnAt):
		return condition(v1alpha1.ConditionCertificateExpiring, metav1.ConditionTrue, v1alpha1.ReasonCertificateNotRenewed, "the certificate expires at "+when+": renew it")
	}
	return condition(v1alpha1.ConditionCertificateExpiring, metav1.ConditionFalse, v1alpha1.ReasonCertificateValid, "the certificate is valid until "+when)
}

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

func accepted(in Input) metav1.Condition {
	if in.Rejected != nil {
		return condition(v1alpha1.ConditionSpecAccepted, metav1.ConditionFalse, in.Rejected.Reason, in.Rejected.Message)
	}
	return condition(v1alpha1.ConditionSpecAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted, "the spec can be used")
}

func paused(in Input) metav1.Condition {
	if in.Paused {
		return condition(v1alpha1.ConditionPaused, metav1.ConditionTrue, v1alpha1.ReasonPausedByUser, "nothing is changed while the annotation cache.seang.org/paused is \"true\"")
	}
	return condition(v1alpha1.ConditionPaused, metav1.ConditionFalse, v1alpha1.ReasonNotPaused, "the operator acts")
}

func available(in Input) metav1.Condition {
	primary := in.Decision.Primary
	switch {
	case !in.Observed:
		return condition(v1alpha1.ConditionAvailable, metav1.ConditionUnknown, v1alpha1.ReasonUnknown, "the members were not looked at yet")
	case primary != nil && primary.CannotSave():
		return condition(v1alpha1.ConditionAvailable, metav1.ConditionFalse, v1alpha1.ReasonNotSaving, primary.Pod+" accepts no writes, since it cannot save to its volume")
	case primary != nil && in.Service == in.Decision.Service:
		return condition(v1alpha1.ConditionAvailable, metav1.ConditionTrue, v1alpha1.ReasonPrimaryAvailable, primary.Pod+" accepts writes")
	case primary != nil:
		return condition(v1alpha1.ConditionAvailable, metav1.ConditionFalse, v1alpha1.ReasonPromoting, "the primary Service does not select "+primary.Pod+" yet")
	}
	if wait := firstBlocking(in); wait != nil {
		return condition(v1alpha1.ConditionAvailable, metav1.ConditionFalse, wait.Reason, wait.Message)
	}
	return condition(v1alpha1.ConditionAvailable, metav1.ConditionFalse, v1alpha1.ReasonPromoting, "a primary is being promoted")
}

func progressing(in Input) metav1.Condition {
	if why := unready(in); why != nil && stuck(in) == nil && in.Rejected == nil && !in.Paused {
		return condition(v1alpha1.ConditionProgressing, metav1.ConditionTrue, why.Reason, why.Message)
	}
	return condition(v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonUpToDate, "nothing is being changed")
}

// degraded says that something is lost that was there before, or needs a person.
func degraded(in Input) metav1.Condition {
	why := unready(in)
	if s := stuck(in); s != nil {
		why = s
	}
	if why == nil || in.Deleting || (stuck(in) == nil && !wasComplete(in.Cluster)) {
		return condition(v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonHealthy, "nothing is lost")
	}
	return condition(v1alpha1.ConditionDegraded, metav1.ConditionTrue, why.Reason, why.Message)
}

// versionSupported judges what the primary runs; while none is known, the last verdict
// stands.
func versionSupported(in Input) metav1.Condition {
	if in.Version == "" {
		if last := meta.FindStatusCondition(in.Cluster.Status.Conditions, v1alpha1.ConditionVersionSupported); last != nil {
			return condition(last.Type, last.Status, last.Reason, last.Message)
		}
		return condition(v1alpha1.ConditionVersionSupported, metav1.ConditionUnknown, v1alpha1.ReasonUnknown, "no primary told its version yet")
	}
	flavour, number, _ := strings.Cut(in.Version, " ")
	switch verdict := versions.Judge(flavour, number); {
	case verdict.Unsupported != "":
		return condition(v1alpha1.ConditionVersionSupported, metav1.ConditionFalse, v1alpha1.ReasonVersionUnsupported, verdict.Unsupported)
	case verdict.Vulnerable != "":
		return condition(v1alpha1.ConditionVersionSupported, metav1.ConditionFalse, v1alpha1.ReasonVersionVulnerable, verdict.Vulnerable)
	}
	return condition(v1alpha1.ConditionVersionSupported, metav1.ConditionTrue, v1alpha1.ReasonSupported, in.Version+" is supported, and no flaw of it is known")
}

// wasComplete says that the cluster was as this generation asks, and lost it
// since: this is the one place where the last status is history, not decision.
func wasComplete(cluster *v1alpha1.RedisCluster) bool {
	return cluster.Status.ObservedGeneration == cluster.Generation &&
		(meta.IsStatusConditionTrue(cluster.Status.Conditions, v1alpha1.ConditionReady) ||
			meta.IsStatusConditionTrue(cluster.Status.Conditions, v1alpha1.ConditionDegraded))
}

func ready(in Input) metav1.Condition {
	if why := unready(in); why != nil {
		return condition(v1alpha1.ConditionReady, metav1.ConditionFalse, why.Reason, why.Message)
	}
	return condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady, "writes are accepted, every replica is in sync and the whole spec is in force")
}

// unready is the first reason for which the cluster is not as asked, nil if none.
func unready(in Input) *Problem {
	switch {
	case in.Deleting:
		return &Problem{v1alpha1.ReasonDeleting, "the RedisCluster is being deleted"}
	case in.Rejected != nil:
		return in.Rejected
	}
	if wait := firstBlocking(in); wait != nil {
		return wait
	}
	if in.Failed != nil {
		return &Problem{v1alpha1.ReasonReconcileError, in.Failed.Error()}
	}
	for _, wait := range waits(in) {
		return &Problem{wait.Reason, wait.Message}
	}
	switch {
	case !in.Observed:
		return &Problem{v1alpha1.ReasonUnknown, "the members were not looked at yet"}
	case in.Decision.Primary == nil || in.Service != in.Decision.Service:
		return &Problem{v1alpha1.ReasonPromoting, "a primary is being promoted"}
	case len(in.Decision.Steps) > 0:
		return &Problem{v1alpha1.ReasonConfiguring, in.Decision.Steps[0].Reason()}
	}
	return nil
}

func waits(in Input) []plan.Wait {
	return append(append([]plan.Wait{}, in.Decision.Waits...), in.Waits...)
}

func firstBlocking(in Input) *Problem {
	for _, wait := range waits(in) {
		if wait.Blocking {
			return &Problem{wait.Reason, wait.Message}
		}
	}
	return nil
}

func stuck(in Input) *Problem {
	for _, wait := range waits(in) {
		if wait.Stuck {
			return &Problem{wait.Reason, wait.Message}
		}
	}
	return nil
}
