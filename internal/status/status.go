// Package status turns what a pass found and decided into the status of a
// RedisCluster. It is pure; it never decides what the operator does.
package status

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/plan"
)

// Input is what a status is made of.
type Input struct {
	// Cluster as it was read, with its last status.
	Cluster *v1alpha1.RedisCluster
	// Now is the time of the pass.
	Now metav1.Time
	// Paused and Deleting say why nothing is done.
	Paused, Deleting bool
	// Rejected says why the spec cannot be used; nil if it can.
	Rejected *Problem
	// Failed is the error that ended the pass; nil if none.
	Failed error
	// Observed says that the members were looked at in this pass.
	Observed bool
	// Decision of the planner in this pass.
	Decision plan.Decision
	// Service names the pod that the primary Service selects.
	Service string
	// Waits of other parts than the planner.
	Waits []plan.Wait
	// MaxMemory in force on every member, in bytes; 0 if not known.
	MaxMemory int64
	// Version that the primary reports; empty if not known.
	Version string
	// NetworkPolicy is its name; empty for none.
	NetworkPolicy string
	// CertificateExpires is when the certificate that members serve does; zero if they
	// serve none. A person should hear of it from CertificateWarnAt on.
	CertificateExpires, CertificateWarnAt time.Time
}

// Problem is a reason of v1alpha1 with its message.
type Problem struct{ Reason, Message string }

// Compute returns the status.
func Compute(in Input) v1alpha1.RedisClusterStatus {
	out := *in.Cluster.Status.DeepCopy()
	name := in.Cluster.Name
	out.ObservedGeneration = in.Cluster.Generation
	out.Selector = labels.SelectorFromSet(naming.RoleSelector(name, naming.RoleReplica)).String()
	out.Services = &v1alpha1.ServiceNames{Primary: naming.PrimaryService(name), Replicas: naming.ReplicasService(name), Nodes: naming.NodesService(name)}
	out.NetworkPolicy = in.NetworkPolicy
	out.Binding = &v1alpha1.Binding{Name: naming.AppSecret(name)}
	if in.Observed {
		observed(in, &out)
	}
	for _, condition := range conditions(in) {
		condition.ObservedGeneration = in.Cluster.Generation
		condition.LastTransitionTime = in.Now
		wasReady := meta.IsStatusConditionTrue(in.Cluster.Status.Conditions, v1alpha1.ConditionReady)
		changed := meta.SetStatusCondition(&out.Conditions, condition)
		if condition.Type == v1alpha1.ConditionReady && condition.Status == metav1.ConditionTrue && (changed || !wasReady) {
			out.LastSyncTimestamp = &in.Now
		}
	}
	if in.Observed && in.CertificateExpires.IsZero() {
		meta.RemoveStatusCondition(&out.Conditions, v1alpha1.ConditionCertificateExpiring)
	}
	out.Phase = phase(in, &out)
	return out
}

func observed(in Input, out *v1alpha1.RedisClusterStatus) {
	// The decision has them in the order in which they joined.
	out.InSyncReplicas = slices.Clone(in.Decision.InSync)
	slices.Sort(out.InSyncReplicas)
	out.ActiveReplicas = int32(len(in.Decision.InSync)) //nolint:gosec // At most a few dozen members.
	if in.Decision.Record != nil {
		out.Record = in.Decision.Record.DeepCopy()
	}
	out.Primary = ""
	if in.Decision.Primary != nil {
		out.Primary = in.Decision.Primary.Pod
	}
	if in.MaxMemory > 0 && (out.MaxMemory == nil || out.MaxMemory.Value() != in.MaxMemory) {
		out.MaxMemory = resource.NewQuantity(in.MaxMemory, resource.BinarySI)
	}
	if in.Version != "" {
		out.RedisVersion = in.Version
	}
}

// phase summarises the conditions.
func phase(in Input, out *v1alpha1.RedisClusterStatus) v1alpha1.Phase {
	switch {
	case meta.IsStatusConditionTrue(out.Conditions, v1alpha1.ConditionReady):
		return v1alpha1.PhaseReady
	case in.Rejected != nil || stuck(in) != nil:
		return v1alpha1.PhaseFailed
	case !in.Observed && in.Cluster.Status.Phase == "":
		return v1alpha1.PhasePending
	case !in.Observed && in.Paused:
		return in.Cluster.Status.Phase
	}
	return v1alpha1.PhaseProvisioning
}
