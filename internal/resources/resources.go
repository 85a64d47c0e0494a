// Package resources builds the child objects of a RedisCluster, one a file.
// The builders are pure: the same Input gives the same object, ready for
// server-side apply, with nothing in it that depends on the operator's version
// or on the time. They read no API and take no decision: what may lag behind
// the spec (the size of memory during a resize, the number of members during a
// scale-in) is part of the Input.
package resources

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
)

// Input is what the children of one RedisCluster are built from.
type Input struct {
	// Cluster is the owner. Its name, namespace and UID must be set.
	Cluster *v1alpha1.RedisCluster

	// Image of the Redis container: spec.image or the operator's default.
	Image string
	// RedisConf is the redis.conf for the ConfigMap.
	RedisConf string
	// Unreadable names the pods that must start without their files, one a line.
	Unreadable string
	// StartScript is the script that the container runs, for the ConfigMap.
	StartScript string

	// Template says what the pod template is made from.
	Template string

	// AnyUser leaves it to Kubernetes which user the pods run as.
	AnyUser bool

	// TLS gives each pod the certificate, with which it serves TLS.
	TLS bool
	// Ports that the Services have.
	Ports Ports
	// CA, if there is one, is for applications to trust: they are to use TLS.
	CA []byte

	// Primary is the pod that the primary Service selects; empty for none.
	Primary string

	// Replicas is the number of read replicas that the StatefulSet has: there
	// are 1 + Replicas pods.
	Replicas int32
	// MemoryLimit is the memory request and limit in force, in bytes.
	MemoryLimit resource.Quantity
	// Persistent gives each pod a volume claim instead of an emptyDir.
	Persistent bool
	// StorageSize is the size in the claim template, in bytes. Ignored unless
	// Persistent.
	StorageSize resource.Quantity
}

// Ports of the Services: without TLS only, with TLS only, or both.
type Ports string

// Values of Ports.
const (
	PortsPlain  Ports = ""
	PortsSecure Ports = "secure"
	PortsBoth   Ports = "both"
)

func (in Input) name() string                { return in.Cluster.Name }
func (in Input) namespace() string           { return in.Cluster.Namespace }
func (in Input) selector() map[string]string { return naming.Selector(in.Cluster.Name) }

// owner makes the RedisCluster the controller of a child: the garbage collector
// removes the child with it, and a change of the child wakes the reconciler.
func (in Input) owner() *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().
		WithAPIVersion(v1alpha1.GroupVersion.String()).
		WithKind("RedisCluster").
		WithName(in.Cluster.Name).
		WithUID(in.Cluster.UID).
		WithController(true).
		WithBlockOwnerDeletion(true)
}

// convert copies an API value into its apply configuration, which has the same
// JSON. A nil value leaves the configuration as it is.
func convert[Value, Configuration any](field string, from *Value, to *Configuration) error {
	if from == nil {
		return nil
	}
	data, err := json.Marshal(from)
	if err != nil {
		return fmt.Errorf("encode %s: %w", field, err)
	}
	if err := json.Unmarshal(data, to); err != nil {
		return fmt.Errorf("copy %s: %w", field, err)
	}
	return nil
}
