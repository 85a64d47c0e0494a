package controllers

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/admin"
	"seang.org/operator/internal/redis/conf"
	"seang.org/operator/internal/redis/plan"
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

// observeRendered reads which directives of the user pods start with: those that were
// accepted last. There are none before the first pods are made.
func (r *RedisClusterReconciler) observeRendered(ctx context.Context, s *scope) error {
	configMap := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: s.cluster.Namespace, Name: naming.ConfigMap(s.cluster.Name)}
	if err := client.IgnoreNotFound(r.Get(ctx, key, configMap)); err != nil {
		return fmt.Errorf("read ConfigMap %s: %w", key, err)
	}
	s.rendered = nil
	if text, found := configMap.Data[naming.KeyRedisConf]; found && s.statefulSet != nil {
		s.rendered = conf.Directives(text)
	}
	return nil
}

// startedOtherwise says that the pod's process began with other values of directives
// that are read at the start alone than one that begins now.
func (s *scope) startedOtherwise(pod *corev1.Pod) bool {
	p := s.memory.pods[pod.UID]
	return p != nil && s.rendered != nil && differ(conf.StartOnly(s.rendered), p.started)
}

// differ says that a directive has another value in force than the wanted one. What
// the server does not know is not compared: a real one has accepted it.
func differ(wanted, inForce map[string]string) bool {
	for name := range difference(wanted, inForce) {
		if _, known := inForce[name]; known {
			return true
		}
	}
	return false
}

// reconcileConfig brings the directives of the spec into force on every running
// member, and reads back that they are. One that refuses them is the first: a
// replica, if there is one.
func (r *RedisClusterReconciler) reconcileConfig(ctx context.Context, s *scope) error {
	directives := s.directives()
	if s.rejected != nil {
		return nil
	}
	defaults, err := r.checkConfig(ctx, s, directives)
	if err != nil || s.held || s.rejected != nil {
		return err
	}
	// A process that began with a value of the user must get back what redis.conf has
	// without it.
	wanted := conf.WithDefaults(directives)
	start := conf.StartOnly(wanted)
	for _, m := range s.replicasFirst() {
		if m.Info == nil || m.Info.Loading || s.rejected != nil {
			continue
		}
		if err := r.configureMember(ctx, s, m, wanted, defaults); err != nil {
			return r.tolerateCommand(ctx, "configure "+m.Pod, err)
		}
		// The cache may still have the redis.conf of before, by which no pod is outdated.
		if differ(start, s.memory.pod(m.PodUID).started) {
			s.wait(plan.Wait{Reason: v1alpha1.ReasonRolling, Message: m.Pod + " began with other directives than are wanted, and is to be replaced"})
		}
	}
	return nil
}

// replicasFirst are the members with the primary at the end.
func (s *scope) replicasFirst() []*plan.Member {
	var members []*plan.Member
	for i := range s.facts.Members {
		members = append(members, &s.facts.Members[i])
	}
	last := func(m *plan.Member) int {
		if s.decision.Primary != nil && m.Pod == s.decision.Primary.Pod {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(members, func(a, b *plan.Member) int { return last(a) - last(b) })
	return members
}

// configureMember sets what differs. What was set before and is no longer asked for
// goes back to the value that the process had before, or that it would have by itself.
func (r *RedisClusterReconciler) configureMember(ctx context.Context, s *scope, m *plan.Member, wanted, defaults map[string]string) error {
	memory := s.memory.pod(m.PodUID)
	if memory.config != nil && maps.Equal(memory.config, wanted) {
		return nil
	}
	member, err := r.member(ctx, s, m.Pod)
	if err != nil {
		return err
	}
	target, start := s.target(memory, wanted, defaults), conf.StartOnly(wanted)
	have, err := member.ConfigGet(ctx, slices.Concat(slices.Collect(maps.Keys(target)), slices.Collect(maps.Keys(start)))...)
	if err != nil {
		return err
	}
	memory.remember(have, s.rendered)
	if change := difference(target, have); len(change) > 0 {
		if refused, err := r.setConfig(ctx, s, m, member, change); err != nil || refused {
			return err
		}
	}
	memory.started, memory.config = have, maps.Clone(wanted)
	s.acted = s.acted || differ(start, have)
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
func (r *RedisClusterReconciler) setConfig(ctx context.Context, s *scope, m *plan.Member, member *admin.Member, change map[string]string) (refused bool, err error) {
	err = member.ConfigSet(ctx, change)
	if admin.IsRefusal(err) {
		s.reject(v1alpha1.ReasonInvalidConfig, fmt.Sprintf("Redis refused config: %s", err))
		return true, nil
	}
	if err != nil {
		return false, err
	}
	logf.FromContext(ctx).Info("configuration changed", "pod", m.Pod, "directives", slices.Sorted(maps.Keys(change)))
	return false, nil
}

// target is what is to be in force of the directives that a running process takes,
// those that were asked for earlier included.
func (s *scope) target(memory *podMemory, wanted, defaults map[string]string) map[string]string {
	target := conf.Live(wanted)
	for _, earlier := range []map[string]string{conf.Live(memory.config), conf.Live(s.rendered)} {
		for _, name := range dropped(earlier, wanted) {
			target[name] = memory.before(name, defaults)
		}
	}
	return target
}

// dropped are the directives of earlier that are wanted no more, sorted.
func dropped(earlier, wanted map[string]string) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(earlier)) {
		if _, still := wanted[name]; !still {
			names = append(names, name)
		}
	}
	return names
}

// remember keeps the value that each directive had before it was first set: a process
// may have begun with those that are rendered.
func (p *podMemory) remember(have, rendered map[string]string) {
	if p.defaults == nil {
		p.defaults = map[string]string{}
	}
	for name, value := range have {
		_, known := p.defaults[name]
		if _, begun := rendered[name]; !known && !begun {
			p.defaults[name] = value
		}
	}
}

// before is the value that a directive goes back to: what a real server was found to
// have by itself, else what this process had when it was first asked.
func (p *podMemory) before(name string, defaults map[string]string) string {
	if value, known := defaults[name]; known {
		return value
	}
	return p.defaults[name]
}
