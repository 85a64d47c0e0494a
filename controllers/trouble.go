package controllers

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/conf"
	"seang.org/operator/internal/redis/plan"
)

// podTrouble is what Kubernetes says of a pod whose Redis does not run; its
// reason is empty if it says nothing.
func podTrouble(pod *corev1.Pod) plan.Wait {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return plan.Wait{Reason: v1alpha1.ReasonPodNotScheduled, Message: fmt.Sprintf("%s has no node: %s", pod.Name, condition.Message)}
		}
	}
	for _, container := range pod.Status.ContainerStatuses {
		if container.Name == naming.ContainerRedis {
			return containerTrouble(pod, container)
		}
	}
	return plan.Wait{}
}

func containerTrouble(pod *corev1.Pod, container corev1.ContainerStatus) plan.Wait {
	ended := lastEnd(container)
	if ended != nil && ended.ExitCode == conf.ExitNoServer {
		return plan.Wait{Reason: v1alpha1.ReasonImageNotRedis, Stuck: true,
			Message: fmt.Sprintf("the image %s of %s has neither redis-server nor valkey-server on its PATH: set spec.image to one that has", container.Image, pod.Name)}
	}
	waiting := container.State.Waiting
	switch {
	case waiting == nil && ended != nil && ended.ExitCode != 0 && container.RestartCount > 0:
		return failing(pod, ended)
	case waiting == nil:
		return plan.Wait{}
	case waiting.Reason == "ErrImagePull", waiting.Reason == "ImagePullBackOff", waiting.Reason == "InvalidImageName", waiting.Reason == "ErrImageNeverPull":
		// The kubelet's message changes with every try; the reason does not.
		return plan.Wait{Reason: v1alpha1.ReasonImageNotPulled, Message: fmt.Sprintf("the image of %s cannot be pulled: %s", pod.Name, container.Image)}
	case waiting.Reason == "CrashLoopBackOff", waiting.Reason == "CreateContainerConfigError", waiting.Reason == "RunContainerError", waiting.Reason == "CreateContainerError":
		if ended != nil {
			return failing(pod, ended)
		}
		return plan.Wait{Reason: v1alpha1.ReasonPodFailing, Message: fmt.Sprintf("%s does not run: %s", pod.Name, waiting.Reason)}
	}
	return plan.Wait{Reason: v1alpha1.ReasonPodNotRunning, Message: pod.Name + " is being started"}
}

// failing says the same while the kubelet holds the container back and between
// two tries, so that the status does not flicker.
func failing(pod *corev1.Pod, ended *corev1.ContainerStateTerminated) plan.Wait {
	if conf.Unreadable(ended.Message) {
		return plan.Wait{Reason: v1alpha1.ReasonDataUnreadable,
			Message: fmt.Sprintf("%s cannot load its data: %s", pod.Name, lastWords(ended.Message))}
	}
	return plan.Wait{Reason: v1alpha1.ReasonPodFailing,
		Message: fmt.Sprintf("%s does not run: exit code %d: %s", pod.Name, ended.ExitCode, lastWords(ended.Message))}
}

// lastWordsLimit bounds what is quoted of a container's log: it is at the end that a
// process says why it ends.
const lastWordsLimit = 300

func lastWords(log string) string {
	log = strings.TrimSpace(log)
	if len(log) <= lastWordsLimit {
		return log
	}
	return "…" + strings.ToValidUTF8(log[len(log)-lastWordsLimit:], "")
}

func lastEnd(container corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	if container.State.Terminated != nil {
		return container.State.Terminated
	}
	if container.State.Running == nil {
		return container.LastTerminationState.Terminated
	}
	return nil
}

// +kubebuilder:rbac:groups="",resources=events,verbs=list

// missingPods says why the StatefulSet creates no pods, from its own last
// warning; empty if it has none. Read live, and only while pods are missing.
func (r *RedisClusterReconciler) missingPods(ctx context.Context, s *scope) string {
	if s.statefulSet == nil {
		return ""
	}
	list := &corev1.EventList{}
	err := r.Live.List(ctx, list, client.InNamespace(s.cluster.Namespace), client.MatchingFieldsSelector{Selector: fields.SelectorFromSet(fields.Set{
		"involvedObject.kind": "StatefulSet", "involvedObject.name": s.statefulSet.Name, "type": corev1.EventTypeWarning})})
	if err != nil {
		return ""
	}
	var last *corev1.Event
	for i := range list.Items {
		e := &list.Items[i]
		if e.InvolvedObject.UID == s.statefulSet.UID && (last == nil || last.LastTimestamp.Before(&e.LastTimestamp)) {
			last = e
		}
	}
	if last == nil {
		return ""
	}
	return last.Message
}
