package resources

import (
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
)

// ReplicasService is the read-only Service: the pods that the operator gave the
// role of a replica.
func ReplicasService(in Input) *corev1ac.ServiceApplyConfiguration {
	var want *v1alpha1.ServiceSpec
	if in.Cluster.Spec.Service != nil {
		want = in.Cluster.Spec.Service.Replicas
	}
	kind, annotations := exposure(want)
	spec := corev1ac.ServiceSpec().
		WithType(kind).
		WithSelector(naming.RoleSelector(in.name(), naming.RoleReplica))
	return service(in, naming.ReplicasService(in.name()), spec).WithAnnotations(annotations)
}
