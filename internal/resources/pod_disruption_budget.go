package resources

import (
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"

	"seang.org/operator/internal/naming"
)

// PodDisruptionBudget lets a drain take one pod of the cluster at a time. While
// a member is down no other is evicted, not even one that looks unhealthy: it
// may hold the last copy.
func PodDisruptionBudget(in Input) *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	return policyv1ac.PodDisruptionBudget(naming.PodDisruption(in.name()), in.namespace()).
		WithLabels(in.selector()).
		WithOwnerReferences(in.owner()).
		WithSpec(policyv1ac.PodDisruptionBudgetSpec().
			WithMaxUnavailable(intstr.FromInt32(1)).
			WithUnhealthyPodEvictionPolicy(policyv1.IfHealthyBudget).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(in.selector())))
}
