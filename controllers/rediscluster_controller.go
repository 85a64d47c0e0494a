// Package controllers holds the loop that reads and writes the API server and
// the Redis members on behalf of a RedisCluster: it observes, lets the plan
// package decide, does the steps, and writes the status once.
package controllers

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/redis/admin"
)

// How soon a pass follows the last one when no event is expected to ask for it.
const (
	// idleInterval reads the named Secrets again; it is the one poll of the
	// API server, and writes nothing.
	idleInterval = 30 * time.Second
	// pollInterval waits for what Redis does not announce, for example the end
	// of a full sync.
	pollInterval = 100 * time.Millisecond
	// firstPollInterval is the first of these waits: most are over at once.
	firstPollInterval = 20 * time.Millisecond
)

// RedisClusterReconciler brings what runs to what a RedisCluster asks for.
type RedisClusterReconciler struct {
	client.Client
	// Live reads past the cache.
	Live client.Reader
	// Recorder sends Events.
	Recorder events.EventRecorder
	// Members holds a connection to each Redis process.
	Members *admin.Pool
	// Wake asks for a pass when a connection to a member breaks.
	Wake chan event.TypedGenericEvent[*v1alpha1.RedisCluster]
	// Clock tells the time; tests replace it.
	Clock clock.PassiveClock
	// DefaultImage is used where spec.image is not set.
	DefaultImage string
	// Namespace is that of the operator's own pods; empty if it runs in none, and then
	// keeps no NetworkPolicy, since that would shut it out.
	Namespace string
	// AnyUser leaves it to Kubernetes which user the pods run as.
	AnyUser bool
	// Leads confirms live that no other process can act for some time; nil if there
	// is no other.
	Leads func(ctx context.Context, left time.Duration) error

	secrets  *secretReader
	memories *memories
}

// +kubebuilder:rbac:groups=cache.seang.org,resources=redisclusters,verbs=list;watch;patch
// +kubebuilder:rbac:groups=cache.seang.org,resources=redisclusters/status,verbs=update
// +kubebuilder:rbac:groups=cache.seang.org,resources=redisclusters/finalizers,verbs=update

// Reconcile makes one pass over the RedisCluster that request names.
func (r *RedisClusterReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	cluster := &v1alpha1.RedisCluster{}
	if err := r.Get(ctx, request.NamespacedName, cluster); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(request.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	s := r.newScope(cluster)
	if !s.cluster.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.finalize(ctx, s)
	}
	err := r.pass(ctx, s)
	return r.finish(ctx, s, err)
}

// pass does everything for one RedisCluster, in the order in which one thing
// needs another. What is wrong with the spec is a fact of the scope, not an
// error: the other steps go on with what runs.
func (r *RedisClusterReconciler) pass(ctx context.Context, s *scope) error {
	if s.paused() {
		return r.reconcileNothing(ctx, s)
	}
	for _, step := range []func(context.Context, *scope) error{
		r.reconcileFinalizer,
		r.reconcileSecrets,
		r.reconcileCertificate,
		r.reconcileMembers,
		r.reconcileRequests,
		r.reconcileMemory,
		r.reconcileTLS,
		r.reconcileUsers,
		r.reconcileConfig,
		r.reconcileConfigMap,
		r.reconcileServices,
		r.reconcileNetworkPolicy,
		r.reconcileStatefulSet,
		r.reconcileNoCertificate,
		r.reconcileBroken,
		r.reconcileDisruptionBudget,
		r.reconcileVolumes,
	} {
		if err := step(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// finish writes the status and says when to look again.
func (r *RedisClusterReconciler) finish(ctx context.Context, s *scope, passErr error) (ctrl.Result, error) {
	passErr = s.absorb(passErr)
	if err := r.writeStatus(ctx, s, passErr); err != nil {
		if apierrors.IsConflict(err) {
			logf.FromContext(ctx).V(1).Info("the RedisCluster changed during the pass: looking again")
			return ctrl.Result{RequeueAfter: firstPollInterval}, nil
		}
		return ctrl.Result{}, err
	}
	if passErr != nil {
		return ctrl.Result{}, passErr
	}
	return ctrl.Result{RequeueAfter: s.nextLook()}, nil
}
