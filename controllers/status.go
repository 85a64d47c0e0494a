package controllers

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/redis/admin"
	"seang.org/operator/internal/status"
)

// writeStatus writes the status if it changed, and then sends the Events of the
// change. It is the one place that writes status, but for the record, which is
// written before the step that depends on it.
func (r *RedisClusterReconciler) writeStatus(ctx context.Context, s *scope, passErr error) error {
	if apierrors.IsConflict(passErr) {
		return passErr
	}
	s.explainMissingPods()
	before := s.cluster
	next := before.DeepCopy()
	next.Status = status.Compute(s.statusInput(passErr))
	publishMetrics(s, &next.Status)
	if equality.Semantic.DeepEqual(before.Status, next.Status) || s.postpones(passErr, &next.Status) {
		return nil
	}
	s.memory.postponed = 0
	after := next.Status
	if err := r.Status().Update(ctx, next); err != nil {
		return client.IgnoreNotFound(err)
	}
	s.wrote(next)
	r.announce(s, before, next, after)
	logf.FromContext(ctx).Info("status changed", "phase", after.Phase, "primary", after.Primary, "inSync", after.InSyncReplicas)
	return nil
}

// maxPostponed is how many passes in a row may leave the status to the next.
const maxPostponed = 5

// postpones says that the status can wait for the pass that follows at once:
// one that acted and changed nothing that a person would miss.
func (s *scope) postpones(passErr error, next *v1alpha1.RedisClusterStatus) bool {
	before := s.cluster.Status
	if !s.acted || passErr != nil || before.Phase != next.Phase || before.Primary != next.Primary || s.memory.postponed >= maxPostponed {
		return false
	}
	s.memory.postponed++
	return true
}

func (s *scope) statusInput(passErr error) status.Input {
	in := status.Input{
		Cluster:     s.cluster,
		Now:         metav1.NewTime(s.now).Rfc3339Copy(),
		Paused:      s.paused(),
		Rejected:    s.rejected,
		Unsupported: s.unsupported,
		Failed:      passErr,
		Observed:    s.observed,
		Decision:    s.decision,
		Service:     s.facts.Service,
		Waits:       s.waits,
		MaxMemory:   s.maxMemory,
	}
	if primary := s.decision.Primary; primary != nil {
		in.Version = fmt.Sprintf("%s %s", primary.Info.Flavour, primary.Info.Version)
	}
	return in
}

// podsMissing says that the StatefulSet did not create a pod that is wanted.
func (s *scope) podsMissing() bool {
	for i := range s.facts.Members {
		if m := &s.facts.Members[i]; m.PodUID == "" && m.Ordinal < s.wanted() {
			return true
		}
	}
	return false
}

// explainMissingPods adds what the StatefulSet says to the wait for pods that
// do not exist.
func (s *scope) explainMissingPods() {
	if s.missing == "" {
		return
	}
	for i := range s.decision.Waits {
		if w := &s.decision.Waits[i]; w.Reason == v1alpha1.ReasonScaling {
			w.Reason, w.Message = v1alpha1.ReasonPodsNotCreated, w.Message+": "+s.missing
		}
	}
}

// tolerateCommand turns the failure of a member to answer into a wait: the next
// pass sees whether it lives.
func (r *RedisClusterReconciler) tolerateCommand(ctx context.Context, what string, err error) error {
	if admin.IsMemberError(err) {
		logf.FromContext(ctx).Info("a member did not answer, trying again", "action", what, "error", err.Error())
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
