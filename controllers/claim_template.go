package controllers

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/plan"
	"seang.org/operator/internal/resources"
)

// reconcileClaimTemplate makes way for a StatefulSet with another volume claim
// template, which Kubernetes does not let change: the one that is there is deleted
// and leaves its pods running; the next adopts them. False while that goes on.
func (r *RedisClusterReconciler) reconcileClaimTemplate(ctx context.Context, s *scope, in resources.Input) (bool, error) {
	set := s.statefulSet
	if !set.DeletionTimestamp.IsZero() {
		s.awaitStatefulSet()
		return false, nil
	}
	if sameClaims(set, in) || !metav1.IsControlledBy(set, s.cluster) {
		return true, nil
	}
	if have := claimSize(set); in.Persistent && have != nil && have.Cmp(in.StorageSize) > 0 {
		s.reject(v1alpha1.ReasonStorageTooSmall, fmt.Sprintf(
			"storage.size %s is less than the %s of the volumes, which cannot shrink: set it to at least that", in.StorageSize.String(), have))
		return false, nil
	}
	if err := r.growClaims(ctx, s, in); err != nil {
		return false, err
	}
	orphan := metav1.DeletePropagationOrphan
	err := r.Delete(ctx, set, &client.DeleteOptions{PropagationPolicy: &orphan,
		Preconditions: &metav1.Preconditions{UID: &set.UID, ResourceVersion: &set.ResourceVersion}})
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("delete the StatefulSet %s, without its pods, for one with other volume claims: %w", set.Name, err)
	}
	logf.FromContext(ctx).Info("StatefulSet deleted to be made anew, its pods stay", "reason", "its volume claim template changes")
	s.awaitStatefulSet()
	return false, nil
}

// awaitStatefulSet waits for a StatefulSet that is deleted and made anew.
func (s *scope) awaitStatefulSet() {
	s.wait(plan.Wait{Reason: v1alpha1.ReasonConfiguring, Message: "the StatefulSet is replaced; its pods stay"})
}

// sameClaims says that the StatefulSet makes the volume claims that are wanted.
func sameClaims(set *appsv1.StatefulSet, in resources.Input) bool {
	have := claimSize(set)
	if !in.Persistent || have == nil {
		return !in.Persistent && have == nil
	}
	return have.Cmp(in.StorageSize) == 0
}

// claimSize is the size of the volumes that the StatefulSet asks for; nil if it asks
// for none.
func claimSize(set *appsv1.StatefulSet) *resource.Quantity {
	for _, claim := range set.Spec.VolumeClaimTemplates {
		return claim.Spec.Resources.Requests.Storage()
	}
	return nil
}

// addsVolumes says that the StatefulSet gives its pods volumes that some do not
// have yet. It fails to add them to those and gets no further, by ordinal, than
// the first of them.
func (s *scope) addsVolumes(members []plan.Member) bool {
	return s.statefulSet != nil && claimSize(s.statefulSet) != nil &&
		slices.ContainsFunc(members, func(m plan.Member) bool { return m.PodUID != "" && !m.Persistent })
}

// onVolume says that the pod keeps its data on a volume that outlives it.
func onVolume(pod *corev1.Pod) bool {
	volume := volumeOf(&pod.Spec, naming.VolumeData)
	return volume != nil && volume.PersistentVolumeClaim != nil
}

// volumeOf is the volume of a pod with the name; nil if there is none.
func volumeOf(pod *corev1.PodSpec, name string) *corev1.Volume {
	for i := range pod.Volumes {
		if pod.Volumes[i].Name == name {
			return &pod.Volumes[i]
		}
	}
	return nil
}
