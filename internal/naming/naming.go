// Package naming holds every name, label, annotation, key and port that the
// operator gives to objects, so that each stands in one place.
package naming

import (
	"strconv"
	"strings"
)

// Group is the API group; labels and annotations of the operator use it as prefix.
const Group = "cache.seang.org"

// Names of the operator itself.
const (
	// Operator is the package, CSV and field-manager name.
	Operator = "redis-operator"
	// FieldOwner is the one owner of all server-side applied fields.
	FieldOwner = Operator
	// Finalizer holds a RedisCluster until its volumes are dealt with.
	Finalizer = Group + "/finalizer"
	// LeaderElectionID is the name of the Lease in the operator's own namespace.
	LeaderElectionID = "redis-operator-lease.seang.org"
	// EnvDefaultImage is the environment variable that holds the default image.
	EnvDefaultImage = "RELATED_IMAGE_REDIS"
	// EnvNamespace is the environment variable that holds the operator's own namespace.
	EnvNamespace = "POD_NAMESPACE"
)

// Labels.
const (
	LabelName      = "app.kubernetes.io/name"
	LabelInstance  = "app.kubernetes.io/instance"
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// LabelRole is on exactly those pods to which the operator assigned a role.
	LabelRole = Group + "/role"
	// LabelPodName is set by the StatefulSet controller on each pod.
	LabelPodName = "statefulset.kubernetes.io/pod-name"

	AppName = "redis"
	// CheckName is the name label of a pod that checks a configuration.
	CheckName   = "redis-config-check"
	RolePrimary = "primary"
	RoleReplica = "replica"
)

// Annotations.
const (
	// AnnotationPaused on a RedisCluster stops every change while it is "true".
	AnnotationPaused = Group + "/paused"
	// AnnotationSwitchoverTo on a RedisCluster names the pod that is to become
	// primary. The operator removes it when that is done or refused.
	AnnotationSwitchoverTo = Group + "/switchover-to"
	// AnnotationAcceptDataLoss on a RedisCluster is a person's decision that the data
	// of one pod is to be kept, whatever others may hold: POD UID@EPOCH. The operator
	// removes it when that is done or refused.
	AnnotationAcceptDataLoss = Group + "/accept-data-loss"
	// AnnotationRotate on a RedisCluster names users, separated by commas, whose
	// generated passwords are to be replaced, and "system" for those of the operator and
	// of the replication. The operator removes it when that has begun or was refused.
	AnnotationRotate = Group + "/rotate"
	// AnnotationApplied on a child is the hash of what the operator last applied.
	AnnotationApplied = Group + "/applied"
	// AnnotationRestartedAt on a RedisCluster has its pods replaced, one at a time,
	// whenever its value changes.
	AnnotationRestartedAt = Group + "/restarted-at"
	// AnnotationTemplate on a pod holds a hash of each part of the spec that it was
	// made from.
	AnnotationTemplate = Group + "/template"
	// AnnotationRetry on the StatefulSet changes while it cannot create its pods,
	// which makes its controller try again.
	AnnotationRetry = Group + "/retry"
	// AnnotationRecord on a volume claim holds the safety record as JSON.
	AnnotationRecord = Group + "/record"
	// AnnotationTLS on a pod changes when it is to get another certificate, which makes the
	// kubelet look at what the pod mounts.
	AnnotationTLS = Group + "/tls"
)

// Names inside a pod.
const (
	ContainerRedis = "redis"
	PortNameRedis  = "redis"
	PortRedis      = 6379
	PortNameTLS    = "redis-tls"
	PortTLS        = 6380

	// VolumeData is the volume and, with persistence, the claim template's name.
	VolumeData   = "data"
	VolumeConfig = "config"
	VolumeSystem = "system"
	VolumeTmp    = "tmp"
	// VolumeTLS is there in pods that serve TLS.
	VolumeTLS = "tls"

	// FileSnapshot and FileAside are snapshots in MountData: of the member's data, and
	// of what it had before it followed another history.
	FileSnapshot = "dump.rdb"
	FileAside    = "set-aside.rdb"
	// DirUnreadable has the files that a member could not load, in MountData.
	DirUnreadable = "unreadable"

	MountData   = "/data"
	MountConfig = "/etc/redis/config"
	MountSystem = "/etc/redis/system"
	MountTLS    = "/etc/redis/tls"
	MountTmp    = "/tmp"

	// UserID and GroupID of the Redis container, those of the official images.
	UserID  = 999
	GroupID = 999
)

// Keys of the ConfigMap.
const (
	KeyRedisConf = "redis.conf"
	// KeyUnreadable has a line for each pod that must start without its files: its
	// name, and since when they are unreadable.
	KeyUnreadable = "unreadable"
	KeyStart      = "start.sh"
)

