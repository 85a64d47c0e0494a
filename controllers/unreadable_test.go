package controllers

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis"
	"seang.org/operator/internal/redis/plan"
)

// TestNoteUnreadable shows from when on files are known to be unreadable, and until when.
func TestNoteUnreadable(t *testing.T) {
	const earlier, later = "2026-01-02T03:04:05Z", "2026-01-02T03:09:05Z"
	ended := func(at string) *corev1.Pod {
		when, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		pod := &corev1.Pod{}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: naming.ContainerRedis, State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, FinishedAt: metav1.NewTime(when)}}}}
		return pod
	}
	damaged := plan.Member{Pod: "r-1", Trouble: plan.Wait{Reason: v1alpha1.ReasonDataUnreadable}}
	for name, c := range map[string]struct {
		known  string
		member plan.Member
		pod    *corev1.Pod
		want   string
	}{
		"its files cannot be loaded":                {member: damaged, pod: ended(earlier), want: earlier},
		"they could not be loaded again":            {known: earlier, member: damaged, pod: ended(later), want: later},
		"its pod is replaced":                       {known: earlier, member: plan.Member{Pod: "r-1"}, want: earlier},
		"the next container is being made":          {known: earlier, member: damaged, pod: &corev1.Pod{}, want: earlier},
		"it ended for another reason":               {member: plan.Member{Pod: "r-1", Trouble: plan.Wait{Reason: v1alpha1.ReasonPodFailing}}, pod: ended(earlier)},
		"a process answers, so its files are good":  {known: earlier, member: plan.Member{Pod: "r-1", Info: &redis.Info{}}, pod: ended(earlier)},
		"those of another pod are no matter of its": {member: plan.Member{Pod: "r-2"}, pod: ended(earlier)},
	} {
		t.Run(name, func(t *testing.T) {
			m := &memory{unreadable: map[string]string{}}
			if c.known != "" {
				m.unreadable["r-1"] = c.known
			}
			m.noteUnreadable(&c.member, c.pod)
			if c.member.Unreadable != c.want {
				t.Errorf("unreadable since %q, want %q", c.member.Unreadable, c.want)
			}
		})
	}
}
