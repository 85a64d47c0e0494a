package controllers

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/plan"
)

// noteUnreadable keeps when the pod's files could last not be loaded, until a process
// of its answers.
func (m *memory) noteUnreadable(member *plan.Member, pod *corev1.Pod) {
	switch {
	case member.Info != nil:
		delete(m.unreadable, member.Pod)
	case pod != nil && member.Trouble.Reason == v1alpha1.ReasonDataUnreadable:
		for _, container := range pod.Status.ContainerStatuses {
			if end := lastEnd(container); end != nil && container.Name == naming.ContainerRedis {
				m.unreadable[member.Pod] = end.FinishedAt.UTC().Format(time.RFC3339)
			}
		}
	}
	member.Unreadable = m.unreadable[member.Pod]
}

// unreadable has a line for each pod that must start without its files.
func (s *scope) unreadable() string {
	var lines strings.Builder
	for _, m := range s.facts.Members {
		if slices.Contains(s.decision.Rebuild, m.Pod) {
			fmt.Fprintf(&lines, "%s %s\n", m.Pod, m.Unreadable)
		}
	}
	return lines.String()
}
