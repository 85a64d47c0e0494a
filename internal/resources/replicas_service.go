package resources

import (
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"seang.org/operator/internal/naming"
)

// ReplicasService is the read-only Service: the pods that the operator gave the
// role of a replica.
func ReplicasService(in Input) *corev1ac.ServiceApplyConfiguration {
	spec := corev1ac.ServiceSpec().WithSelector(naming.RoleSelector(in.name(), naming.RoleReplica))
	return exposed(in, naming.ReplicasService(in.name()), in.services().Replicas, spec)
}
