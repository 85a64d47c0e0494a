package resources

import (
	"path"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
)

const (
	// EnvPersistence tells the start script, with "true" or "false", whether
	// the data directory outlives the pod.
	EnvPersistence = "REDIS_PERSISTENCE"

	// terminationGraceSeconds covers Redis's own shutdown: it waits for its
	// replicas and, with persistence, saves.
	terminationGraceSeconds = 60

	// preStopSeconds delays SIGTERM so that the primary hands over while it still
	// serves: the operator sees the deletion at once and needs a fraction of this.
	preStopSeconds = 2

	// secretMode lets the group read: the files belong to root and the fsGroup.
	secretMode = 0o440
)

// defaultCPURequest keeps Redis schedulable on small nodes; there is no default
// limit, because a throttled Redis looks like a hung one.
var defaultCPURequest = resource.MustParse("100m")

// podTemplate changes for a change of the spec only: no version of the
// operator, and no hash of the ConfigMap (it is applied live), may roll a pod.
func podTemplate(in Input) (*corev1ac.PodTemplateSpecApplyConfiguration, error) {
	spec := corev1ac.PodSpec().
		WithContainers(redisContainer(in)).
		WithVolumes(volumes(in)...).
		WithImagePullSecrets(pullSecrets(in)...).
		WithSecurityContext(podSecurityContext(in)).
		WithTerminationGracePeriodSeconds(terminationGraceSeconds).
		WithAutomountServiceAccountToken(false).
		WithEnableServiceLinks(false)
	if err := schedule(in, spec); err != nil {
		return nil, err
	}
	template := corev1ac.PodTemplateSpec()
	if extra := in.Cluster.Spec.PodMetadata; extra != nil {
		template.WithLabels(extra.Labels).WithAnnotations(extra.Annotations)
	}
	return template.WithLabels(in.selector()).
		WithAnnotations(map[string]string{naming.AnnotationTemplate: in.Template}).
		WithSpec(spec), nil
}

// redisContainer has no probes. The death of the process ends the container,
// which the kubelet restarts; whether a living process is a useful member, the
// operator sees over its own connection. A liveness probe would kill a Redis
// that is busy with a fork, a slow command or the load of its data, and a
// readiness probe would race with the operator about the endpoints.
func redisContainer(in Input) *corev1ac.ContainerApplyConfiguration {
	container := corev1ac.Container().
		WithName(naming.ContainerRedis).
		WithImage(in.Image).
		WithCommand("sh", path.Join(naming.MountConfig, naming.KeyStart)).
		WithEnv(corev1ac.EnvVar().WithName(EnvPersistence).WithValue(strconv.FormatBool(in.Persistent))).
		WithPorts(corev1ac.ContainerPort().
			WithName(naming.PortNameRedis).
			WithContainerPort(naming.PortRedis).
			WithProtocol(corev1.ProtocolTCP)).
		WithResources(containerResources(in)).
		WithLifecycle(corev1ac.Lifecycle().WithPreStop(corev1ac.LifecycleHandler().
			WithSleep(corev1ac.SleepAction().WithSeconds(preStopSeconds)))).
		// Both can change without a restart: the operator moves maxmemory along.
		WithResizePolicy(
			corev1ac.ContainerResizePolicy().WithResourceName(corev1.ResourceCPU).WithRestartPolicy(corev1.NotRequired),
			corev1ac.ContainerResizePolicy().WithResourceName(corev1.ResourceMemory).WithRestartPolicy(corev1.NotRequired),
		).
		WithSecurityContext(containerSecurityContext()).
		WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError).
		WithVolumeMounts(
			corev1ac.VolumeMount().WithName(naming.VolumeData).WithMountPath(naming.MountData),
			corev1ac.VolumeMount().WithName(naming.VolumeConfig).WithMountPath(naming.MountConfig).WithReadOnly(true),
			corev1ac.VolumeMount().WithName(naming.VolumeSystem).WithMountPath(naming.MountSystem).WithReadOnly(true),
			corev1ac.VolumeMount().WithName(naming.VolumeTmp).WithMountPath(naming.MountTmp),
		)
	if in.TLS {
		container.WithPorts(corev1ac.ContainerPort().WithName(naming.PortNameTLS).WithContainerPort(naming.PortTLS).WithProtocol(corev1.ProtocolTCP)).
			WithVolumeMounts(corev1ac.VolumeMount().WithName(naming.VolumeTLS).WithMountPath(naming.MountTLS).WithReadOnly(true))
	}
	return container
}

