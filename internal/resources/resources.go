// Package resources builds the child objects of a RedisCluster. It is pure: an
// Input in, an object to apply out, the same for the same Input.
package resources

import (
	"maps"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
)

// Input is what the objects are built from.
type Input struct {
	// Cluster owns the objects.
	Cluster *v1alpha1.RedisCluster
	// Image that the pods run.
	Image string
	// Primary is the pod that the primary Service selects.
	Primary string
	// Members is the number of pods.
	Members int32
	// MemoryLimit of the Redis container in bytes.
	MemoryLimit int64
	// StorageSize of each volume.
	StorageSize resource.Quantity
}

func (in Input) persistent() bool {
	return in.Cluster.Spec.EnablePersistence != nil && *in.Cluster.Spec.EnablePersistence
}

func (in Input) owner() *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().
		WithAPIVersion(v1alpha1.GroupVersion.String()).WithKind("RedisCluster").
		WithName(in.Cluster.Name).WithUID(in.Cluster.UID).WithController(true).WithBlockOwnerDeletion(true)
}

func (in Input) labels() map[string]string { return naming.Selector(in.Cluster.Name) }

// ConfigMap holds redis.conf and the start script.
func ConfigMap(in Input, redisConf, startScript string) *corev1ac.ConfigMapApplyConfiguration {
	return corev1ac.ConfigMap(naming.ConfigMap(in.Cluster.Name), in.Cluster.Namespace).
		WithLabels(in.labels()).WithOwnerReferences(in.owner()).
		WithData(map[string]string{naming.KeyRedisConf: redisConf, naming.KeyStart: startScript})
}

// SystemSecret holds the operator's own users.
func SystemSecret(in Input, data map[string]string) *corev1ac.SecretApplyConfiguration {
	return secret(in, naming.SystemSecret(in.Cluster.Name), corev1.SecretTypeOpaque, data)
}

// AppSecret holds what an application needs to connect, in the layout of
// servicebinding.io.
func AppSecret(in Input, data map[string]string) *corev1ac.SecretApplyConfiguration {
	return secret(in, naming.AppSecret(in.Cluster.Name), "servicebinding.io/redis", data)
}

func secret(in Input, name string, kind corev1.SecretType, data map[string]string) *corev1ac.SecretApplyConfiguration {
	bytes := map[string][]byte{}
	for key, value := range data {
		bytes[key] = []byte(value)
	}
	return corev1ac.Secret(name, in.Cluster.Namespace).
		WithLabels(in.labels()).WithOwnerReferences(in.owner()).
		WithType(kind).WithData(bytes)
}

// URI is the connection URI of a Redis.
func URI(host, port, user, password string) string {
	uri := url.URL{Scheme: "redis", User: url.UserPassword(user, password), Host: host + ":" + port}
	return uri.String()
}

// PodDisruptionBudget lets evictions take one member at a time.
func PodDisruptionBudget(in Input) *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	return policyv1ac.PodDisruptionBudget(naming.PodDisruption(in.Cluster.Name), in.Cluster.Namespace).
		WithLabels(in.labels()).WithOwnerReferences(in.owner()).
		WithSpec(policyv1ac.PodDisruptionBudgetSpec().
			WithMaxUnavailable(intstr.FromInt32(1)).
			WithUnhealthyPodEvictionPolicy(policyv1.IfHealthyBudget).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(in.labels())))
}

// PrimaryService is the read-write Service. It selects one pod by name, so that
// a move of the primary is one change of its endpoints; the pod is published
// though it is not ready, since only the operator knows what it is.
func PrimaryService(in Input) *corev1ac.ServiceApplyConfiguration {
	selector := in.labels()
	selector[naming.LabelPodName] = in.Primary
	var exposed *v1alpha1.ServiceSpec
	if in.Cluster.Spec.Service != nil {
		exposed = in.Cluster.Spec.Service.Primary
	}
	s := service(in, naming.PrimaryService(in.Cluster.Name), selector, exposed)
	s.Spec.WithPublishNotReadyAddresses(true)
	return s
}

// ReplicasService is the read-only Service: the pods to which the operator gave
// the role of a replica.
func ReplicasService(in Input) *corev1ac.ServiceApplyConfiguration {
	var exposed *v1alpha1.ServiceSpec
	if in.Cluster.Spec.Service != nil {
		exposed = in.Cluster.Spec.Service.Replicas
	}
	return service(in, naming.ReplicasService(in.Cluster.Name), naming.RoleSelector(in.Cluster.Name, naming.RoleReplica), exposed)
}

// NodesService gives each pod a stable name, from its start on.
func NodesService(in Input) *corev1ac.ServiceApplyConfiguration {
	s := service(in, naming.NodesService(in.Cluster.Name), in.labels(), nil)
	s.Spec.WithClusterIP(corev1.ClusterIPNone).WithPublishNotReadyAddresses(true)
	return s
}

func service(in Input, name string, selector map[string]string, exposed *v1alpha1.ServiceSpec) *corev1ac.ServiceApplyConfiguration {
	kind := corev1.ServiceTypeClusterIP
	s := corev1ac.Service(name, in.Cluster.Namespace).WithLabels(in.labels()).WithOwnerReferences(in.owner())
	if exposed != nil {
		if exposed.Type != "" {
			kind = corev1.ServiceType(exposed.Type)
		}
		s.WithAnnotations(maps.Clone(exposed.Annotations))
	}
	return s.WithSpec(corev1ac.ServiceSpec().
		WithType(kind).
		WithSelector(selector).
		WithPorts(corev1ac.ServicePort().WithName(naming.PortNameRedis).WithProtocol(corev1.ProtocolTCP).
			WithPort(naming.PortRedis).WithTargetPort(intstr.FromString(naming.PortNameRedis))))
}
