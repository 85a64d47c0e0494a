package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RedisCluster is one Redis primary with read replicas, kept alive and in sync
// by the operator.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.activeReplicas,selectorpath=.status.selector
// +kubebuilder:resource:shortName=rdc,categories=all
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.spec.replicas`,description="Read replicas wanted"
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,description="Summary of the conditions"
// +kubebuilder:printcolumn:name="Active",type=integer,JSONPath=`.status.activeReplicas`,priority=1,description="Read replicas in sync"
// +kubebuilder:printcolumn:name="Primary",type=string,JSONPath=`.status.primary`,priority=1,description="Pod that accepts writes"
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.redisVersion`,priority=1,description="Version the primary runs"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 50",message="the name must have at most 50 characters: the names of the pods and Services are derived from it"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="the name must start with a letter and have only lower-case letters, digits and '-': Services are named after it"
// +operator-sdk:csv:customresourcedefinitions:displayName="Redis Cluster",order=1,resources={{StatefulSet,v1,""},{Pod,v1,""},{Service,v1,""},{ConfigMap,v1,""},{Secret,v1,""},{PersistentVolumeClaim,v1,""},{PodDisruptionBudget,v1,""}}
type RedisCluster struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is what is wanted.
	// +required
	Spec RedisClusterSpec `json:"spec,omitzero"`

	// status is what the operator found and recorded.
	// +optional
	Status RedisClusterStatus `json:"status,omitempty,omitzero"`
}

// RedisClusterList is a list of RedisClusters.
//
// +kubebuilder:object:root=true
type RedisClusterList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the RedisClusters.
	Items []RedisCluster `json:"items"`
}
