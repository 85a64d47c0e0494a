package resources

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"

	"seang.org/operator/internal/naming"
)

// NetworkPolicy lets members, clients and the operator, whose pods are in the namespace
// operator, connect to the ports of Redis, and nobody to any other.
func NetworkPolicy(in Input, operator string) (*networkingv1ac.NetworkPolicyApplyConfiguration, error) {
	clients, err := clients(in)
	if err != nil {
		return nil, err
	}
	rules := []*networkingv1ac.NetworkPolicyIngressRuleApplyConfiguration{
		redisFrom(pods(in.selector()), pods(naming.OperatorPods()).WithNamespaceSelector(metav1ac.LabelSelector().
			WithMatchLabels(map[string]string{corev1.LabelMetadataName: operator}))),
		redisFrom(clients...),
	}
	return networkingv1ac.NetworkPolicy(naming.NetworkPolicy(in.name()), in.namespace()).
		WithLabels(in.selector()).
		WithOwnerReferences(in.owner()).
		WithSpec(networkingv1ac.NetworkPolicySpec().
			WithPodSelector(metav1ac.LabelSelector().WithMatchLabels(in.selector())).
			WithPolicyTypes(networkingv1.PolicyTypeIngress).
			WithIngress(rules...)), nil
}

// redisFrom lets peers connect to Redis, with TLS or without: what a member does not
// serve is closed anyway. No peers are everybody.
func redisFrom(peers ...*networkingv1ac.NetworkPolicyPeerApplyConfiguration) *networkingv1ac.NetworkPolicyIngressRuleApplyConfiguration {
	port := func(number int32) *networkingv1ac.NetworkPolicyPortApplyConfiguration {
		return networkingv1ac.NetworkPolicyPort().WithProtocol(corev1.ProtocolTCP).WithPort(intstr.FromInt32(number))
	}
	return networkingv1ac.NetworkPolicyIngressRule().WithPorts(port(naming.PortRedis), port(naming.PortTLS)).WithFrom(peers...)
}

func pods(labels map[string]string) *networkingv1ac.NetworkPolicyPeerApplyConfiguration {
	return networkingv1ac.NetworkPolicyPeer().WithPodSelector(metav1ac.LabelSelector().WithMatchLabels(labels))
}

// clients are the peers that the user names or, by default, the pods of the namespace;
// none where a Service is for everybody.
func clients(in Input) ([]*networkingv1ac.NetworkPolicyPeerApplyConfiguration, error) {
	if want := in.Cluster.Spec.NetworkPolicy; want != nil && len(want.Clients) > 0 {
		peers := make([]*networkingv1ac.NetworkPolicyPeerApplyConfiguration, len(want.Clients))
		for i := range want.Clients {
			peers[i] = networkingv1ac.NetworkPolicyPeer()
			if err := convert(fmt.Sprintf("networkPolicy.clients[%d]", i), &want.Clients[i], peers[i]); err != nil {
				return nil, err
			}
		}
		return peers, nil
	}
	if services := in.services(); isExposed(services.Primary) || isExposed(services.Replicas) {
		return nil, nil
	}
	return []*networkingv1ac.NetworkPolicyPeerApplyConfiguration{pods(nil)}, nil
}
