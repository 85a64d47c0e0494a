package resources

import (
	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"seang.org/operator/internal/naming"
)

// TLSSecret holds the certificate that members serve: a copy of what the user or
// cert-manager gave, since that may be broken tomorrow.
func TLSSecret(in Input, files map[string][]byte) *corev1ac.SecretApplyConfiguration {
	return corev1ac.Secret(naming.TLSSecret(in.name()), in.namespace()).
		WithLabels(in.selector()).
		WithOwnerReferences(in.owner()).
		WithType(corev1.SecretTypeOpaque).
		WithData(files)
}
