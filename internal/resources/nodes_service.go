package resources

import (
	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"seang.org/operator/internal/naming"
)

// NodesService is the headless Service that gives each pod a stable name, also
// to one that is not ready.
func NodesService(in Input) *corev1ac.ServiceApplyConfiguration {
	spec := corev1ac.ServiceSpec().
		WithType(corev1.ServiceTypeClusterIP).
		WithClusterIP(corev1.ClusterIPNone).
		WithPublishNotReadyAddresses(true).
		WithSelector(in.selector())
	return service(in, naming.NodesService(in.name()), spec)
}
