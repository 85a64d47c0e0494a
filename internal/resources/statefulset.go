package resources

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"seang.org/operator/internal/naming"
)

// StatefulSet runs the members. It only keeps the pods there: the update
// strategy OnDelete leaves each pod's turn to the operator, and its retention
// policy never deletes a volume. An error means that a scheduling field of the
// spec cannot be copied.
func StatefulSet(in Input) (*appsv1ac.StatefulSetApplyConfiguration, error) {
	template, err := podTemplate(in)
	if err != nil {
		return nil, fmt.Errorf("build pod template of RedisCluster %s/%s: %w", in.namespace(), in.name(), err)
	}
	spec := appsv1ac.StatefulSetSpec().
		WithReplicas(1 + in.Replicas).
		WithServiceName(naming.NodesService(in.name())).
		WithPodManagementPolicy(appsv1.ParallelPodManagement).
		WithUpdateStrategy(appsv1ac.StatefulSetUpdateStrategy().WithType(appsv1.OnDeleteStatefulSetStrategyType)).
		WithPersistentVolumeClaimRetentionPolicy(appsv1ac.StatefulSetPersistentVolumeClaimRetentionPolicy().
			WithWhenDeleted(appsv1.RetainPersistentVolumeClaimRetentionPolicyType).
			WithWhenScaled(appsv1.RetainPersistentVolumeClaimRetentionPolicyType)).
		WithSelector(metav1ac.LabelSelector().WithMatchLabels(in.selector())).
		WithTemplate(template)
	if in.Persistent {
		spec.WithVolumeClaimTemplates(claimTemplate(in))
	}
	return appsv1ac.StatefulSet(naming.StatefulSet(in.name()), in.namespace()).
		WithLabels(in.selector()).
		WithOwnerReferences(in.owner()).
		WithSpec(spec), nil
}

// claimTemplate is the volume of a member. Its labels let the finalizer find
// the claims of a cluster whose StatefulSet is gone. It has no owner reference:
// only the finalizer deletes data.
func claimTemplate(in Input) *corev1ac.PersistentVolumeClaimApplyConfiguration {
	spec := corev1ac.PersistentVolumeClaimSpec().
		WithAccessModes(corev1.ReadWriteOnce).
		WithVolumeMode(corev1.PersistentVolumeFilesystem).
		WithResources(corev1ac.VolumeResourceRequirements().
			WithRequests(corev1.ResourceList{corev1.ResourceStorage: in.StorageSize}))
	if storage := in.Cluster.Spec.Storage; storage != nil && storage.StorageClassName != "" {
		spec.WithStorageClassName(storage.StorageClassName)
	}
	// The constructor would set an empty namespace.
	claim := &corev1ac.PersistentVolumeClaimApplyConfiguration{}
	return claim.
		WithAPIVersion("v1").
		WithKind("PersistentVolumeClaim").
		WithName(naming.VolumeData).
		WithLabels(in.selector()).
		WithSpec(spec)
}
