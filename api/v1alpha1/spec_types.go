package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// RedisClusterSpec is what a user wants of one Redis. The three required
// fields alone give a safe Redis.
//
// +kubebuilder:validation:XValidation:rule="!has(self.storage) || self.enablePersistence || !has(self.storage.size)",message="storage.size has no effect without enablePersistence: set enablePersistence to true or remove storage.size"
// +kubebuilder:validation:XValidation:rule="!oldSelf.enablePersistence || !self.enablePersistence || !has(oldSelf.storage) || !has(oldSelf.storage.size) || (has(self.storage) && has(self.storage.size) && quantity(string(self.storage.size)).compareTo(quantity(string(oldSelf.storage.size))) >= 0)",message="storage.size cannot shrink or be removed: create a new RedisCluster with the smaller size and copy the data"
// +kubebuilder:validation:XValidation:rule="!oldSelf.enablePersistence || !self.enablePersistence || (has(oldSelf.storage) && has(oldSelf.storage.storageClassName) ? oldSelf.storage.storageClassName : 'the default') == (has(self.storage) && has(self.storage.storageClassName) ? self.storage.storageClassName : 'the default')",message="storage.storageClassName cannot change: create a new RedisCluster with the other class and copy the data"
//
// +kubebuilder:validation:XValidation:rule="!has(self.durability) || !has(self.durability.mode) || self.durability.mode != 'Strict' || (has(self.durability.minReplicas) ? self.durability.minReplicas : 1) < self.replicas",message="durability.minReplicas (1 unless set) must be less than replicas, so that one replica can be replaced without stopping writes: raise replicas or lower durability.minReplicas"
type RedisClusterSpec struct {
	// replicas is the number of read replicas, 1 to 10. One primary comes on
	// top, so there are 1 + replicas pods.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Read replicas",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podCount"},order=1
	Replicas int32 `json:"replicas,omitempty"`

	// memoryLimit is the memory request and limit of each Redis container, 64Mi
	// to 1Ti. Redis's maxmemory is derived from it with head-room for forks and
	// buffers; the value in force is status.maxMemory.
	// +required
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('64Mi')) >= 0",message="memoryLimit must be at least 64Mi"
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('1Ti')) <= 0",message="memoryLimit must be at most 1Ti"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Memory of each Redis",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"},order=2
	MemoryLimit resource.Quantity `json:"memoryLimit"`

	// enablePersistence keeps the data in an append-only file and snapshots on
	// a volume per pod. Without it the loss of all members at once is the loss
	// of the data.
	// +required
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Keep the data on volumes",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch"},order=3
	EnablePersistence *bool `json:"enablePersistence,omitempty"`

	// image is a Redis (7.0 or later) or Valkey (8 or later) image that has
	// redis-server or valkey-server, the matching cli and sh on its PATH.
	// Unset, the operator's default image is used.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9][A-Za-z0-9._:/@-]*$')",message="image must be an image reference such as docker.io/library/redis:8.0"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Image",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"},order=4
	Image string `json:"image,omitempty"`

	// storage describes the volumes of a persistent cluster.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Volumes",order=5
	Storage *StorageSpec `json:"storage,omitempty"`

	// config holds redis.conf directives by name. Those that the operator owns
	// are refused in the SpecAccepted condition, which names the field to use.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(name, name.matches('^[a-z][a-z0-9-]*$') && size(name) <= 64)",message="config names must be redis.conf directives in lower case, such as maxmemory-policy"
	// +kubebuilder:validation:XValidation:rule="self.all(name, self[name].matches('^[^\\x00-\\x1f\\x7f]*$'))",message="config values must be one line without control characters"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Directives of redis.conf",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Config map[string]ConfigValue `json:"config,omitempty"`

	// auth says how applications log in. Unset, a password is generated into
	// the Secret that status.binding names.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Credentials",order=6
	Auth *AuthSpec `json:"auth,omitempty"`

	// tls encrypts all connections. Unset, none is. To set or to remove it replaces the
	// pods, one at a time.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="TLS",order=8
	TLS *TLSSpec `json:"tls,omitempty"`

	// durability says when the primary stops accepting writes for want of replicas.
	// Unset, the mode is Default.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Durability",order=7
	Durability *DurabilitySpec `json:"durability,omitempty"`

	// scheduling says where the pods may run. Unset, they are spread over
	// nodes and zones where possible.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Scheduling",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Scheduling *SchedulingSpec `json:"scheduling,omitempty"`

	// resources holds what the Redis container gets besides memory.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="CPU",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Resources *ResourcesSpec `json:"resources,omitempty"`

	// imagePullSecrets name Secrets of the namespace with which the image is pulled.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Secrets to pull the image with",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	ImagePullSecrets []PullSecret `json:"imagePullSecrets,omitempty"`

	// service says how the Services are exposed.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Services",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Service *ServicesSpec `json:"service,omitempty"`

	// networkPolicy says who may connect to Redis. Unset, a NetworkPolicy lets in the
	// pods of the namespace and, while a Service is exposed outside of Kubernetes,
	// everybody. A RedisCluster that was made by a release without NetworkPolicies gets
	// one when this is set.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Network policy",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	NetworkPolicy *NetworkPolicySpec `json:"networkPolicy,omitempty"`

	// podMetadata is added to every pod.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Labels and annotations of the pods",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	PodMetadata *PodMetadata `json:"podMetadata,omitempty"`
}

// ConfigValue is the value of a redis.conf directive.
// +kubebuilder:validation:MaxLength=1024
type ConfigValue string

// ReclaimPolicy says what becomes of the volumes when a RedisCluster is deleted.
// +kubebuilder:validation:Enum=Delete;Retain
type ReclaimPolicy string

