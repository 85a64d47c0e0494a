package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

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
	next := s.cluster.DeepCopy()
	delete(next.Annotations, naming.AnnotationSwitchoverTo)
	patch := client.MergeFromWithOptions(s.cluster, client.MergeFromWithOptimisticLock{})
	if err := r.Patch(ctx, next, patch, client.FieldOwner(naming.FieldOwner)); err != nil {
		return fmt.Errorf("remove the annotation %s: %w", naming.AnnotationSwitchoverTo, err)
	}
	s.wrote(next)
	logf.FromContext(ctx).Info("switchover answered", "done", answer.Done, "answer", answer.Message)
	if !answer.Done {
		r.Recorder.Eventf(next, nil, corev1.EventTypeWarning, eventSwitchoverRefused, "Switchover", "%s", answer.Message)
	}
	return nil
}
