package v1alpha1

import networkingv1 "k8s.io/api/networking/v1"

// ServicesSpec says how the Services are exposed.
type ServicesSpec struct {
	// primary is the read-write Service.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Read-write Service",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Primary *ServiceSpec `json:"primary,omitempty"`

	// replicas is the read-only Service.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Read-only Service",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Replicas *ServiceSpec `json:"replicas,omitempty"`
}

// ServiceType is how a Service is exposed.
// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer
type ServiceType string

// IPFamily is a version of the internet protocol.
// +kubebuilder:validation:Enum=IPv4;IPv6
type IPFamily string

// IPFamilyPolicy says whether a Service has addresses of one IP family or of both.
// +kubebuilder:validation:Enum=SingleStack;PreferDualStack;RequireDualStack
type IPFamilyPolicy string

// ExternalTrafficPolicy says which nodes take traffic from outside of Kubernetes.
// +kubebuilder:validation:Enum=Cluster;Local
type ExternalTrafficPolicy string

// CIDR is a range of IP addresses, such as 192.0.2.0/24.
// +kubebuilder:validation:MaxLength=43
// +kubebuilder:validation:XValidation:rule="isCIDR(self)",message="must be a range of addresses such as 192.0.2.0/24 or 2001:db8::/64"
type CIDR string

// ServiceSpec says how one Service is exposed.
//
// +kubebuilder:validation:XValidation:rule="!has(self.externalTrafficPolicy) || (has(self.type) && self.type != 'ClusterIP')",message="externalTrafficPolicy has an effect with the types NodePort and LoadBalancer only: remove it or set the type"
// +kubebuilder:validation:XValidation:rule="!has(self.loadBalancerSourceRanges) || (has(self.type) && self.type == 'LoadBalancer')",message="loadBalancerSourceRanges has an effect with the type LoadBalancer only: remove it or set the type"
// +kubebuilder:validation:XValidation:rule="!has(self.ipFamilies) || (size(self.ipFamilies) == 2) == (has(self.ipFamilyPolicy) && self.ipFamilyPolicy != 'SingleStack')",message="ipFamilies must have both families with the ipFamilyPolicy PreferDualStack or RequireDualStack, and one without"
// +kubebuilder:validation:XValidation:rule="!has(self.ipFamilies) || !has(oldSelf.ipFamilies) || self.ipFamilies[0] == oldSelf.ipFamilies[0]",message="the first of ipFamilies cannot change: Kubernetes cannot move the addresses of a Service to the other family; create a new RedisCluster"
type ServiceSpec struct {
	// type of the Service. NodePort and LoadBalancer expose it outside of Kubernetes.
	// +optional
	// +kubebuilder:default=ClusterIP
	Type ServiceType `json:"type,omitempty"`

	// annotations are added to the Service.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitempty"`

	// ipFamilyPolicy says whether the Service has addresses of one IP family or of both.
	// Unset, SingleStack.
	// +optional
	IPFamilyPolicy IPFamilyPolicy `json:"ipFamilyPolicy,omitempty"`

	// ipFamilies of the Service's addresses, the first of them for good. Unset, Kubernetes
	// chooses.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:XValidation:rule="size(self) < 2 || self[0] != self[1]",message="ipFamilies must have each family once"
	IPFamilies []IPFamily `json:"ipFamilies,omitempty"`

	// externalTrafficPolicy Local keeps the addresses of clients outside of Kubernetes, and
	// lets in only traffic that comes to a node of the pod. Unset, Cluster.
	// +optional
	ExternalTrafficPolicy ExternalTrafficPolicy `json:"externalTrafficPolicy,omitempty"`

	// loadBalancerSourceRanges are the addresses from which the load balancer takes
	// connections. Unset, all.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	LoadBalancerSourceRanges []CIDR `json:"loadBalancerSourceRanges,omitempty"`
}

// NetworkPolicyMode says whether there is a NetworkPolicy.
// +kubebuilder:validation:Enum=Managed;None
type NetworkPolicyMode string

const (
	// NetworkPolicyManaged has the operator keep a NetworkPolicy.
	NetworkPolicyManaged NetworkPolicyMode = "Managed"
	// NetworkPolicyNone removes it.
	NetworkPolicyNone NetworkPolicyMode = "None"
)

// NetworkPolicySpec says who may connect to Redis. The members and the operator always may.
//
// +kubebuilder:validation:XValidation:rule="!has(self.clients) || !has(self.mode) || self.mode != 'None'",message="networkPolicy.clients has no effect with the mode None: remove it or set the mode to Managed"
type NetworkPolicySpec struct {
	// mode says whether there is a NetworkPolicy. Unset, Managed.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Network policy",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced","urn:alm:descriptor:com.tectonic.ui:select:Managed","urn:alm:descriptor:com.tectonic.ui:select:None"}
	Mode NetworkPolicyMode `json:"mode,omitempty"`

	// clients are all who may connect to Redis, besides the members and the operator.
	// Unset, the pods of the namespace and, while a Service is exposed outside of
	// Kubernetes, everybody.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:XValidation:rule="has(self.ipBlock) != (has(self.podSelector) || has(self.namespaceSelector))",message="each of networkPolicy.clients must have an ipBlock, or else a podSelector, a namespaceSelector or both"
	Clients []networkingv1.NetworkPolicyPeer `json:"clients,omitempty"`
}
