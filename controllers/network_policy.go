package controllers

import (
	"context"
	"fmt"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/resources"
)

// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=get;list;watch;create;patch;delete

// reconcileNetworkPolicy says who may connect, before there is a pod to connect to.
func (r *RedisClusterReconciler) reconcileNetworkPolicy(ctx context.Context, s *scope) error {
	policy := &networkingv1.NetworkPolicy{}
	key := client.ObjectKey{Namespace: s.cluster.Namespace, Name: naming.NetworkPolicy(s.cluster.Name)}
	if err := r.Get(ctx, key, policy); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read NetworkPolicy %s: %w", key, err)
	}
	have := metav1.IsControlledBy(policy, s.cluster)
	if !s.isolated(have) || r.Namespace == "" {
		s.networkPolicy = ""
		if !have {
			return nil
		}
		return r.removePolicy(ctx, policy)
	}
	wanted, err := resources.NetworkPolicy(s.input(), r.Namespace)
	if err != nil {
		return err
	}
	if err := r.child(ctx, s, wanted, &networkingv1.NetworkPolicy{}); err != nil {
		return err
	}
	s.networkPolicy = key.Name
	return nil
}

// isolated says that there is to be a NetworkPolicy. A RedisCluster that came to be without
// one, under a release that made none, may have clients whom the default would shut out:
// there it takes a word of the user (docs/adr/0006).
func (s *scope) isolated(have bool) bool {
	if want := s.cluster.Spec.NetworkPolicy; want != nil {
		return want.Mode != v1alpha1.NetworkPolicyNone
	}
	return have || s.networkPolicy != "" || s.statefulSet == nil
}

func (r *RedisClusterReconciler) removePolicy(ctx context.Context, policy *networkingv1.NetworkPolicy) error {
	err := r.Delete(ctx, policy, client.Preconditions{UID: &policy.UID})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete NetworkPolicy %s, which networkPolicy.mode None asks for: %w", client.ObjectKeyFromObject(policy), err)
	}
	return nil
}
