package controllers

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
)

// reconcileFinalizer holds the RedisCluster until its volumes are dealt with.
func (r *RedisClusterReconciler) reconcileFinalizer(ctx context.Context, s *scope) error {
	if controllerutil.ContainsFinalizer(s.cluster, naming.Finalizer) {
		return nil
	}
	return r.patchFinalizers(ctx, s, append(s.cluster.Finalizers, naming.Finalizer))
}

func (r *RedisClusterReconciler) patchFinalizers(ctx context.Context, s *scope, finalizers []string) error {
	if err := r.patchMetadata(ctx, s, func(cluster *v1alpha1.RedisCluster) { cluster.Finalizers = finalizers }); err != nil {
		return fmt.Errorf("set the finalizers of %s: %w", client.ObjectKeyFromObject(s.cluster), err)
	}
	return nil
}

// patchMetadata writes an edit of the RedisCluster's metadata, if nobody wrote it
// since it was read.
func (r *RedisClusterReconciler) patchMetadata(ctx context.Context, s *scope, edit func(*v1alpha1.RedisCluster)) error {
	next := s.cluster.DeepCopy()
	edit(next)
	patch := client.MergeFromWithOptions(s.cluster, client.MergeFromWithOptimisticLock{})
	if err := r.Patch(ctx, next, patch, client.FieldOwner(naming.FieldOwner)); err != nil {
		return err
	}
	s.wrote(next)
	return nil
}

// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=delete

// finalize ends a cluster: the pods first, in good order, then the volumes, as
// the reclaim policy says. It goes on by the events of the pods, and nothing
// but the API server can stop it.
func (r *RedisClusterReconciler) finalize(ctx context.Context, s *scope) error {
	if !controllerutil.ContainsFinalizer(s.cluster, naming.Finalizer) {
		return nil
	}
	if err := r.observeObjects(ctx, s); err != nil {
		return err
	}
	if err := r.deleteStatefulSet(ctx, s); err != nil {
		return err
	}
	if s.statefulSet != nil || len(s.pods) > 0 {
		logf.FromContext(ctx).V(1).Info("waiting for the pods to end", "pods", len(s.pods))
		return nil
	}
	if err := r.releaseVolumes(ctx, s); err != nil {
		return err
	}
	finalizers := []string{}
	for _, f := range s.cluster.Finalizers {
		if f != naming.Finalizer {
			finalizers = append(finalizers, f)
		}
	}
	if err := r.patchFinalizers(ctx, s, finalizers); client.IgnoreNotFound(err) != nil {
		return err
	}
	r.forget(client.ObjectKeyFromObject(s.cluster))
	return nil
}

// deleteStatefulSet deletes the one that is ours, if it is not deleted yet.
func (r *RedisClusterReconciler) deleteStatefulSet(ctx context.Context, s *scope) error {
	if s.statefulSet == nil || !s.statefulSet.DeletionTimestamp.IsZero() || !metav1.IsControlledBy(s.statefulSet, s.cluster) {
		return nil
	}
	background := metav1.DeletePropagationBackground
	err := r.Delete(ctx, s.statefulSet, &client.DeleteOptions{PropagationPolicy: &background,
		Preconditions: &metav1.Preconditions{UID: &s.statefulSet.UID}})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete StatefulSet %s: %w", s.statefulSet.Name, err)
	}
	return nil
}

// releaseVolumes deletes the volume claims, or leaves each with a record that
// lets the next RedisCluster of this name adopt it.
func (r *RedisClusterReconciler) releaseVolumes(ctx context.Context, s *scope) error {
	claims, err := r.claims(ctx, s)
	if err != nil {
		return err
	}
	storage := s.cluster.Spec.Storage
	retain := storage != nil && storage.ReclaimPolicy == v1alpha1.ReclaimRetain
	for _, claim := range claims {
		if retain {
			err = r.keepRecord(ctx, s, claim, closed(s.cluster.Status.Record))
		} else {
			err = r.deleteClaim(ctx, claim, "the RedisCluster was deleted and its volumes are not retained")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// forget drops what is kept in memory of a RedisCluster that is gone.
func (r *RedisClusterReconciler) forget(key types.NamespacedName) {
	names := []string{naming.SystemSecret(key.Name), naming.AppSecret(key.Name), naming.TLSSecret(key.Name)}
	for user := range r.memories.of(key).passwords {
		names = append(names, naming.UserSecret(key.Name, user))
	}
	for _, name := range names {
		r.secrets.forget(client.ObjectKey{Namespace: key.Namespace, Name: name})
	}
	r.memories.forget(key)
	r.Members.Forget(key.Namespace, key.Name)
	forgetMetrics(key)
}
