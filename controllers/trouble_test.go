package controllers

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/conf"
)

// TestPodTrouble shows what is said of a pod that does not answer. Between two
// tries the kubelet reports the container as ended, not as waiting.
func TestPodTrouble(t *testing.T) {
	ended := func(code int32) *corev1.ContainerStateTerminated {
		return &corev1.ContainerStateTerminated{ExitCode: code, Message: "\nbad config\n"}
	}
	waiting := func(reason string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
	}
	for name, c := range map[string]struct {
		container       corev1.ContainerStatus
		reason, message string
	}{
		"it runs":                     {container: corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, LastTerminationState: corev1.ContainerState{Terminated: ended(1)}, RestartCount: 1}},
		"it ended for the first time": {container: corev1.ContainerStatus{State: corev1.ContainerState{Terminated: ended(137)}}},
		"it ended again":              {container: corev1.ContainerStatus{State: corev1.ContainerState{Terminated: ended(1)}, RestartCount: 1}, reason: v1alpha1.ReasonPodFailing, message: "cache-0 does not run: exit code 1: bad config"},
		"it said more than a person reads": {container: corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: strings.Repeat("x", 5000) + "é" + strings.Repeat("y", lastWordsLimit-1)}}, RestartCount: 1},
			reason: v1alpha1.ReasonPodFailing, message: "cache-0 does not run: exit code 1: …" + strings.Repeat("y", lastWordsLimit-1)},
		"it is held back":        {container: corev1.ContainerStatus{State: waiting("CrashLoopBackOff"), LastTerminationState: corev1.ContainerState{Terminated: ended(1)}, RestartCount: 1}, reason: v1alpha1.ReasonPodFailing, message: "cache-0 does not run: exit code 1: bad config"},
		"it cannot be made":      {container: corev1.ContainerStatus{State: waiting("CreateContainerConfigError")}, reason: v1alpha1.ReasonPodFailing, message: "cache-0 does not run: CreateContainerConfigError"},
		"its image is not there": {container: corev1.ContainerStatus{State: waiting("ErrImagePull"), Image: "a:b"}, reason: v1alpha1.ReasonImageNotPulled, message: "the image of cache-0 cannot be pulled: a:b"},
		"its image has no Redis": {container: corev1.ContainerStatus{State: corev1.ContainerState{Terminated: ended(conf.ExitNoServer)}, Image: "a:b"}, reason: v1alpha1.ReasonImageNotRedis, message: "the image a:b of cache-0 has neither redis-server nor valkey-server on its PATH: set spec.image to one that has"},
		"it is being made":       {container: corev1.ContainerStatus{State: waiting("ContainerCreating")}, reason: v1alpha1.ReasonPodNotRunning, message: "cache-0 is being started"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{}
			pod.Name, c.container.Name = "cache-0", naming.ContainerRedis
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{c.container}
			if got := podTrouble(pod); got.Reason != c.reason || got.Message != c.message {
				t.Errorf("got %q: %q, want %q: %q", got.Reason, got.Message, c.reason, c.message)
			}
		})
	}
}
