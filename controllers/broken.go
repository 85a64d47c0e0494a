package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// +kubebuilder:rbac:groups="",resources=pods,verbs=delete

// reconcileBroken replaces pods that cannot run their Redis and were made from
// an older template or configuration: what the user put right reaches them at
// once, without waiting for the kubelet's back-off. Nothing runs in them, and
// the resource version proves that this is still so.
func (r *RedisClusterReconciler) reconcileBroken(ctx context.Context, s *scope) error {
	for i := range s.facts.Members {
		m := &s.facts.Members[i]
		pod := s.pods[m.Pod]
		if m.Info != nil || m.Trouble.Reason == "" || pod == nil || m.Leaving || running(pod) {
			continue
		}
		if !m.Outdated && !s.configChanged {
			continue
		}
		err := r.Delete(ctx, pod, client.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion})
		if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			return fmt.Errorf("replace the broken pod %s: %w", pod.Name, err)
		}
		logf.FromContext(ctx).Info("broken pod replaced", "pod", pod.Name, "reason", m.Trouble.Reason)
	}
	return nil
}

func running(pod *corev1.Pod) bool {
	for _, container := range pod.Status.ContainerStatuses {
		if container.State.Running != nil {
			return true
		}
	}
	return false
}
