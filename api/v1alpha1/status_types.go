package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Phase is a summary of the conditions for people; it is never an input.
// +kubebuilder:validation:Enum=Pending;Provisioning;Ready;Failed
type Phase string

const (
	// PhasePending means that the operator has not acted on the spec yet.
	PhasePending Phase = "Pending"
	// PhaseProvisioning means that the operator is working towards the spec.
	PhaseProvisioning Phase = "Provisioning"
	// PhaseReady means that the Ready condition is True.
	PhaseReady Phase = "Ready"
	// PhaseFailed means that a person must act, or that no primary can be had.
	PhaseFailed Phase = "Failed"
)

// RedisClusterStatus is what the operator found and recorded.
type RedisClusterStatus struct {
	// phase summarises the conditions.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Phase",xDescriptors={"urn:alm:descriptor:io.kubernetes.phase"},order=1
	Phase Phase `json:"phase,omitempty"`

	// activeReplicas counts the read replicas that run, are linked to the
	// primary and in sync; it equals spec.replicas when Ready.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Replicas in sync",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podCount"},order=2
	ActiveReplicas int32 `json:"activeReplicas"`

	// selector selects the replicas, for the scale subresource.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Selector of the replicas"
	Selector string `json:"selector,omitempty"`

	// lastSyncTimestamp is when the cluster last became what the spec asks.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Last became what is asked"
	LastSyncTimestamp *metav1.Time `json:"lastSyncTimestamp,omitempty"`

	// observedGeneration is the generation that this status speaks of.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Generation seen"
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions of the types Ready, Available, Progressing, Degraded,
	// SpecAccepted and Paused are always present once the operator has seen the object.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Conditions",xDescriptors={"urn:alm:descriptor:io.kubernetes.conditions"},order=4
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// primary names the pod that accepts writes.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Primary",xDescriptors={"urn:alm:descriptor:io.kubernetes:Pod"},order=3
	Primary string `json:"primary,omitempty"`

	// inSyncReplicas names the replicas that are in sync, sorted.
	// +optional
	// +listType=atomic
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Names of the replicas in sync"
	InSyncReplicas []string `json:"inSyncReplicas,omitempty"`

	// record is the operator's memory of who may hold the data. It is written
	// before each step that depends on it. Do not edit it.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Who may hold the data"
	Record *Record `json:"record,omitempty"`

	// maxMemory is the maxmemory in force.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Maxmemory in force",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"},order=6
	MaxMemory *resource.Quantity `json:"maxMemory,omitempty"`

	// redisVersion is the version that the primary reports, for example
	// "redis 8.0.2" or "valkey 8.1.1".
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Version",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"},order=5
	RedisVersion string `json:"redisVersion,omitempty"`

	// services names the Services of this cluster.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Services"
	Services *ServiceNames `json:"services,omitempty"`

	// networkPolicy names the NetworkPolicy that says who may connect; empty where there
	// is none.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Network policy",xDescriptors={"urn:alm:descriptor:io.kubernetes:NetworkPolicy"}
	NetworkPolicy string `json:"networkPolicy,omitempty"`

	// binding names the Secret with which an application connects, in the
	// layout of servicebinding.io.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Connection"
	Binding *Binding `json:"binding,omitempty"`
}

// ServiceNames names the Services of a cluster.
type ServiceNames struct {
	// primary is the read-write Service.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Read-write Service",xDescriptors={"urn:alm:descriptor:io.kubernetes:Service"}
	Primary string `json:"primary,omitempty"`
	// replicas is the read-only Service.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Read-only Service",xDescriptors={"urn:alm:descriptor:io.kubernetes:Service"}
	Replicas string `json:"replicas,omitempty"`
	// nodes is the headless Service with a stable name per pod.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Headless Service",xDescriptors={"urn:alm:descriptor:io.kubernetes:Service"}
	Nodes string `json:"nodes,omitempty"`
}

// Binding names a Secret.
type Binding struct {
	// name of the Secret.
	// +required
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Secret to connect with",xDescriptors={"urn:alm:descriptor:io.kubernetes:Secret"}
	Name string `json:"name"`
}

// Record is what the operator must remember to keep the data: docs/safety-rules.md.
type Record struct {
	// epoch grows by one with each promotion.
	// +required
	Epoch int64 `json:"epoch"`

	// primary is the process that this epoch's promotion names.
	// +required
	Primary MemberID `json:"primary,omitzero"`

	// replicationID is the history that the primary writes since its promotion;
	// empty until the promotion was seen done.
	// +optional
	ReplicationID string `json:"replicationID,omitempty"`

	// previous is the process that was primary before, while the promotion was
	// not seen done.
	// +optional
	Previous *MemberID `json:"previous,omitempty"`

	// forkID is the history that the primary continued at its promotion.
	// +optional
	ForkID string `json:"forkID,omitempty"`

	// forkOffset in bytes is where in forkID it was promoted.
	// +optional
	ForkOffset int64 `json:"forkOffset,omitempty"`

	// lease is true while the primary is known to refuse writes unless a
	// replica acknowledged recently (min-replicas-to-write 1).
	// +optional
	Lease bool `json:"lease,omitempty"`

	// mayHold lists every process that may hold acknowledged writes of this
	// epoch. An entry is added before the process is told to follow.
	// +optional
	// +listType=atomic
	MayHold []Holder `json:"mayHold,omitempty"`
}

// MemberID identifies one Redis process.
type MemberID struct {
	// pod is the name of the pod.
	// +required
	Pod string `json:"pod"`
	// podUID is the UID of the pod.
	// +optional
	PodUID types.UID `json:"podUID,omitempty"`
	// runID is Redis's run_id, which is new with each process.
	// +optional
	RunID string `json:"runID,omitempty"`
}

// Holder is a process that may hold acknowledged writes.
type Holder struct {
	MemberID `json:",inline"`
	// inSync is true once the process reached an offset of the primary of this
	// epoch: it is then a candidate for a failover.
	// +optional
	InSync bool `json:"inSync,omitempty"`
	// forked is true for a process that was made a primary by hand and written to: what
	// it has is not discarded unless a person decides so.
	// +optional
	Forked bool `json:"forked,omitempty"`
}
