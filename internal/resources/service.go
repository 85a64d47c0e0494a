package resources

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
)

// service is what the Services of a cluster have in common.
func service(in Input, name string, spec *corev1ac.ServiceSpecApplyConfiguration) *corev1ac.ServiceApplyConfiguration {
	return corev1ac.Service(name, in.namespace()).
		WithLabels(in.selector()).
		WithOwnerReferences(in.owner()).
		WithSpec(spec.WithPorts(corev1ac.ServicePort().
			WithName(naming.PortNameRedis).
			WithPort(naming.PortRedis).
			WithTargetPort(intstr.FromString(naming.PortNameRedis)).
			WithProtocol(corev1.ProtocolTCP)))
}

// exposure is how the user wants a Service to be exposed; want may be nil.
func exposure(want *v1alpha1.ServiceSpec) (corev1.ServiceType, map[string]string) {
	if want == nil {
		return corev1.ServiceTypeClusterIP, nil
	}
	if want.Type == "" {
		return corev1.ServiceTypeClusterIP, want.Annotations
	}
	return corev1.ServiceType(want.Type), want.Annotations
}
