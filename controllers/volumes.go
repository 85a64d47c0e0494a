package controllers

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/kube"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/plan"
	"seang.org/operator/internal/resources"
)

// claims returns the volume claims of the cluster by pod name.
func (r *RedisClusterReconciler) claims(ctx context.Context, s *scope) (map[string]*corev1.PersistentVolumeClaim, error) {
	list := &corev1.PersistentVolumeClaimList{}
	if err := r.List(ctx, list, ofCluster(s.cluster)...); err != nil {
		return nil, fmt.Errorf("list the volume claims of %s: %w", s.cluster.Name, err)
	}
	claims := map[string]*corev1.PersistentVolumeClaim{}
	for i := range list.Items {
		if pod, ok := naming.ClaimedBy(list.Items[i].Name); ok {
			claims[pod] = &list.Items[i]
		}
	}
	return claims, nil
}

// reconcileVolumes keeps the record with each volume, and deletes the volumes of
// members that were scaled away, once those that stay are in sync.
func (r *RedisClusterReconciler) reconcileVolumes(ctx context.Context, s *scope) error {
	claims, err := r.claims(ctx, s)
	if err != nil {
		return err
	}
	for pod, claim := range claims {
		ordinal, _ := naming.Ordinal(s.cluster.Name, pod)
		switch {
		case !s.facts.Persistent && s.unused(pod):
			err = r.deleteClaim(ctx, claim, "persistence was switched off, and all members run without it")
		case ordinal < s.wanted():
			s.awaitGrowth(claim)
			err = r.keepRecord(ctx, s, claim, volumeRecord(s.cluster.Status.Record))
		case s.pods[pod] == nil && len(s.decision.InSync) >= int(s.cluster.Spec.Replicas):
			err = r.deleteClaim(ctx, claim, "its member was scaled away and the others are in sync")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unused says that the volume of a pod is not needed any more: the pod runs without
// it and all members are in sync.
func (s *scope) unused(pod string) bool {
	return s.pods[pod] != nil && !onVolume(s.pods[pod]) && len(s.decision.InSync) >= int(s.cluster.Spec.Replicas)
}

// growClaims asks for larger volumes where the spec does. An error means that the
// storage class refuses it, and nothing else was touched.
func (r *RedisClusterReconciler) growClaims(ctx context.Context, s *scope, in resources.Input) error {
	claims, err := r.claims(ctx, s)
	if err != nil || !in.Persistent {
		return err
	}
	for _, claim := range claims {
		if claim.Spec.Resources.Requests.Storage().Cmp(in.StorageSize) >= 0 {
			continue
		}
		patch := fmt.Sprintf(`{"metadata":{"uid":%q},"spec":{"resources":{"requests":{"storage":%q}}}}`, claim.UID, in.StorageSize.String())
		if err := r.patchClaim(ctx, s, claim, patch); err != nil {
			return fmt.Errorf("grow the volume claim %s to %s: %w", claim.Name, in.StorageSize.String(), err)
		}
		logf.FromContext(ctx).Info("volume claim grows", "claim", claim.Name, "size", in.StorageSize.String())
	}
	return nil
}

// awaitGrowth waits for a volume that is smaller than its claim asks.
func (s *scope) awaitGrowth(claim *corev1.PersistentVolumeClaim) {
	asked, have := claim.Spec.Resources.Requests.Storage(), claim.Status.Capacity.Storage()
	if !have.IsZero() && have.Cmp(*asked) < 0 {
		s.wait(plan.Wait{Reason: v1alpha1.ReasonResizing, Message: fmt.Sprintf("the volume %s grows from %s to %s", claim.Name, have, asked)})
	}
}

// volumeRecord is what is kept with each volume: who may hold the data, not how
// far each is, which changes without harm.
func volumeRecord(record *v1alpha1.Record) *v1alpha1.Record {
	if record == nil {
		return nil
	}
	return &v1alpha1.Record{Epoch: record.Epoch, Primary: record.Primary}
}

// closed is the record of a cluster whose processes have all ended in good
// order: nothing is left to fence.
func closed(record *v1alpha1.Record) *v1alpha1.Record {
	if record == nil {
		return nil
	}
	out := &v1alpha1.Record{Epoch: record.Epoch, Primary: v1alpha1.MemberID{Pod: record.Primary.Pod}}
	for _, h := range record.MayHold {
		out.MayHold = append(out.MayHold, v1alpha1.Holder{MemberID: v1alpha1.MemberID{Pod: h.Pod}, InSync: h.InSync})
	}
	return out
}

func (r *RedisClusterReconciler) keepRecord(ctx context.Context, s *scope, claim *corev1.PersistentVolumeClaim, record *v1alpha1.Record) error {
	if record == nil || kube.Older(claim.ResourceVersion, s.memory.claims[claim.UID]) {
		return nil
	}
	text, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("encode the record: %w", err)
	}
	if claim.Annotations[naming.AnnotationRecord] == string(text) {
		return nil
	}
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"annotations":{%q:%q}}}`, claim.UID, naming.AnnotationRecord, text)
	if err := client.IgnoreNotFound(r.patchClaim(ctx, s, claim, patch)); err != nil {
		return fmt.Errorf("keep the record with the volume claim %s: %w", claim.Name, err)
	}
	return nil
}

// patchClaim changes a volume claim, which the cache may show late.
func (r *RedisClusterReconciler) patchClaim(ctx context.Context, s *scope, claim *corev1.PersistentVolumeClaim, patch string) error {
	changed := claim.DeepCopy()
	err := r.Patch(ctx, changed, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(naming.FieldOwner))
	if err == nil {
		s.memory.claims[claim.UID] = changed.ResourceVersion
	}
	return err
}

func (r *RedisClusterReconciler) deleteClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim, why string) error {
	if !claim.DeletionTimestamp.IsZero() {
		return nil
	}
	err := r.Delete(ctx, claim, client.Preconditions{UID: &claim.UID, ResourceVersion: &claim.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete the volume claim %s: %w", claim.Name, err)
	}
	logf.FromContext(ctx).Info("volume claim deleted", "claim", claim.Name, "reason", why)
	return nil
}
