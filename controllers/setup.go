package controllers

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/admin"
)

// How the work queue paces itself.
const (
	concurrentReconciles = 16
	retryBase            = 50 * time.Millisecond
	retryMax             = 30 * time.Second
	passTimeout          = time.Minute
	wakeBuffer           = 1024
)

// SetupWithManager makes the manager run the reconciler.
func (r *RedisClusterReconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	r.memories = newMemories()
	r.secrets = &secretReader{Reader: r.Live, clock: r.Clock, read: map[types.NamespacedName]secretRead{}}
	r.Wake = make(chan event.TypedGenericEvent[*v1alpha1.RedisCluster], wakeBuffer)
	r.Members = admin.NewPool(r.wake)
	if r.Leads != nil {
		r.Members.Leads = func(ctx context.Context) error { return r.Leads(ctx, 0) }
	}
	for _, kind := range []client.Object{&corev1.Pod{}, &corev1.PersistentVolumeClaim{}} {
		if err := mgr.GetFieldIndexer().IndexField(ctx, kind, indexCluster, clusterName); err != nil {
			return fmt.Errorf("index %T by cluster: %w", kind, err)
		}
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("rediscluster").
		For(&v1alpha1.RedisCluster{}, builder.WithPredicates(specChanged())).
		Owns(&appsv1.StatefulSet{}).
		Owns(&corev1.Service{}).
		Owns(&corev1.ConfigMap{}).
		Owns(&policyv1.PodDisruptionBudget{}).
		Owns(&networkingv1.NetworkPolicy{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(owner)).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(owner)).
		WatchesRawSource(source.Channel(r.Wake, &handler.TypedEnqueueRequestForObject[*v1alpha1.RedisCluster]{})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: concurrentReconciles,
			ReconciliationTimeout:   passTimeout,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryBase, retryMax),
		}).
		Complete(r)
}

// indexCluster finds the pods and the volume claims of one RedisCluster in the
// cache without a look at those of all others.
const indexCluster = "cluster"

func clusterName(object client.Object) []string {
	return []string{object.GetLabels()[naming.LabelInstance]}
}

// ofCluster selects the pods or the volume claims of one RedisCluster.
func ofCluster(cluster *v1alpha1.RedisCluster) []client.ListOption {
	return []client.ListOption{client.InNamespace(cluster.Namespace), client.MatchingFields{indexCluster: cluster.Name},
		client.MatchingLabels(naming.Selector(cluster.Name))}
}

// wake asks for a pass over the cluster whose member changed.
func (r *RedisClusterReconciler) wake(key admin.Key) {
	cluster, ok := naming.ClusterOf(key.Pod)
	if !ok {
		return
	}
	object := &v1alpha1.RedisCluster{}
	object.Namespace, object.Name = key.Namespace, cluster
	r.Wake <- event.TypedGenericEvent[*v1alpha1.RedisCluster]{Object: object}
}

// owner names the RedisCluster that an object's labels speak of. A tombstone
// comes here as the last known object, so a missed deletion wakes us too.
func owner(_ context.Context, object client.Object) []reconcile.Request {
	labels := object.GetLabels()
	name := labels[naming.LabelInstance]
	if name == "" || labels[naming.LabelManagedBy] != naming.Operator {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}}
}

// specChanged lets through what a person changed: the spec, the deletion and
// the annotations that matter; not our own status writes.
func specChanged() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := e.ObjectOld, e.ObjectNew
			return before.GetGeneration() != after.GetGeneration() ||
				before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero() ||
				slices.ContainsFunc(naming.Requests, func(annotation string) bool {
					return before.GetAnnotations()[annotation] != after.GetAnnotations()[annotation]
				}) ||
				before.GetUID() != after.GetUID() || len(before.GetFinalizers()) != len(after.GetFinalizers())
		},
	}
}
