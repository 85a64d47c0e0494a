package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
)

// The judges are pure: they look at what was read and return what is wrong with it.

// healthy is what each condition says of a cluster that is Ready.
var healthy = map[string]metav1.ConditionStatus{
	v1alpha1.ConditionReady:        metav1.ConditionTrue,
	v1alpha1.ConditionAvailable:    metav1.ConditionTrue,
	v1alpha1.ConditionSpecAccepted: metav1.ConditionTrue,
	v1alpha1.ConditionProgressing:  metav1.ConditionFalse,
	v1alpha1.ConditionDegraded:     metav1.ConditionFalse,
	v1alpha1.ConditionPaused:       metav1.ConditionFalse,
}

// judgeStatus looks at the status of a cluster that is Ready.
func judgeStatus(cluster *v1alpha1.RedisCluster) error {
	var errs []error
	status := &cluster.Status
	for _, kind := range slices.Sorted(maps.Keys(healthy)) {
		condition := meta.FindStatusCondition(status.Conditions, kind)
		switch {
		case condition == nil:
			errs = append(errs, fmt.Errorf("the condition %s is missing", kind))
		case condition.Status != healthy[kind]:
			errs = append(errs, fmt.Errorf("the condition %s is %s, want %s", kind, condition.Status, healthy[kind]))
		case condition.Reason == "" || condition.ObservedGeneration != cluster.Generation:
			errs = append(errs, fmt.Errorf("the condition %s has the reason %q and generation %d of %d", kind, condition.Reason, condition.ObservedGeneration, cluster.Generation))
		}
	}
	if status.ActiveReplicas != cluster.Spec.Replicas || len(status.InSyncReplicas) != int(cluster.Spec.Replicas) {
		errs = append(errs, fmt.Errorf("status.activeReplicas is %d and inSyncReplicas %v, want %d", status.ActiveReplicas, status.InSyncReplicas, cluster.Spec.Replicas))
	}
	if status.Phase != v1alpha1.PhaseReady {
		errs = append(errs, fmt.Errorf("status.phase is %q, want %s", status.Phase, v1alpha1.PhaseReady))
	}
	filled := map[string]bool{
		"primary": status.Primary != "", "redisVersion": status.RedisVersion != "", "selector": status.Selector != "",
		"maxMemory": status.MaxMemory != nil, "lastSyncTimestamp": status.LastSyncTimestamp != nil,
		"services": status.Services != nil, "binding": status.Binding != nil,
	}
	for _, field := range slices.Sorted(maps.Keys(filled)) {
		if !filled[field] {
			errs = append(errs, fmt.Errorf("status.%s is empty", field))
		}
	}
	return errors.Join(errs...)
}

// effects are what was seen of a cluster whose spec was changed.
type effects struct {
	pods    []corev1.Pod
	service corev1.Service
	// info is Redis's own word, of the primary.
	info map[string]string
}

// judgeEffects compares what specFieldsHaveEffect changes of a spec with what is there.
func judgeEffects(spec *v1alpha1.RedisClusterSpec, seen effects) error {
	var errs []error
	differ := func(field string, got, want any) {
		errs = append(errs, fmt.Errorf("spec.%s has no effect: got %v, want %v", field, got, want))
	}
	if want := int(spec.Replicas) + 1; len(seen.pods) != want {
		differ("replicas", len(seen.pods), fmt.Sprintf("%d pods", want))
	}
	if got, want := seen.info["connected_slaves"], fmt.Sprint(spec.Replicas); got != want {
		differ("replicas", got, want+" connected replicas")
	}
	for name, want := range spec.Config {
		// INFO writes the names of directives with underscores.
		if got := seen.info[strings.ReplaceAll(name, "-", "_")]; got != string(want) {
			differ("config["+name+"]", got, want)
		}
	}
	for i := range seen.pods {
		pod := &seen.pods[i]
		for _, container := range pod.Spec.Containers {
			if container.Name != naming.ContainerRedis {
				continue
			}
			if got := container.Resources.Limits.Memory(); got.Cmp(spec.MemoryLimit) != 0 {
				differ("memoryLimit", pod.Name+" "+got.String(), spec.MemoryLimit.String())
			}
			if got, want := container.Resources.Requests.Cpu(), spec.Resources.CPU.Request; got.Cmp(*want) != 0 {
				differ("resources.cpu.request", pod.Name+" "+got.String(), want.String())
			}
		}
		if !contains(pod.Labels, spec.PodMetadata.Labels) {
			differ("podMetadata.labels", pod.Labels, spec.PodMetadata.Labels)
		}
	}
	if want := spec.Service.Primary.Annotations; !contains(seen.service.Annotations, want) {
		differ("service.primary.annotations", seen.service.Annotations, want)
	}
	return errors.Join(errs...)
}

func contains(all, wanted map[string]string) bool {
	for key, value := range wanted {
		if all[key] != value {
			return false
		}
	}
	return true
}

// judgeLeftovers looks at what is there of a deleted cluster: with Retain its volumes,
// one of each member, and else nothing.
func judgeLeftovers(spec *v1alpha1.RedisClusterSpec, left []client.Object) error {
	var errs []error
	volumes := 0
	for _, object := range left {
		if _, volume := object.(*corev1.PersistentVolumeClaim); volume && retains(spec) {
			volumes++
			continue
		}
		errs = append(errs, fmt.Errorf("left over: %T %s", object, object.GetName()))
	}
	if want := int(spec.Replicas) + 1; retains(spec) && volumes != want {
		errs = append(errs, fmt.Errorf("%d volumes were retained, want %d", volumes, want))
	}
	return errors.Join(errs...)
}

func retains(spec *v1alpha1.RedisClusterSpec) bool {
	return spec.Storage != nil && spec.Storage.ReclaimPolicy == v1alpha1.ReclaimRetain
}

// describe is conditions on one line.
func describe(conditions []metav1.Condition) string {
	var words []string
	for _, c := range conditions {
		words = append(words, fmt.Sprintf("%s=%s (%s: %s)", c.Type, c.Status, c.Reason, strings.TrimSpace(c.Message)))
	}
	return "[" + strings.Join(words, ", ") + "]"
}
