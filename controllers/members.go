package controllers

import (
	"context"
	"fmt"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"seang.org/operator/internal/redis/plan"
)

// maxRounds bounds how often one pass observes again after it acted; what is
// then left is for the next pass.
const maxRounds = 8

// reconcileMembers observes the members, decides and acts, until there is
// nothing left to do at once.
func (r *RedisClusterReconciler) reconcileMembers(ctx context.Context, s *scope) error {
	for range maxRounds {
		if err := r.observe(ctx, s); err != nil {
			return err
		}
		if len(s.decision.Steps) == 0 {
			return nil
		}
		for _, step := range s.decision.Steps {
			if err := r.do(ctx, s, step); err != nil {
				s.acted = true
				return r.tolerate(ctx, s, step, err)
			}
		}
		s.acted = true
		s.count()
	}
	return nil
}

// count notes what the decision that was just done means for people.
func (s *scope) count() {
	for _, step := range s.decision.Steps {
		if _, ok := step.(plan.WriteRecord); ok && s.decision.FailedOver != "" {
			s.failovers++
		}
	}
	s.dataLost = s.dataLost || s.decision.DataLost
}

// tolerate logs a step that failed because its member went away meanwhile: the
// plan is void, and the next pass sees why.
func (r *RedisClusterReconciler) tolerate(ctx context.Context, _ *scope, step plan.Step, err error) error {
	if isMemberError(err) {
		logf.FromContext(ctx).Info("step failed, observing again", "step", stepName(step), "reason", step.Reason(), "error", err.Error())
		return nil
	}
	return fmt.Errorf("%s: %w", step.Reason(), err)
}

func stepName(step plan.Step) string { return fmt.Sprintf("%T", step)[len("plan."):] }
