package controlplane

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	discoveryapply "k8s.io/client-go/applyconfigurations/discovery/v1"
	storageapply "k8s.io/client-go/applyconfigurations/storage/v1"
	"k8s.io/client-go/kubernetes"

	"seang.org/operator/test/cluster/layout"
	"seang.org/operator/test/cluster/storage"
)

// StorageClass is the name of the default class.
const StorageClass = "standard"

const dnsName = "kube-dns"

// Apply puts the objects into the cluster that every cluster has: the default
// StorageClass and the Service of DNS.
func Apply(ctx context.Context, client kubernetes.Interface) error {
	options := metav1.ApplyOptions{FieldManager: "test-cluster", Force: true}
	if _, err := client.StorageV1().StorageClasses().Apply(ctx, storageClass(), options); err != nil {
		return fmt.Errorf("apply StorageClass %s: %w", StorageClass, err)
	}
	if _, err := client.CoreV1().Services(metav1.NamespaceSystem).Apply(ctx, dnsService(), options); err != nil {
		return fmt.Errorf("apply Service %s: %w", dnsName, err)
	}
	if _, err := client.DiscoveryV1().EndpointSlices(metav1.NamespaceSystem).Apply(ctx, dnsEndpoints(), options); err != nil {
		return fmt.Errorf("apply EndpointSlice %s: %w", dnsName, err)
	}
	return nil
}

func storageClass() *storageapply.StorageClassApplyConfiguration {
	return storageapply.StorageClass(StorageClass).
		WithAnnotations(map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}).
		WithProvisioner(storage.Provisioner).
		WithReclaimPolicy(corev1.PersistentVolumeReclaimDelete).
		WithVolumeBindingMode(storagev1.VolumeBindingWaitForFirstConsumer).
		WithAllowVolumeExpansion(true)
}

func dnsService() *coreapply.ServiceApplyConfiguration {
	return coreapply.Service(dnsName, metav1.NamespaceSystem).
		WithLabels(map[string]string{"k8s-app": dnsName, "kubernetes.io/name": "CoreDNS"}).
		WithSpec(coreapply.ServiceSpec().
			WithClusterIP(layout.DNSServiceAddress).
			WithPorts(
				coreapply.ServicePort().WithName("dns").WithProtocol(corev1.ProtocolUDP).WithPort(53).WithTargetPort(intstr.FromInt32(53)),
				coreapply.ServicePort().WithName("dns-tcp").WithProtocol(corev1.ProtocolTCP).WithPort(53).WithTargetPort(intstr.FromInt32(53)),
			))
}

func dnsEndpoints() *discoveryapply.EndpointSliceApplyConfiguration {
	return discoveryapply.EndpointSlice(dnsName, metav1.NamespaceSystem).
		WithLabels(map[string]string{discoveryv1.LabelServiceName: dnsName, discoveryv1.LabelManagedBy: "test-cluster"}).
		WithAddressType(discoveryv1.AddressTypeIPv4).
		WithEndpoints(discoveryapply.Endpoint().
			WithAddresses(layout.ControlPlaneAddress).
			WithConditions(discoveryapply.EndpointConditions().WithReady(true))).
		WithPorts(
			discoveryapply.EndpointPort().WithName("dns").WithProtocol(corev1.ProtocolUDP).WithPort(53),
			discoveryapply.EndpointPort().WithName("dns-tcp").WithProtocol(corev1.ProtocolTCP).WithPort(53),
		)
}
