package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
)

// eventSwitchoverRefused is the reason of the Event that says why a requested
// switchover was not made.
const eventSwitchoverRefused = "SwitchoverRefused"

// reconcileRequest ends a switchover that a person asked for: it is made once, or
// refused once, and does not come back after the next failover.
func (r *RedisClusterReconciler) reconcileRequest(ctx context.Context, s *scope) error {
	answer := s.decision.Answer
	if answer == nil {
		return nil
	}
	err := r.patchMetadata(ctx, s, func(cluster *v1alpha1.RedisCluster) {
		delete(cluster.Annotations, naming.AnnotationSwitchoverTo)
	})
	if err != nil {
		return fmt.Errorf("remove the annotation %s: %w", naming.AnnotationSwitchoverTo, err)
	}
	logf.FromContext(ctx).Info("switchover answered", "done", answer.Done, "answer", answer.Message)
	if !answer.Done {
		r.Recorder.Eventf(s.cluster, nil, corev1.EventTypeWarning, eventSwitchoverRefused, "Switchover", "%s", answer.Message)
	}
	return nil
}
