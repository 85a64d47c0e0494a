package resources

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/conf"
)

// terminationGrace in seconds: a last snapshot to disk, and Redis's own wait
// for its replicas (shutdown-timeout), have to end within it.
const terminationGrace = 60

// defaultCPU is requested where the spec says nothing.
var defaultCPU = resource.MustParse("100m")

// StatefulSet keeps the pods and their volumes. Pods start in parallel and are
// replaced only when the operator deletes them (OnDelete); volumes are deleted
// only by the operator (Retain).
func StatefulSet(in Input) *appsv1ac.StatefulSetApplyConfiguration {
	spec := appsv1ac.StatefulSetSpec().
		WithServiceName(naming.NodesService(in.Cluster.Name)).
		WithReplicas(in.Members).
		WithPodManagementPolicy(appsv1.ParallelPodManagement).
		WithUpdateStrategy(appsv1ac.StatefulSetUpdateStrategy().WithType(appsv1.OnDeleteStatefulSetStrategyType)).
		WithPersistentVolumeClaimRetentionPolicy(appsv1ac.StatefulSetPersistentVolumeClaimRetentionPolicy().
			WithWhenDeleted(appsv1.RetainPersistentVolumeClaimRetentionPolicyType).
			WithWhenScaled(appsv1.RetainPersistentVolumeClaimRetentionPolicyType)).
		WithSelector(metav1ac.LabelSelector().WithMatchLabels(in.labels())).
		WithTemplate(podTemplate(in))
	if in.persistent() {
		spec.WithVolumeClaimTemplates(claimTemplate(in))
	}
	return appsv1ac.StatefulSet(naming.StatefulSet(in.Cluster.Name), in.Cluster.Namespace).
		WithLabels(in.labels()).WithOwnerReferences(in.owner()).WithSpec(spec)
}

func claimTemplate(in Input) *corev1ac.PersistentVolumeClaimApplyConfiguration {
	claim := corev1ac.PersistentVolumeClaimSpec().
		WithAccessModes(corev1.ReadWriteOnce).
		WithResources(corev1ac.VolumeResourceRequirements().WithRequests(corev1.ResourceList{corev1.ResourceStorage: in.StorageSize}))
	if storage := in.Cluster.Spec.Storage; storage != nil && storage.StorageClassName != nil {
		claim.WithStorageClassName(*storage.StorageClassName)
	}
	// The template carries a name, no namespace.
	template := corev1ac.PersistentVolumeClaim(naming.VolumeData, "")
	template.Namespace = nil
	return template.WithLabels(in.labels()).WithSpec(claim)
}

func podTemplate(in Input) *corev1ac.PodTemplateSpecApplyConfiguration {
	labels := map[string]string{}
	template := corev1ac.PodTemplateSpec()
	if extra := in.Cluster.Spec.PodMetadata; extra != nil {
		maps.Copy(labels, extra.Labels)
		template.WithAnnotations(maps.Clone(extra.Annotations))
	}
	maps.Copy(labels, in.labels())
	spec := corev1ac.PodSpec().
		WithAutomountServiceAccountToken(false).
		WithEnableServiceLinks(false).
		WithTerminationGracePeriodSeconds(terminationGrace).
		WithSecurityContext(corev1ac.PodSecurityContext().
			WithRunAsNonRoot(true).
			WithRunAsUser(naming.UserID).WithRunAsGroup(naming.GroupID).WithFSGroup(naming.GroupID).
			WithFSGroupChangePolicy(corev1.FSGroupChangeOnRootMismatch).
			WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))).
		WithContainers(container(in)).
		WithVolumes(volumes(in)...)
	schedule(in, spec)
	return template.WithLabels(labels).WithSpec(spec)
}

