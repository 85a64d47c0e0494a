package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/plan"
)

// requests are, for what a person can ask, the annotation and the reason of the
// Event that says why it was not done.
var requests = map[plan.Request]struct{ annotation, refused string }{
	plan.RequestSwitchover:     {naming.AnnotationSwitchoverTo, "SwitchoverRefused"},
	plan.RequestAcceptDataLoss: {naming.AnnotationAcceptDataLoss, "AcceptDataLossRefused"},
}

// eventDataLossAccepted is the reason of the Event of a decision that was followed.
const eventDataLossAccepted = "DataLossAccepted"

// reconcileRequests ends what a person asked for: it is done once, or refused once,
// and does not come back after the next failover.
func (r *RedisClusterReconciler) reconcileRequests(ctx context.Context, s *scope) error {
	for _, answer := range s.decision.Answers {
		request := requests[answer.Request]
		err := r.patchMetadata(ctx, s, func(cluster *v1alpha1.RedisCluster) { delete(cluster.Annotations, request.annotation) })
		if err != nil {
			return fmt.Errorf("remove the annotation %s: %w", request.annotation, err)
		}
		logf.FromContext(ctx).Info("request answered", "request", string(answer.Request), "done", answer.Done, "answer", answer.Message)
		switch {
		case !answer.Done:
			r.event(s.cluster, corev1.EventTypeWarning, request.refused, string(answer.Request), answer.Message)
		case answer.Request == plan.RequestAcceptDataLoss:
			r.event(s.cluster, corev1.EventTypeWarning, eventDataLossAccepted, string(answer.Request), answer.Message)
		}
	}
	return nil
}
