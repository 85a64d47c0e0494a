package resources

import (
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"seang.org/operator/internal/naming"
)

// PrimaryService is the read-write Service. Its selector names one pod, so that
// one patch moves the primary and changes the endpoints exactly once; readiness
// has no say in it, since the operator alone decides who is primary. Without
// a primary the pod name is empty, which no pod matches.
func PrimaryService(in Input) *corev1ac.ServiceApplyConfiguration {
	spec := corev1ac.ServiceSpec().
		WithPublishNotReadyAddresses(true).
		WithSelector(map[string]string{
			naming.LabelInstance: in.name(),
			naming.LabelPodName:  in.Primary,
		})
	return exposed(in, naming.PrimaryService(in.name()), in.services().Primary, spec)
}