const (
	// ReclaimDelete deletes the volumes with the RedisCluster.
	ReclaimDelete ReclaimPolicy = "Delete"
	// ReclaimRetain keeps them; a RedisCluster of the same name adopts them
	// with their data.
	ReclaimRetain ReclaimPolicy = "Retain"
)

// StorageSpec describes the volumes of a persistent cluster.
type StorageSpec struct {
	// size of each member's volume, 64Mi to 64Ti. Unset, three times
	// memoryLimit when the volumes are created, at least 1Gi: room for the
	// append-only file, its rewrite and a snapshot. It may grow, never shrink.
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('64Mi')) >= 0",message="storage.size must be at least 64Mi"
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('64Ti')) <= 0",message="storage.size must be at most 64Ti"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Size of each volume",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Size *resource.Quantity `json:"size,omitempty"`

	// storageClassName of the volumes. Unset, the cluster's default class.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="storage.storageClassName must be the name of a StorageClass: lower-case letters, digits, '-' and '.'"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Storage class",xDescriptors={"urn:alm:descriptor:io.kubernetes:StorageClass"}
	StorageClassName string `json:"storageClassName,omitempty"`

	// reclaimPolicy says what becomes of the volumes when the RedisCluster is
	// deleted.
	// +optional
	// +kubebuilder:default=Delete
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="When the RedisCluster is deleted",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Delete","urn:alm:descriptor:com.tectonic.ui:select:Retain"}
	ReclaimPolicy ReclaimPolicy `json:"reclaimPolicy,omitempty"`
}

// DurabilityMode says what happens when replicas are lost.
// +kubebuilder:validation:Enum=Default;Strict
type DurabilityMode string

const (
	// DurabilityDefault accepts writes only while a replica acknowledged within two
	// seconds, as long as any is in sync. When the last one is lost, the operator
	// records that and lets the primary go on alone.
	DurabilityDefault DurabilityMode = "Default"
	// DurabilityStrict accepts writes only while minReplicas replicas acknowledged
	// within two seconds, whatever happens.
	DurabilityStrict DurabilityMode = "Strict"
)

// DurabilitySpec says when the primary stops accepting writes for want of replicas.
// It bounds how long an isolated primary acknowledges writes, to about four seconds;
// it does not say that a replica has a given write: only WAIT does.
//
// +kubebuilder:validation:XValidation:rule="(has(self.mode) && self.mode == 'Strict') || !has(self.minReplicas)",message="durability.minReplicas has an effect with the mode Strict only: remove it or set the mode to Strict"
type DurabilitySpec struct {
	// mode says what happens when replicas are lost. Unset, it is Default.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="When replicas are lost",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Default","urn:alm:descriptor:com.tectonic.ui:select:Strict"}
	Mode DurabilityMode `json:"mode,omitempty"`

	// minReplicas that must have acknowledged within two seconds for a write to be
	// accepted, 1 to 9 and less than replicas. With Strict, 1 unless set.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Replicas that must acknowledge",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	MinReplicas int32 `json:"minReplicas,omitempty"`
}

// SchedulingSpec says where the pods may run.
type SchedulingSpec struct {
	// nodeSelector is copied to the pods.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Node selector",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced","urn:alm:descriptor:com.tectonic.ui:selector:core:v1:Node"}
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// affinity is copied to the pods.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Affinity",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// tolerations are copied to the pods.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Tolerations",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// topologySpreadConstraints replace the operator's own: one pod a node and
	// an even spread over zones, where possible. An empty labelSelector selects
	// the pods of this cluster.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Topology spread constraints",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// priorityClassName is copied to the pods.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="scheduling.priorityClassName must be the name of a PriorityClass: lower-case letters, digits, '-' and '.'"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Priority class",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced","urn:alm:descriptor:io.kubernetes:PriorityClass"}
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// ResourcesSpec holds what the Redis container gets besides memory.
type ResourcesSpec struct {
	// cpu is the CPU of the Redis container.
	// +optional
	CPU *CPUSpec `json:"cpu,omitempty"`
}

// CPUSpec is the CPU of a container.
//
// +kubebuilder:validation:XValidation:rule="!has(self.request) || !has(self.limit) || quantity(string(self.request)).compareTo(quantity(string(self.limit))) <= 0",message="resources.cpu.request must not exceed resources.cpu.limit"
type CPUSpec struct {
	// request in CPU units, more than zero. Unset, 100m.
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="resources.cpu.request must be more than zero"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="CPU request",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced","urn:alm:descriptor:com.tectonic.ui:text"}
	Request *resource.Quantity `json:"request,omitempty"`

	// limit in CPU units, more than zero. Unset, none: a throttled Redis
	// looks like a hung one.
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="resources.cpu.limit must be more than zero"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="CPU limit",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced","urn:alm:descriptor:com.tectonic.ui:text"}
	Limit *resource.Quantity `json:"limit,omitempty"`
}

// PullSecret names a Secret of the type kubernetes.io/dockerconfigjson.
type PullSecret struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="imagePullSecrets must have names of Secrets: lower-case letters, digits, '-' and '.'"
	Name string `json:"name,omitempty"`
}

// PodMetadata is added to every pod.
type PodMetadata struct {
	// labels are added to the pods; those of the operator win.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('cache.seang.org/') && !key.startsWith('app.kubernetes.io/') && !key.startsWith('statefulset.kubernetes.io/'))",message="labels of cache.seang.org/, app.kubernetes.io/ and statefulset.kubernetes.io/ belong to the operator"
	Labels map[string]string `json:"labels,omitempty"`

	// annotations are added to the pods.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('cache.seang.org/'))",message="annotations of cache.seang.org/ belong to the operator"
	Annotations map[string]string `json:"annotations,omitempty"`
}
