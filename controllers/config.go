package controllers

import (
	"context"
	"fmt"
	"maps"
	"slices"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/redis/admin"
	"seang.org/operator/internal/redis/conf"
	"seang.org/operator/internal/redis/plan"
	"seang.org/operator/internal/status"
)

// directives of the spec that may be rendered: none that the operator owns.
func (s *scope) directives() map[string]string {
	allowed := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(s.cluster.Spec.Config)) {
		if field, owned := conf.Owned(name); owned {
			s.reject(v1alpha1.ReasonInvalidConfig, ownedMessage(name, field))
			continue
		}
		allowed[name] = string(s.cluster.Spec.Config[name])
	}
	return allowed
}

func ownedMessage(name, field string) string {
	message := fmt.Sprintf("config.%s belongs to the operator: remove it", name)
	if field != "" {
		message += fmt.Sprintf(" and use spec.%s", field)
	}
	return message
}

// reconcileConfig brings the directives of the spec into force on every running
// member, and reads back that they are.
func (r *RedisClusterReconciler) reconcileConfig(ctx context.Context, s *scope) error {
	// A process that began with a value of the user must get back what redis.conf has
	// without it.
	wanted := conf.WithDefaults(s.directives())
	for i := range s.facts.Members {
		m := &s.facts.Members[i]
		if m.Info == nil || m.Info.Loading || s.rejected != nil {
			continue
		}
		if err := r.configureMember(ctx, s, m, wanted); err != nil {
			return r.tolerateCommand(ctx, "configure "+m.Pod, err)
		}
	}
	return nil
}

// configureMember sets what differs. What was set before and is no longer asked
// for goes back to the value that the process started with.
func (r *RedisClusterReconciler) configureMember(ctx context.Context, s *scope, m *plan.Member, wanted map[string]string) error {
	memory := s.memory.pod(m.PodUID)
	if memory.config != nil && maps.Equal(memory.config, wanted) {
		return nil
	}
	member, err := r.member(ctx, s, m.Pod)
	if err != nil {
		return err
	}
	target := maps.Clone(wanted)
	for name := range memory.config {
		if _, still := wanted[name]; !still {
			target[name] = memory.defaults[name]
		}
	}
	have, err := member.ConfigGet(ctx, slices.Collect(maps.Keys(target))...)
	if err != nil {
		return err
	}
	memory.remember(have)
	if change := difference(target, have); len(change) > 0 {
		if problem, err := r.setConfig(ctx, m, member, change); err != nil || problem != nil {
			if problem != nil {
				s.reject(problem.Reason, problem.Message)
			}
			return err
		}
	}
	memory.config = maps.Clone(wanted)
	return nil
}

// difference has the directives of target whose value Redis does not have.
func difference(target, have map[string]string) map[string]string {
	change := map[string]string{}
	for name, value := range target {
		if now, known := have[name]; !known || !conf.SameValue(now, value) {
			change[name] = value
		}
	}
	return change
}

// setConfig sets all or nothing; a refusal of Redis is a problem of the spec.
func (r *RedisClusterReconciler) setConfig(ctx context.Context, m *plan.Member, member *admin.Member, change map[string]string) (*status.Problem, error) {
	err := member.ConfigSet(ctx, change)
	if admin.IsRefusal(err) {
		return &status.Problem{Reason: v1alpha1.ReasonInvalidConfig, Message: fmt.Sprintf("Redis refused config: %s", err)}, nil
	}
	if err != nil {
		return nil, err
	}
	logf.FromContext(ctx).Info("configuration changed", "pod", m.Pod, "directives", slices.Sorted(maps.Keys(change)))
	return nil, nil
}

// remember keeps the value that each directive had before it was first set.
func (p *podMemory) remember(have map[string]string) {
	if p.defaults == nil {
		p.defaults = map[string]string{}
	}
	for name, value := range have {
		if _, known := p.defaults[name]; !known {
			p.defaults[name] = value
		}
	}
}
