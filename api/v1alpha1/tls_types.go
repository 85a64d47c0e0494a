package v1alpha1

// ClientAuth says whether clients show certificates.
// +kubebuilder:validation:Enum=None;Optional;Required
type ClientAuth string

const (
	// ClientAuthNone asks for none: clients log in with a password.
	ClientAuthNone ClientAuth = "None"
	// ClientAuthOptional refuses a client whose certificate is not of a CA that is trusted,
	// and takes one without a certificate.
	ClientAuthOptional ClientAuth = "Optional"
	// ClientAuthRequired refuses a client without a certificate too. It logs in with a
	// password all the same.
	ClientAuthRequired ClientAuth = "Required"
)

// Plaintext says what becomes of connections without TLS.
// +kubebuilder:validation:Enum=Refused;Allowed
type Plaintext string

const (
	// PlaintextRefused closes the port without TLS, and the connections to it.
	PlaintextRefused Plaintext = "Refused"
	// PlaintextAllowed keeps it open beside the other, for applications to move from one
	// to the other.
	PlaintextAllowed Plaintext = "Allowed"
)

// TLSSpec says how connections are encrypted: those of applications, between members,
// and of the operator.
//
// +kubebuilder:validation:XValidation:rule="has(self.secretName) != has(self.issuerRef)",message="tls needs either secretName or issuerRef, and not both"
type TLSSpec struct {
	// secretName names a Secret of the same namespace with the keys tls.crt (the
	// certificate and its chain), tls.key and ca.crt (the CAs that are trusted, up to
	// the root). The certificate must cover NAME-primary.NAMESPACE.svc,
	// NAME-replicas.NAMESPACE.svc and *.NAME-nodes.NAMESPACE.svc. A change of the Secret
	// comes into force by itself, without a restart.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="tls.secretName must be the name of a Secret: lower-case letters, digits, '-' and '.'"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Secret with the certificate",xDescriptors={"urn:alm:descriptor:io.kubernetes:Secret"}
	SecretName string `json:"secretName,omitempty"`

	// issuerRef names an issuer of cert-manager, which must be installed. The operator
	// asks it for a certificate, and cert-manager renews it.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Issuer of cert-manager"
	IssuerRef IssuerRef `json:"issuerRef,omitzero"`

	// clientAuth says whether clients show certificates of a CA in ca.crt. Unset, None.
	// With Optional or Required the certificate must be for client authentication too,
	// since members show it to each other.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Certificates of clients",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:None","urn:alm:descriptor:com.tectonic.ui:select:Optional","urn:alm:descriptor:com.tectonic.ui:select:Required"}
	ClientAuth ClientAuth `json:"clientAuth,omitempty"`

	// plaintext says what becomes of connections without TLS. Unset, Refused: their port
	// is closed once all members serve TLS. Allowed keeps it open while applications are
	// moved, in either direction.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Connections without TLS",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Refused","urn:alm:descriptor:com.tectonic.ui:select:Allowed"}
	Plaintext Plaintext `json:"plaintext,omitempty"`
}

// IssuerRef names an issuer of cert-manager.
type IssuerRef struct {
	// name of the issuer.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Name of the issuer",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Name string `json:"name,omitempty"`

	// kind of the issuer, for example ClusterIssuer. Unset, Issuer.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Kind of the issuer",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Kind string `json:"kind,omitempty"`

	// group of the issuer's kind. Unset, cert-manager.io.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="API group of the issuer",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Group string `json:"group,omitempty"`
}
