package resources

import (
	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"seang.org/operator/internal/naming"
)

// SystemSecret holds the operator's own users, under the keys of naming.
func SystemSecret(in Input, data map[string][]byte) *corev1ac.SecretApplyConfiguration {
	return corev1ac.Secret(naming.SystemSecret(in.name()), in.namespace()).
		WithLabels(in.selector()).
		WithOwnerReferences(in.owner()).
		WithType(corev1.SecretTypeOpaque).
		WithData(data)
}
