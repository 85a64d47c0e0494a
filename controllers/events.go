package controllers

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"seang.org/operator/api/v1alpha1"
)

// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// noteLimit is the most that the API server takes as the text of an Event.
const noteLimit = 1024

// event sends an Event about the RedisCluster. What is too long for one is cut: the
// condition has all of it.
func (r *RedisClusterReconciler) event(cluster *v1alpha1.RedisCluster, kind, reason, action, message string) {
	if len(message) > noteLimit {
		const more = "…"
		message = strings.ToValidUTF8(message[:noteLimit-len(more)], "") + more
	}
	r.Recorder.Eventf(cluster, nil, kind, reason, action, "%s", message)
}

// announce sends one Event for each transition between two statuses.
func (r *RedisClusterReconciler) announce(s *scope, before, written *v1alpha1.RedisCluster, after v1alpha1.RedisClusterStatus) {
	send := func(kind, reason, action, message string) { r.event(written, kind, reason, action, message) }
	if from, to := s.firstRecord, after.Record; to != nil && (from == nil || from.Epoch < to.Epoch) {
		message := fmt.Sprintf("%s is the primary of epoch %d", to.Primary.Pod, to.Epoch)
		if from != nil {
			message = fmt.Sprintf("%s took over from %s in epoch %d", to.Primary.Pod, from.Primary.Pod, to.Epoch)
		}
		send(corev1.EventTypeNormal, "PrimaryChanged", "Promote", message)
	}
	if s.dataLost {
		send(corev1.EventTypeWarning, v1alpha1.ReasonDataLost, "Promote", "every member lost its memory at once and there are no volumes: the cluster started empty")
	}
	for _, now := range after.Conditions {
		was := meta.FindStatusCondition(before.Status.Conditions, now.Type)
		if was != nil && was.Status == now.Status && was.Reason == now.Reason {
			continue
		}
		if kind, ok := eventType(now, was); ok {
			send(kind, now.Reason, "Reconcile", now.Message)
		}
	}
}

// troubles are the reasons of an unready cluster that a person should hear of at
// once; the others are steps on the way.
var troubles = []string{
	v1alpha1.ReasonImageNotPulled, v1alpha1.ReasonImageNotRedis,
	v1alpha1.ReasonPodNotScheduled, v1alpha1.ReasonPodsNotCreated, v1alpha1.ReasonPodFailing,
	v1alpha1.ReasonDataUnreadable, v1alpha1.ReasonNotSaving,
}

// warnings are what conditions say where a person should hear of it.
var warnings = map[string][]metav1.ConditionStatus{
	v1alpha1.ConditionSpecAccepted:        {metav1.ConditionFalse},
	v1alpha1.ConditionVersionSupported:    {metav1.ConditionFalse},
	v1alpha1.ConditionDegraded:            {metav1.ConditionTrue},
	v1alpha1.ConditionCertificateExpiring: {metav1.ConditionTrue},
}

// eventType says whether a condition's transition is an Event, and of which
// type. Progress is not: it would tell the same as the others.
func eventType(now metav1.Condition, was *metav1.Condition) (string, bool) {
	changed := was == nil || was.Status != now.Status
	if slices.Contains(warnings[now.Type], now.Status) {
		return corev1.EventTypeWarning, true
	}
	switch now.Type {
	case v1alpha1.ConditionReady:
		if now.Status == metav1.ConditionFalse {
			return corev1.EventTypeWarning, slices.Contains(troubles, now.Reason)
		}
		return corev1.EventTypeNormal, now.Status == metav1.ConditionTrue && changed
	case v1alpha1.ConditionSpecAccepted:
		return corev1.EventTypeNormal, was != nil && changed
	case v1alpha1.ConditionPaused:
		return corev1.EventTypeNormal, changed && (was != nil || now.Status == metav1.ConditionTrue)
	}
	return "", false
}
