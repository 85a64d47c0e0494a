package controllers

import (
	"context"
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"seang.org/operator/internal/redis/admin"
	"seang.org/operator/internal/redis/plan"
	"seang.org/operator/internal/resources"
)

// Safety rule 13: a reconciler without a client panics where it would delete.
func TestNoPodGoesOnceAnotherLeads(t *testing.T) {
	r := &RedisClusterReconciler{Leads: func(context.Context, time.Duration) error { return errors.New("another leads") }}
	s := &scope{pods: map[string]*corev1.Pod{"cache-1": {ObjectMeta: metav1.ObjectMeta{Name: "cache-1", UID: "uid"}}},
		statefulSet: &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: new(int32(3))}}}
	s.decision.Removable = true
	for name, act := range map[string]func() error{
		"one that hangs is killed": func() error { return r.kill(t.Context(), s, plan.Kill{Pod: "cache-1", UID: "uid"}) },
		"one is replaced":          func() error { return r.replace(t.Context(), s, plan.Replace{Pod: "cache-1", UID: "uid"}) },
		"members are removed":      func() error { return r.keepMembers(t.Context(), s, &resources.Input{Replicas: 1}) },
	} {
		t.Run(name, func(t *testing.T) {
			if err := act(); !errors.Is(err, admin.ErrNotLeading) {
				t.Errorf("got %v, want %v", err, admin.ErrNotLeading)
			}
		})
	}
}
