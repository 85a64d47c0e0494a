package resources

import (
	"cmp"

	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
)

// CertificateAPI is that of cert-manager. Its Go module is not needed for one object:
// https://cert-manager.io/docs/reference/api-docs/#cert-manager.io/v1.Certificate.
const (
	CertificateGroup   = "cert-manager.io"
	CertificateVersion = "v1"
	CertificateKind    = "Certificate"
)

// CertificateApplyConfiguration is a Certificate of cert-manager, as far as it is used.
type CertificateApplyConfiguration struct {
	metav1ac.TypeMetaApplyConfiguration    `json:",inline"`
	*metav1ac.ObjectMetaApplyConfiguration `json:"metadata,omitempty"`
	Spec                                   map[string]any `json:"spec"`
}

// Certificate asks cert-manager for a certificate that covers the hosts, and to renew it.
func Certificate(in Input, issuer v1alpha1.IssuerRef, hosts []string) *CertificateApplyConfiguration {
	c := &CertificateApplyConfiguration{ObjectMetaApplyConfiguration: &metav1ac.ObjectMetaApplyConfiguration{}}
	c.WithKind(CertificateKind).WithAPIVersion(CertificateGroup + "/" + CertificateVersion)
	c.WithName(naming.Certificate(in.name())).WithNamespace(in.namespace()).WithLabels(in.selector()).WithOwnerReferences(in.owner())
	names := []any{}
	for _, host := range hosts {
		names = append(names, host)
	}
	c.Spec = map[string]any{
		"secretName": naming.IssuedSecret(in.name()),
		"dnsNames":   names,
		"usages":     []any{"server auth", "client auth", "digital signature", "key encipherment"},
		"privateKey": map[string]any{"algorithm": "ECDSA", "size": int64(256), "rotationPolicy": "Always"},
		"issuerRef": map[string]any{
			"name": issuer.Name, "kind": cmp.Or(issuer.Kind, "Issuer"), "group": cmp.Or(issuer.Group, CertificateGroup),
		},
	}
	return c
}
