package resources

import (
	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"seang.org/operator/api/v1alpha1"
)

// Weights of the operator's own spread, 1 to 100: another node counts more than
// another zone.
const (
	weightNode = 100
	weightZone = 50
)

// schedule copies the scheduling fields of the spec to the pod.
func schedule(in Input, pod *corev1ac.PodSpecApplyConfiguration) error {
	var want v1alpha1.SchedulingSpec
	if in.Cluster.Spec.Scheduling != nil {
		want = *in.Cluster.Spec.Scheduling
	}
	if err := scheduleAffinity(in, want, pod); err != nil {
		return err
	}
	for i := range want.Tolerations {
		toleration := corev1ac.Toleration()
		if err := convert("scheduling.tolerations", &want.Tolerations[i], toleration); err != nil {
			return err
		}
		pod.WithTolerations(toleration)
	}
	for i := range want.TopologySpreadConstraints {
		constraint := corev1ac.TopologySpreadConstraint()
		if err := convert("scheduling.topologySpreadConstraints", &want.TopologySpreadConstraints[i], constraint); err != nil {
			return err
		}
		// To Kubernetes, no selector means no pods.
		if selector := constraint.LabelSelector; selector == nil || len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
			constraint.WithLabelSelector(metav1ac.LabelSelector().WithMatchLabels(in.selector()))
		}
		pod.WithTopologySpreadConstraints(constraint)
	}
	if want.PriorityClassName != "" {
		pod.WithPriorityClassName(want.PriorityClassName)
	}
	pod.WithNodeSelector(want.NodeSelector)
	return nil
}

// scheduleAffinity adds the operator's own spread unless the user has chosen one.
func scheduleAffinity(in Input, want v1alpha1.SchedulingSpec, pod *corev1ac.PodSpecApplyConfiguration) error {
	affinity := corev1ac.Affinity()
	if err := convert("scheduling.affinity", want.Affinity, affinity); err != nil {
		return err
	}
	if affinity.PodAntiAffinity == nil && len(want.TopologySpreadConstraints) == 0 {
		affinity.WithPodAntiAffinity(ownSpread(in))
	}
	if affinity.NodeAffinity != nil || affinity.PodAffinity != nil || affinity.PodAntiAffinity != nil {
		pod.WithAffinity(affinity)
	}
	return nil
}

// ownSpread prefers a node, then a zone, without another member. It is an
// anti-affinity because the scheduler skips *all* soft topology spread
// constraints on a node that lacks the topology key of one of them: on nodes
// without zones a constraint for zones would switch off the one for nodes.
func ownSpread(in Input) *corev1ac.PodAntiAffinityApplyConfiguration {
	prefer := func(weight int32, topologyKey string) *corev1ac.WeightedPodAffinityTermApplyConfiguration {
		return corev1ac.WeightedPodAffinityTerm().
			WithWeight(weight).
			WithPodAffinityTerm(corev1ac.PodAffinityTerm().
				WithTopologyKey(topologyKey).
				WithLabelSelector(metav1ac.LabelSelector().WithMatchLabels(in.selector())))
	}
	return corev1ac.PodAntiAffinity().WithPreferredDuringSchedulingIgnoredDuringExecution(
		prefer(weightNode, corev1.LabelHostname),
		prefer(weightZone, corev1.LabelTopologyZone),
	)
}
