package resources

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
)

// service is what the Services of a cluster have in common.
func service(in Input, name string, spec *corev1ac.ServiceSpecApplyConfiguration) *corev1ac.ServiceApplyConfiguration {
	return corev1ac.Service(name, in.namespace()).
		WithLabels(in.selector()).
		WithOwnerReferences(in.owner()).
		WithSpec(spec.WithPorts(ports(in)...))
}

func ports(in Input) []*corev1ac.ServicePortApplyConfiguration {
	port := func(name string, number int32) *corev1ac.ServicePortApplyConfiguration {
		return corev1ac.ServicePort().WithName(name).WithPort(number).
			WithTargetPort(intstr.FromString(name)).WithProtocol(corev1.ProtocolTCP)
	}
	plain, secure := port(naming.PortNameRedis, naming.PortRedis), port(naming.PortNameTLS, naming.PortTLS)
	switch in.Ports {
	case PortsSecure:
		return []*corev1ac.ServicePortApplyConfiguration{secure}
	case PortsBoth:
		return []*corev1ac.ServicePortApplyConfiguration{plain, secure}
	case PortsPlain:
	}
	return []*corev1ac.ServicePortApplyConfiguration{plain}
}

// services says how the user wants the Services to be exposed.
func (in Input) services() v1alpha1.ServicesSpec {
	return ptr.Deref(in.Cluster.Spec.Service, v1alpha1.ServicesSpec{})
}

// exposed is a Service that is exposed as the user wants it; want may be nil.
func exposed(in Input, name string, want *v1alpha1.ServiceSpec, spec *corev1ac.ServiceSpecApplyConfiguration) *corev1ac.ServiceApplyConfiguration {
	exposure := ptr.Deref(want, v1alpha1.ServiceSpec{})
	// Without a policy a Service would keep the addresses that it once had.
	policy := cmp.Or(corev1.IPFamilyPolicy(exposure.IPFamilyPolicy), corev1.IPFamilyPolicySingleStack)
	spec.WithType(cmp.Or(corev1.ServiceType(exposure.Type), corev1.ServiceTypeClusterIP)).WithIPFamilyPolicy(policy)
	for _, family := range exposure.IPFamilies {
		spec.WithIPFamilies(corev1.IPFamily(family))
	}
	if exposure.ExternalTrafficPolicy != "" {
		spec.WithExternalTrafficPolicy(corev1.ServiceExternalTrafficPolicy(exposure.ExternalTrafficPolicy))
	}
	for _, ranges := range exposure.LoadBalancerSourceRanges {
		spec.WithLoadBalancerSourceRanges(string(ranges))
	}
	return service(in, name, spec).WithAnnotations(exposure.Annotations)
}

// isExposed says that a Service is to be reached from outside of Kubernetes.
func isExposed(want *v1alpha1.ServiceSpec) bool {
	return want != nil && want.Type != "" && corev1.ServiceType(want.Type) != corev1.ServiceTypeClusterIP
}
