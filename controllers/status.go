package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/certificate"
	"seang.org/operator/internal/redis/admin"
	"seang.org/operator/internal/status"
)

// writeStatus writes the status if it changed, and then sends the Events of the
// change. It is the one place that writes status, but for the record, which is
// written before the step that depends on it.
func (r *RedisClusterReconciler) writeStatus(ctx context.Context, s *scope, passErr error) error {
	// Neither an old view nor an operator that leads no longer may write.
	if apierrors.IsConflict(passErr) || errors.Is(passErr, admin.ErrNotLeading) {
		return passErr
	}
	s.explainMissingPods()
	before := s.cluster
	next := before.DeepCopy()
	next.Status = status.Compute(s.statusInput(passErr))
	publishMetrics(s, &next.Status)
	changed := !equality.Semantic.DeepEqual(before.Status, next.Status)
	if changed && s.postpones(passErr, &next.Status) {
		return nil
	}
	s.memory.postponedSince = time.Time{}
	if !changed {
		return nil
	}
	after := next.Status
	if err := r.Status().Update(ctx, next); err != nil {
		return client.IgnoreNotFound(err)
	}
	s.wrote(next)
	r.announce(s, before, next, after)
	logf.FromContext(ctx).Info("status changed", "phase", after.Phase, "primary", after.Primary, "inSync", after.InSyncReplicas)
	return nil
}

// statusDelay is how long a change that no person acts on may wait for the next
// one, so that a start of many small steps is a few writes.
const statusDelay = 2 * time.Second

// postpones says that the status can wait for a pass that follows soon: nothing
// changed but words, or what a pass that acted will change again at once.
func (s *scope) postpones(passErr error, next *v1alpha1.RedisClusterStatus) bool {
	before := &s.cluster.Status
	minor := passErr == nil && sameHealth(before, next) && (s.acted || equality.Semantic.DeepEqual(before.Record, next.Record))
	s.postponed = minor && since(&s.memory.postponedSince, s.now, true) < statusDelay
	return s.postponed
}

// sameHealth says that neither the phase, nor the primary, nor whether a
// condition is true changed.
func sameHealth(before, next *v1alpha1.RedisClusterStatus) bool {
	if before.Phase != next.Phase || before.Primary != next.Primary || len(before.Conditions) != len(next.Conditions) {
		return false
	}
	for _, c := range next.Conditions {
		if !meta.IsStatusConditionPresentAndEqual(before.Conditions, c.Type, c.Status) {
			return false
		}
	}
	return true
}

func (s *scope) statusInput(passErr error) status.Input {
	in := status.Input{
		Cluster:   s.cluster,
		Now:       metav1.NewTime(s.now).Rfc3339Copy(),
		Paused:    s.paused(),
		Rejected:  s.rejected,
		Failed:    passErr,
		Observed:  s.observed,
		Decision:  s.decision,
		Service:   s.facts.Service,
		Waits:     s.waits,
		MaxMemory: s.maxMemory,

		NetworkPolicy: s.networkPolicy,
	}
	if leaf := s.tls.Pair.Leaf(); leaf != nil {
		in.CertificateExpires, in.CertificateWarnAt = leaf.NotAfter, certificate.WarnAt(leaf)
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