// containerResources asks for all of its memory: a Redis that the node cannot
// hold is killed at the worst moment.
func containerResources(in Input) *corev1ac.ResourceRequirementsApplyConfiguration {
	requests := corev1.ResourceList{
		corev1.ResourceMemory: in.MemoryLimit,
		corev1.ResourceCPU:    defaultCPURequest,
	}
	limits := corev1.ResourceList{corev1.ResourceMemory: in.MemoryLimit}
	if cpu := cpuSpec(in.Cluster); cpu.Limit != nil {
		limits[corev1.ResourceCPU] = *cpu.Limit
		// The default request must not exceed a small limit.
		if cpu.Limit.Cmp(defaultCPURequest) < 0 {
			requests[corev1.ResourceCPU] = *cpu.Limit
		}
	}
	if cpu := cpuSpec(in.Cluster); cpu.Request != nil {
		requests[corev1.ResourceCPU] = *cpu.Request
	}
	return corev1ac.ResourceRequirements().WithRequests(requests).WithLimits(limits)
}

func cpuSpec(cluster *v1alpha1.RedisCluster) v1alpha1.CPUSpec {
	if cluster.Spec.Resources == nil || cluster.Spec.Resources.CPU == nil {
		return v1alpha1.CPUSpec{}
	}
	return *cluster.Spec.Resources.CPU
}

// podSecurityContext meets the Pod Security Standard "restricted".
func podSecurityContext(in Input) *corev1ac.PodSecurityContextApplyConfiguration {
	context := corev1ac.PodSecurityContext().
		WithRunAsNonRoot(true).
		WithFSGroupChangePolicy(corev1.FSGroupChangeOnRootMismatch).
		WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))
	if !in.AnyUser {
		context.WithRunAsUser(naming.UserID).WithRunAsGroup(naming.GroupID).WithFSGroup(naming.GroupID)
	}
	return context
}

func pullSecrets(in Input) []*corev1ac.LocalObjectReferenceApplyConfiguration {
	var secrets []*corev1ac.LocalObjectReferenceApplyConfiguration
	for _, secret := range in.Cluster.Spec.ImagePullSecrets {
		secrets = append(secrets, corev1ac.LocalObjectReference().WithName(secret.Name))
	}
	return secrets
}

// volumes mount of the system Secret only what Redis reads; the operator's
// password stays out of the pod in clear. With persistence the data volume
// comes from the claim template.
func volumes(in Input) []*corev1ac.VolumeApplyConfiguration {
	all := []*corev1ac.VolumeApplyConfiguration{
		corev1ac.Volume().WithName(naming.VolumeConfig).
			WithConfigMap(corev1ac.ConfigMapVolumeSource().WithName(naming.ConfigMap(in.name()))),
		corev1ac.Volume().WithName(naming.VolumeSystem).
			WithSecret(corev1ac.SecretVolumeSource().
				WithSecretName(naming.SystemSecret(in.name())).
				WithDefaultMode(secretMode).
				WithItems(secretItem(naming.KeyACL), secretItem(naming.KeyReplicationConf))),
		corev1ac.Volume().WithName(naming.VolumeTmp).WithEmptyDir(corev1ac.EmptyDirVolumeSource()),
	}
	if in.TLS {
		// All of it: the names of the files change with their content.
		all = append(all, corev1ac.Volume().WithName(naming.VolumeTLS).
			WithSecret(corev1ac.SecretVolumeSource().WithSecretName(naming.TLSSecret(in.name())).WithDefaultMode(secretMode)))
	}
	if !in.Persistent {
		all = append(all, corev1ac.Volume().WithName(naming.VolumeData).WithEmptyDir(corev1ac.EmptyDirVolumeSource()))
	}
	return all
}

func secretItem(key string) *corev1ac.KeyToPathApplyConfiguration {
	return corev1ac.KeyToPath().WithKey(key).WithPath(key).WithMode(secretMode)
}