// Keys of the Secret with the operator's own users. Only KeyACL and
// KeyReplicationConf are mounted into the pods.
const (
	KeyOperatorPassword = "operator-password"
	// KeyOperatorPrevious is the password before, which a pod may start with whose node
	// has an old copy of the Secret.
	KeyOperatorPrevious    = "operator-password-previous"
	KeyReplicationPassword = "replication-password"
	KeyACL                 = "users.acl"
	KeyReplicationConf     = "replication.conf"
	// KeyRotations says which passwords are being replaced, as JSON.
	KeyRotations = "rotations"
)

// KeyTLSConf is the part of redis.conf in the Secret with the certificate.
const KeyTLSConf = "tls.conf"

// Keys of the Secret for applications: the well-known ones of servicebinding.io.
const (
	KeyType     = "type"
	KeyHost     = "host"
	KeyPort     = "port"
	KeyUsername = "username"
	KeyPassword = "password"
	KeyURI      = "uri"
	// KeyCA has the CAs of the certificate, where connections are encrypted. It is no
	// well-known key, but the one of Secrets of the type kubernetes.io/tls.
	KeyCA = "ca.crt"
)

// Redis users.
const (
	UserOperator    = "operator"
	UserReplication = "replication"
	UserDefault     = "default"
)

// Names of the children of the RedisCluster named cluster.
func StatefulSet(cluster string) string     { return cluster }
func PodDisruption(cluster string) string   { return cluster }
func NetworkPolicy(cluster string) string   { return cluster }
func PrimaryService(cluster string) string  { return cluster + "-primary" }
func ReplicasService(cluster string) string { return cluster + "-replicas" }
func NodesService(cluster string) string    { return cluster + "-nodes" }
func ConfigMap(cluster string) string       { return cluster + "-config" }
func ConfigCheck(cluster string) string     { return cluster + "-config-check" }
func AppSecret(cluster string) string       { return cluster + "-app" }
func SystemSecret(cluster string) string    { return cluster + "-system" }
func TLSSecret(cluster string) string       { return cluster + "-tls" }

// Certificate is the name of the Certificate that cert-manager is asked for, and
// IssuedSecret that of the Secret where it puts it.
func Certificate(cluster string) string  { return cluster }
func IssuedSecret(cluster string) string { return cluster + "-certificate" }

// UserSecret tells an application how to connect as the user.
func UserSecret(cluster, user string) string {
	if user == UserDefault {
		return AppSecret(cluster)
	}
	return cluster + "-user-" + user
}

// Pod is the name of the member with that ordinal.
func Pod(cluster string, ordinal int) string {
	return cluster + "-" + strconv.Itoa(ordinal)
}

// Claim is the name of the volume claim of the member with that ordinal.
func Claim(cluster string, ordinal int) string {
	return VolumeData + "-" + Pod(cluster, ordinal)
}

// Ordinal is the ordinal of a pod of the cluster; false if the pod has no such name.
func Ordinal(cluster, pod string) (int, bool) {
	digits, found := strings.CutPrefix(pod, cluster+"-")
	if !found {
		return 0, false
	}
	ordinal, err := strconv.Atoi(digits)
	return ordinal, err == nil && ordinal >= 0 && Pod(cluster, ordinal) == pod
}

// PodHost is the stable DNS name of a pod within the Kubernetes cluster.
func PodHost(cluster, namespace, pod string) string {
	return pod + "." + NodesService(cluster) + "." + namespace + ".svc"
}

// ReplicasHost is the DNS name of the replicas' Service within the Kubernetes cluster.
func ReplicasHost(cluster, namespace string) string {
	return ReplicasService(cluster) + "." + namespace + ".svc"
}

// PrimaryHost is the DNS name of the primary Service within the Kubernetes cluster.
func PrimaryHost(cluster, namespace string) string {
	return PrimaryService(cluster) + "." + namespace + ".svc"
}

// Selector selects all pods of the cluster.
func Selector(cluster string) map[string]string {
	return map[string]string{LabelName: AppName, LabelInstance: cluster, LabelManagedBy: Operator}
}

// OperatorPods selects the pods of the operator in its namespace: those of every release
// have this label.
func OperatorPods() map[string]string {
	return map[string]string{"control-plane": "controller-manager"}
}

// RoleSelector selects the pods of the cluster that have the role.
func RoleSelector(cluster, role string) map[string]string {
	labels := Selector(cluster)
	labels[LabelRole] = role
	return labels
}

// ClaimedBy is the name of the pod that uses the volume claim; false if the
// claim has no such name.
func ClaimedBy(claim string) (string, bool) {
	return strings.CutPrefix(claim, VolumeData+"-")
}

// ClusterOf is the name of the cluster that a pod's name belongs to.
func ClusterOf(pod string) (string, bool) {
	i := strings.LastIndexByte(pod, '-')
	if i <= 0 {
		return "", false
	}
	_, ok := Ordinal(pod[:i], pod)
	return pod[:i], ok
}

// Requests are the annotations by which a person asks something of the operator.
var Requests = []string{AnnotationPaused, AnnotationSwitchoverTo, AnnotationAcceptDataLoss, AnnotationRestartedAt, AnnotationRotate}
