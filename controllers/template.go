package controllers

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/plan"
)

// template returns, by the name of the field, the hash of each part of the
// RedisCluster that can only change with a new pod. What the operator's version adds is
// not in it: an upgrade of the operator replaces no pod.
func template(cluster *v1alpha1.RedisCluster, secured bool) map[string]string {
	spec := cluster.Spec
	parts := map[string]any{
		"image":             spec.Image,
		"enablePersistence": persistent(cluster),
		"scheduling":        schedulingPart(spec.Scheduling),
		"resources":         resourcesPart(spec.Resources),
		"podMetadata":       orNil(spec.PodMetadata),
	}
	if at := cluster.Annotations[naming.AnnotationRestartedAt]; at != "" {
		parts["restartedAt"] = at
	}
	if secured {
		parts["tls"] = true
	}
	// What releases have added since the first is there only where it is used: pods that were
	// made before stay as they are.
	if len(spec.ImagePullSecrets) > 0 {
		parts["imagePullSecrets"] = spec.ImagePullSecrets
	}
	hashes := map[string]string{}
	for name, part := range parts {
		hashes[name] = partHash(part)
	}
	return hashes
}

// orNil returns a section of the spec, or nil if it says nothing: what is left of one
// whose fields were removed must not replace pods.
func orNil[Section any](section *Section) any {
	if section == nil || encoded(section) == "{}" {
		return nil
	}
	return section
}

func schedulingPart(scheduling *v1alpha1.SchedulingSpec) any {
	if scheduling == nil || scheduling.Affinity == nil || *scheduling.Affinity != (corev1.Affinity{}) {
		return orNil(scheduling)
	}
	without := *scheduling
	without.Affinity = nil
	return orNil(&without)
}

func resourcesPart(resources *v1alpha1.ResourcesSpec) any {
	if resources == nil || orNil(resources.CPU) == nil {
		return nil
	}
	return resources
}

func partHash(part any) string {
	sum := sha256.Sum256([]byte(encoded(part)))
	return hex.EncodeToString(sum[:4])
}

// encoded is a part of the spec, or what is remembered of it, as JSON.
func encoded(part any) string {
	text, err := json.Marshal(part)
	if err != nil {
		return "" // Only types of our API, which all encode.
	}
	return string(text)
}

// templateOf is what the pods of a template, or a pod, were made from; nil if it
// does not say.
func templateOf(annotations map[string]string) map[string]string {
	parts := map[string]string{}
	if json.Unmarshal([]byte(annotations[naming.AnnotationTemplate]), &parts) != nil {
		return nil
	}
	return parts
}

// compareTemplates decides what the pods are to be made from, and finds those that were
// made from something else.
func (s *scope) compareTemplates() {
	s.template = template(s.cluster, s.mountsTLS())
	inForce := s.templateInForce()
	for i := range s.facts.Members {
		m := &s.facts.Members[i]
		if pod := s.pods[m.Pod]; pod != nil {
			m.Outdated = inForce && (s.outdated(pod) || s.startedOtherwise(pod))
		}
	}
}

// outdated says that a pod was made from other parts of the spec than those of
// today. One that does not say what it was made from is left alone.
func (s *scope) outdated(pod *corev1.Pod) bool {
	have := templateOf(pod.Annotations)
	return have != nil && !maps.Equal(have, s.template)
}

// templateInForce says that a pod that is deleted now is made anew from the wanted
// template.
func (s *scope) templateInForce() bool {
	set := s.statefulSet
	return set != nil && set.DeletionTimestamp.IsZero() && set.Status.ObservedGeneration == set.Generation &&
		maps.Equal(templateOf(set.Spec.Template.Annotations), s.template)
}

// image that the pods run: one that the operator chose stays until the user asks
// for another; one that the user asked for goes with the request.
func (s *scope) image() string {
	if s.cluster.Spec.Image != "" {
		return s.cluster.Spec.Image
	}
	if s.statefulSet != nil && templateOf(s.statefulSet.Spec.Template.Annotations)["image"] == partHash("") {
		if container := redisContainer(&s.statefulSet.Spec.Template.Spec); container != nil {
			return container.Image
		}
	}
	return s.defaultImage
}

// redisContainer is the container of a pod that Redis runs in; nil if there is none.
func redisContainer(pod *corev1.PodSpec) *corev1.Container {
	for i := range pod.Containers {
		if pod.Containers[i].Name == naming.ContainerRedis {
			return &pod.Containers[i]
		}
	}
	return nil
}

// Storage by default: room for the append-only file, its rewrite and a
// snapshot, each as large as the memory.
const (
	storagePerMemory = 3
	minStorage       = 1 << 30
)

// storageSize is the size of each volume. One that was derived stays.
func (s *scope) storageSize() resource.Quantity {
	if storage := s.cluster.Spec.Storage; storage != nil && storage.Size != nil {
		return *storage.Size
	}
	if s.statefulSet != nil {
		if size := claimSize(s.statefulSet); size != nil {
			return *size
		}
	}
	return *resource.NewQuantity(max(storagePerMemory*s.limit, minStorage), resource.BinarySI)
}

// awaitRoll says that pods are still those of an older template, where the planner
// could not see it: the StatefulSet has to get the new one first.
func (s *scope) awaitRoll() {
	if s.templateInForce() {
		return
	}
	for _, pod := range s.pods {
		if s.outdated(pod) {
			s.wait(plan.Wait{Reason: v1alpha1.ReasonRolling, Message: "the StatefulSet gets a new template, and then the pods are replaced one at a time"})
			return
		}
	}
}
