package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/kube"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/conf"
	"seang.org/operator/internal/redis/plan"
)

// +kubebuilder:rbac:groups="",resources=pods/resize,verbs=patch

// reconcileMemory brings every member's limit and maxmemory to the spec, in
// place: raising, the limit comes first; lowering, maxmemory does, and not
// before the data fits everywhere.
func (r *RedisClusterReconciler) reconcileMemory(ctx context.Context, s *scope) error {
	wanted := s.cluster.Spec.MemoryLimit.Value()
	goal := conf.MaxMemory(wanted, s.persistent())
	if !s.fits(goal) {
		s.keepMemory()
		return nil
	}
	s.maxMemory = goal
	for i := range s.facts.Members {
		m := &s.facts.Members[i]
		if m.Info == nil {
			continue
		}
		done, err := r.resizeMember(ctx, s, m, wanted, goal)
		if err != nil {
			return r.tolerateCommand(ctx, fmt.Sprintf("change the memory of %s", m.Pod), err)
		}
		if !done {
			s.maxMemory = 0
			s.wait(plan.Wait{Reason: v1alpha1.ReasonResizing, Poll: true, Message: "the memory limit of " + m.Pod + " is being changed"})
		}
	}
	return nil
}

// fits says that the data of every member fits below the new maxmemory; if not
// the spec is rejected.
func (s *scope) fits(goal int64) bool {
	for i := range s.facts.Members {
		m := &s.facts.Members[i]
		if m.Info != nil && m.Info.UsedMemory > goal && m.Info.MaxMemory > goal {
			s.reject(v1alpha1.ReasonMemoryTooSmall, fmt.Sprintf(
				"memoryLimit %s leaves %s for data, and %s uses more: delete data or raise memoryLimit",
				s.cluster.Spec.MemoryLimit.String(), mebibytes(goal), m.Pod))
			return false
		}
	}
	return true
}

// keepMemory renders the children with the limit that is in force.
func (s *scope) keepMemory() {
	if s.statefulSet == nil {
		return
	}
	if container := redisContainer(&s.statefulSet.Spec.Template.Spec); container != nil {
		s.limit = container.Resources.Limits.Memory().Value()
	}
}

// resizeMember does the next thing for one member; true if nothing is left.
func (r *RedisClusterReconciler) resizeMember(ctx context.Context, s *scope, m *plan.Member, limit, goal int64) (bool, error) {
	pod := s.pods[m.Pod]
	memory := s.memory.pod(pod.UID)
	if kube.Older(pod.ResourceVersion, memory.version) {
		return m.Info.MaxMemory == goal, nil // Not seen yet what we wrote.
	}
	asked, actual := memoryLimits(pod)
	if m.Info.MaxMemory > goal || (m.Info.MaxMemory < goal && asked == limit && actual == limit) {
		if err := r.setMemory(ctx, s, m, limit); err != nil {
			return false, err
		}
		m.Info.MaxMemory = goal
	}
	if asked != limit {
		return false, r.resizePod(ctx, pod, memory, limit)
	}
	return actual == limit && m.Info.MaxMemory == goal, nil
}

func (r *RedisClusterReconciler) setMemory(ctx context.Context, s *scope, m *plan.Member, limit int64) error {
	member, err := r.member(ctx, s, m.Pod)
	if err != nil {
		return err
	}
	directives := conf.Memory(limit, s.persistent())
	logf.FromContext(ctx).Info("memory changed", "pod", m.Pod, "maxmemory", m.Info.MaxMemory, "to", directives)
	return member.ConfigSet(ctx, directives)
}

// memoryLimits are what the pod's Redis container asks for and what it has.
func memoryLimits(pod *corev1.Pod) (asked, actual int64) {
	if container := redisContainer(&pod.Spec); container != nil {
		asked = container.Resources.Limits.Memory().Value()
	}
	actual = asked
	for _, container := range pod.Status.ContainerStatuses {
		if container.Name == naming.ContainerRedis && container.Resources != nil {
			actual = container.Resources.Limits.Memory().Value()
		}
	}
	return asked, actual
}

// resizePod changes the limit in place; the kubelet applies it without a restart.
func (r *RedisClusterReconciler) resizePod(ctx context.Context, pod *corev1.Pod, memory *podMemory, limit int64) error {
	quantity := resource.NewQuantity(limit, resource.BinarySI).String()
	patch := fmt.Sprintf(`{"metadata":{"uid":%q},"spec":{"containers":[{"name":%q,"resources":{"requests":{"memory":%q},"limits":{"memory":%q}}}]}}`,
		pod.UID, naming.ContainerRedis, quantity, quantity)
	changed := pod.DeepCopy()
	err := r.SubResource("resize").Patch(ctx, changed, client.RawPatch(types.StrategicMergePatchType, []byte(patch)))
	if err != nil {
		return fmt.Errorf("resize pod %s to %s: %w", pod.Name, quantity, err)
	}
	memory.label, memory.version = changed.Labels[naming.LabelRole], changed.ResourceVersion
	logf.FromContext(ctx).Info("pod resized", "pod", pod.Name, "memory", quantity)
	return nil
}

func mebibytes(bytes int64) string { return fmt.Sprintf("%d MiB", bytes>>20) }
