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
		case ordinal < s.wanted():
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
	changed := claim.DeepCopy()
	err = r.Patch(ctx, changed, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(naming.FieldOwner))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("keep the record with the volume claim %s: %w", claim.Name, err)
	}
	s.memory.claims[claim.UID] = changed.ResourceVersion
	return nil
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