// container runs Redis. It has no probes: a process that ends ends the
// container, a process that hangs is the operator's business, and a probe that
// restarts a loading Redis only does harm.
func container(in Input) *corev1ac.ContainerApplyConfiguration {
	memory := *resource.NewQuantity(in.MemoryLimit, resource.BinarySI)
	requests := corev1.ResourceList{corev1.ResourceMemory: memory, corev1.ResourceCPU: defaultCPU}
	limits := corev1.ResourceList{corev1.ResourceMemory: memory}
	if r := in.Cluster.Spec.Resources; r != nil && r.CPU != nil {
		if r.CPU.Limit != nil {
			limits[corev1.ResourceCPU] = *r.CPU.Limit
			if r.CPU.Limit.Cmp(defaultCPU) < 0 {
				requests[corev1.ResourceCPU] = *r.CPU.Limit
			}
		}
		if r.CPU.Request != nil {
			requests[corev1.ResourceCPU] = *r.CPU.Request
		}
	}
	persistence := "no"
	if in.persistent() {
		persistence = "yes"
	}
	return corev1ac.Container().
		WithName(naming.ContainerRedis).
		WithImage(in.Image).
		WithCommand("sh", naming.MountConfig+"/"+naming.KeyStart).
		WithEnv(corev1ac.EnvVar().WithName(conf.EnvPersistence).WithValue(persistence)).
		WithPorts(corev1ac.ContainerPort().WithName(naming.PortNameRedis).WithContainerPort(naming.PortRedis).WithProtocol(corev1.ProtocolTCP)).
		WithResources(corev1ac.ResourceRequirements().WithRequests(requests).WithLimits(limits)).
		WithResizePolicy(
			corev1ac.ContainerResizePolicy().WithResourceName(corev1.ResourceCPU).WithRestartPolicy(corev1.NotRequired),
			corev1ac.ContainerResizePolicy().WithResourceName(corev1.ResourceMemory).WithRestartPolicy(corev1.NotRequired)).
		WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError).
		WithSecurityContext(corev1ac.SecurityContext().
			WithAllowPrivilegeEscalation(false).
			WithReadOnlyRootFilesystem(true).
			WithCapabilities(corev1ac.Capabilities().WithDrop("ALL"))).
		WithVolumeMounts(
			corev1ac.VolumeMount().WithName(naming.VolumeData).WithMountPath(naming.MountData),
			corev1ac.VolumeMount().WithName(naming.VolumeConfig).WithMountPath(naming.MountConfig).WithReadOnly(true),
			corev1ac.VolumeMount().WithName(naming.VolumeSystem).WithMountPath(naming.MountSystem).WithReadOnly(true),
			corev1ac.VolumeMount().WithName(naming.VolumeTmp).WithMountPath(naming.MountTmp))
}

// volumes of a pod: of the system Secret only what Redis reads.
func volumes(in Input) []*corev1ac.VolumeApplyConfiguration {
	volumes := []*corev1ac.VolumeApplyConfiguration{
		corev1ac.Volume().WithName(naming.VolumeConfig).WithConfigMap(corev1ac.ConfigMapVolumeSource().
			WithName(naming.ConfigMap(in.Cluster.Name))),
		corev1ac.Volume().WithName(naming.VolumeSystem).WithSecret(corev1ac.SecretVolumeSource().
			WithSecretName(naming.SystemSecret(in.Cluster.Name)).
			WithDefaultMode(0o440).
			WithItems(
				corev1ac.KeyToPath().WithKey(naming.KeyACL).WithPath(naming.KeyACL),
				corev1ac.KeyToPath().WithKey(naming.KeyReplicationConf).WithPath(naming.KeyReplicationConf))),
		corev1ac.Volume().WithName(naming.VolumeTmp).WithEmptyDir(corev1ac.EmptyDirVolumeSource()),
	}
	if in.persistent() {
		return volumes
	}
	return append(volumes, corev1ac.Volume().WithName(naming.VolumeData).WithEmptyDir(corev1ac.EmptyDirVolumeSource()))
}

// schedule says where the pods may run; by default they are spread over nodes
// and zones where that is possible.
func schedule(in Input, spec *corev1ac.PodSpecApplyConfiguration) {
	wanted := in.Cluster.Spec.Scheduling
	if wanted == nil {
		wanted = &v1alpha1.SchedulingSpec{}
	}
	constraints := wanted.TopologySpreadConstraints
	if len(constraints) == 0 {
		for _, key := range []string{corev1.LabelHostname, corev1.LabelTopologyZone} {
			constraints = append(constraints, corev1.TopologySpreadConstraint{
				MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.ScheduleAnyway})
		}
	}
	for _, constraint := range constraints {
		spec.WithTopologySpreadConstraints(spread(in, constraint))
	}
	if len(wanted.NodeSelector) > 0 {
		spec.WithNodeSelector(wanted.NodeSelector)
	}
	if wanted.PriorityClassName != "" {
		spec.WithPriorityClassName(wanted.PriorityClassName)
	}
	if wanted.Affinity != nil {
		spec.WithAffinity(convert[corev1ac.AffinityApplyConfiguration](wanted.Affinity))
	}
	for i := range wanted.Tolerations {
		spec.WithTolerations(convert[corev1ac.TolerationApplyConfiguration](&wanted.Tolerations[i]))
	}
}

func spread(in Input, constraint corev1.TopologySpreadConstraint) *corev1ac.TopologySpreadConstraintApplyConfiguration {
	out := convert[corev1ac.TopologySpreadConstraintApplyConfiguration](&constraint)
	if constraint.LabelSelector == nil {
		out.WithLabelSelector(metav1ac.LabelSelector().WithMatchLabels(in.labels()))
	}
	return out
}
