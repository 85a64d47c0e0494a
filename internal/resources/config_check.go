package resources

import (
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/conf"
)

const (
	// checkDeadlineSeconds bounds how long a check may take once it has a node.
	checkDeadlineSeconds = 60
	// Resources of a server without data.
	checkCPU    = "50m"
	checkMemory = "64Mi"
	// checkMemoryLimit leaves room for a large number of databases.
	checkMemoryLimit = "256Mi"
)

// ConfigCheck is a pod that has a real server of the image check directives, which are
// lines of a redis.conf, without any data. Its message says what it makes of the names.
// It is no member: no Service and no budget selects it.
func ConfigCheck(in Input, directives string, names []string) (*corev1ac.PodApplyConfiguration, error) {
	spec := corev1ac.PodSpec().
		WithRestartPolicy(corev1.RestartPolicyNever).
		WithActiveDeadlineSeconds(checkDeadlineSeconds).
		WithTerminationGracePeriodSeconds(1).
		WithAutomountServiceAccountToken(false).
		WithEnableServiceLinks(false).
		WithImagePullSecrets(pullSecrets(in)...).
		WithSecurityContext(podSecurityContext(in)).
		WithVolumes(corev1ac.Volume().WithName(naming.VolumeTmp).WithEmptyDir(corev1ac.EmptyDirVolumeSource())).
		WithContainers(corev1ac.Container().
			WithName(naming.ContainerRedis).
			WithImage(in.Image).
			WithCommand("sh", "-c", conf.CheckScript).
			WithEnv(
				corev1ac.EnvVar().WithName(conf.EnvCheckConf).WithValue(directives),
				corev1ac.EnvVar().WithName(conf.EnvCheckNames).WithValue(strings.Join(names, " ")),
				corev1ac.EnvVar().WithName("TMPDIR").WithValue(path.Clean(naming.MountTmp))).
			WithResources(corev1ac.ResourceRequirements().
				WithRequests(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(checkCPU), corev1.ResourceMemory: resource.MustParse(checkMemory)}).
				WithLimits(corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(checkMemoryLimit)})).
			WithSecurityContext(containerSecurityContext()).
			WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError).
			WithVolumeMounts(corev1ac.VolumeMount().WithName(naming.VolumeTmp).WithMountPath(naming.MountTmp)))
	if err := schedule(in, spec); err != nil {
		return nil, err
	}
	// It is alone.
	spec.TopologySpreadConstraints = nil
	if spec.Affinity != nil {
		spec.Affinity.PodAntiAffinity = nil
	}
	labels := in.selector()
	labels[naming.LabelName] = naming.CheckName
	return corev1ac.Pod(naming.ConfigCheck(in.name()), in.namespace()).
		WithLabels(labels).
		WithOwnerReferences(in.owner()).
		WithSpec(spec), nil
}

func containerSecurityContext() *corev1ac.SecurityContextApplyConfiguration {
	return corev1ac.SecurityContext().
		WithAllowPrivilegeEscalation(false).
		WithReadOnlyRootFilesystem(true).
		WithCapabilities(corev1ac.Capabilities().WithDrop("ALL"))
}
