package main

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
)

// check fails unless an error says what is wanted; nothing wanted means no error.
func check(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("got %v, want no problem", err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("got %v, want %q", err, want)
	}
}

func ready() *v1alpha1.RedisCluster {
	cluster := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Generation: 3}, Spec: v1alpha1.RedisClusterSpec{Replicas: 2}}
	cluster.Status = v1alpha1.RedisClusterStatus{
		Phase: v1alpha1.PhaseReady, ActiveReplicas: 2, InSyncReplicas: []string{"a-1", "a-2"}, Primary: "a-0", RedisVersion: "redis 8.0.2",
		Selector: "app=redis", MaxMemory: new(resource.MustParse("100Mi")), LastSyncTimestamp: &metav1.Time{},
		Services: &v1alpha1.ServiceNames{Primary: "a-primary"}, Binding: &v1alpha1.Binding{Name: "a-app"},
	}
	for kind, status := range healthy {
		cluster.Status.Conditions = append(cluster.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: "Because", ObservedGeneration: 3})
	}
	return cluster
}

func TestJudgeStatus(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*v1alpha1.RedisCluster)
		want  string
	}{
		"all is there":                 {func(*v1alpha1.RedisCluster) {}, ""},
		"a condition is missing":       {func(c *v1alpha1.RedisCluster) { meta.RemoveStatusCondition(&c.Status.Conditions, "Paused") }, "condition Paused is missing"},
		"a condition is not as wanted": {func(c *v1alpha1.RedisCluster) { condition(c, "Degraded").Status = "Unknown" }, "Degraded is Unknown, want False"},
		"a condition is old":           {func(c *v1alpha1.RedisCluster) { condition(c, "Ready").ObservedGeneration = 2 }, "generation 2 of 3"},
		"a reason is missing":          {func(c *v1alpha1.RedisCluster) { condition(c, "Ready").Reason = "" }, "Ready has the reason \"\""},
		"a replica is not in sync":     {func(c *v1alpha1.RedisCluster) { c.Status.ActiveReplicas = 1 }, "activeReplicas is 1"},
		"the phase is another":         {func(c *v1alpha1.RedisCluster) { c.Status.Phase = v1alpha1.PhasePending }, "phase is \"Pending\""},
		"a field is empty":             {func(c *v1alpha1.RedisCluster) { c.Status.Binding = nil }, "status.binding is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := ready()
			c.spoil(cluster)
			check(t, judgeStatus(cluster), c.want)
		})
	}
}

func condition(c *v1alpha1.RedisCluster, kind string) *metav1.Condition {
	return meta.FindStatusCondition(c.Status.Conditions, kind)
}

func TestJudgeEffects(t *testing.T) {
	cpu, memory := resource.MustParse("150m"), resource.MustParse("320Mi")
	spec := &v1alpha1.RedisClusterSpec{Replicas: 1, MemoryLimit: memory, Config: map[string]v1alpha1.ConfigValue{"maxmemory-policy": "allkeys-lfu"},
		Resources:   &v1alpha1.ResourcesSpec{CPU: &v1alpha1.CPUSpec{Request: &cpu}},
		PodMetadata: &v1alpha1.PodMetadata{Labels: map[string]string{"a": "b"}},
		Service:     &v1alpha1.ServicesSpec{Primary: &v1alpha1.ServiceSpec{Annotations: map[string]string{"a": "b"}}}}
	pod := func() corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: naming.ContainerRedis, Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: cpu}, Limits: corev1.ResourceList{corev1.ResourceMemory: memory}}}}}}
	}
	for name, c := range map[string]struct {
		spoil func(*effects)
		want  string
	}{
		"all is in force":                {func(*effects) {}, ""},
		"a pod too many":                 {func(e *effects) { e.pods = append(e.pods, pod()) }, "spec.replicas has no effect: got 3"},
		"a replica is not connected":     {func(e *effects) { e.info["connected_slaves"] = "0" }, "spec.replicas has no effect: got 0"},
		"a directive is not set":         {func(e *effects) { e.info["maxmemory_policy"] = "noeviction" }, "spec.config[maxmemory-policy]"},
		"a pod has the memory of before": {func(e *effects) { e.pods[1].Spec.Containers[0].Resources.Limits[corev1.ResourceMemory] = cpu }, "spec.memoryLimit"},
		"a pod has the CPU of before":    {func(e *effects) { e.pods[1].Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = memory }, "spec.resources.cpu.request"},
		"a pod lacks the label":          {func(e *effects) { e.pods[0].Labels = nil }, "spec.podMetadata.labels"},
		"the Service lacks it":           {func(e *effects) { e.service.Annotations = nil }, "spec.service.primary.annotations"},
	} {
		t.Run(name, func(t *testing.T) {
			seen := effects{pods: []corev1.Pod{pod(), pod()}, info: map[string]string{"connected_slaves": "1", "maxmemory_policy": "allkeys-lfu"},
				service: corev1.Service{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": "b"}}}}
			c.spoil(&seen)
			check(t, judgeEffects(spec, seen), c.want)
		})
	}
}

func TestJudgeLeftovers(t *testing.T) {
	retain := v1alpha1.RedisClusterSpec{Replicas: 1, Storage: &v1alpha1.StorageSpec{ReclaimPolicy: v1alpha1.ReclaimRetain}}
	remove := v1alpha1.RedisClusterSpec{Replicas: 1}
	volume, secret := &corev1.PersistentVolumeClaim{}, &corev1.Secret{}
	for name, c := range map[string]struct {
		spec v1alpha1.RedisClusterSpec
		left []client.Object
		want string
	}{
		"nothing":                 {remove, nil, ""},
		"a Secret":                {remove, []client.Object{secret}, "left over: *v1.Secret"},
		"a volume":                {remove, []client.Object{volume}, "left over: *v1.PersistentVolumeClaim"},
		"the retained volumes":    {retain, []client.Object{volume, volume}, ""},
		"a Secret beside them":    {retain, []client.Object{volume, volume, secret}, "left over: *v1.Secret"},
		"a retained volume is no": {retain, []client.Object{volume}, "1 volumes were retained, want 2"},
	} {
		t.Run(name, func(t *testing.T) { check(t, judgeLeftovers(&c.spec, c.left), c.want) })
	}
}

func TestTheOutcomeHasOneResultWithALineForEachProblem(t *testing.T) {
	results := outcome("a", errors.Join(errors.New("b"), errors.New("c"))).Results
	if len(results) != 1 || results[0].Name != "a" || results[0].State != "fail" || len(results[0].Errors) != 2 {
		t.Errorf("got %+v", results)
	}
	if got := outcome("a", nil).Results[0]; got.State != "pass" || got.Errors != nil {
		t.Errorf("got %+v of a test that passed", got)
	}
}

// What operator-sdk is told to run is what there is.
func TestTheConfigurationOfTheScorecardHasEachTest(t *testing.T) {
	text, err := os.ReadFile("../config/scorecard/config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var config v1alpha3.Configuration
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	var configured []string
	for _, stage := range config.Stages {
		for _, test := range stage.Tests {
			if test.Entrypoint[0] == "scorecard" {
				configured = append(configured, test.Entrypoint[1])
			}
		}
	}
	slices.Sort(configured)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(tests)), configured); diff != "" {
		t.Errorf("tests and config/scorecard differ (-tests +configured):\n%s", diff)
	}
}
