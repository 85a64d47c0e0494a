package nodes

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/internal/naming"
)

// orphan lets a StatefulSet go that was deleted without its pods, as the garbage
// collector does: the pods stay, without an owner.
func (n *Nodes) orphan(ctx context.Context, set *appsv1.StatefulSet, alive map[string]*corev1.Pod, wanted map[string]bool) bool {
	i := slices.Index(set.Finalizers, metav1.FinalizerOrphanDependents)
	if i < 0 {
		return true
	}
	done := true
	for name, pod := range alive {
		if !metav1.IsControlledBy(pod, set) {
			continue
		}
		wanted[name] = true
		pod.OwnerReferences = nil
		done = n.client.Update(ctx, pod) == nil && done
	}
	if !done {
		return false
	}
	set.Finalizers = slices.Delete(set.Finalizers, i, i+1)
	return n.client.Update(ctx, set) == nil
}

// adopt makes the StatefulSet the owner of a pod that has none.
func (n *Nodes) adopt(ctx context.Context, set *appsv1.StatefulSet, pod *corev1.Pod) bool {
	if metav1.GetControllerOf(pod) != nil || !pod.DeletionTimestamp.IsZero() {
		return true
	}
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
	return n.client.Update(ctx, pod) == nil
}

// keep binds a claim to a volume of the size that it asks for, and lets one go that is
// deleted once no pod uses it.
func (n *Nodes) keep(ctx context.Context, claim *corev1.PersistentVolumeClaim, alive map[string]*corev1.Pod) bool {
	if !claim.DeletionTimestamp.IsZero() {
		if pod, _ := naming.ClaimedBy(claim.Name); alive[pod] != nil && uses(alive[pod], claim) {
			return true
		}
		claim.Finalizers = nil
		return n.client.Update(ctx, claim) == nil
	}
	asked := claim.Spec.Resources.Requests
	if claim.Status.Phase == corev1.ClaimBound && equality.Semantic.DeepEqual(claim.Status.Capacity, asked) {
		return true
	}
	claim.Status.Phase, claim.Status.Capacity = corev1.ClaimBound, asked
	return client.IgnoreNotFound(n.client.Status().Update(ctx, claim)) == nil
}

func uses(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(volume corev1.Volume) bool {
		return volume.PersistentVolumeClaim != nil && volume.PersistentVolumeClaim.ClaimName == claim.Name
	})
}
