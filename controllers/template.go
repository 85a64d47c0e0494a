package controllers

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/status"
)

// template returns, by the name of the field, the hash of each part of the spec
// that can only change with a new pod. What the operator's version adds is not in
// it: an upgrade of the operator replaces no pod.
func (s *scope) template() map[string]string {
	spec := s.cluster.Spec
	parts := map[string]any{
		"image":             spec.Image,
		"enablePersistence": s.persistent(),
		"scheduling":        spec.Scheduling,
		"resources":         spec.Resources,
		"podMetadata":       spec.PodMetadata,
	}
	if spec.Storage != nil && spec.Storage.Size != nil {
		parts["storage"] = spec.Storage.Size.Value()
	}
	hashes := map[string]string{}
	for name, part := range parts {
		hashes[name] = partHash(part)
	}
	return hashes
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

// rememberedTemplate is the template that the StatefulSet was made from.
func (s *scope) rememberedTemplate() map[string]string {
	parts := map[string]string{}
	if s.statefulSet == nil || json.Unmarshal([]byte(s.statefulSet.Annotations[naming.AnnotationTemplate]), &parts) != nil {
		return nil
	}
	return parts
}

// needsRoll names the parts of the wanted template that differ from those that
// the pods were made from; nil if none.
func (s *scope) needsRoll(want map[string]string) *status.Problem {
	have := s.rememberedTemplate()
	if have == nil {
		return nil
	}
	var changed []string
	for name, hash := range want {
		if have[name] != hash {
			changed = append(changed, "spec."+name)
		}
	}
	if have["storage"] != "" && want["storage"] == "" {
		changed = append(changed, "spec.storage")
	}
	if len(changed) == 0 {
		return nil
	}
	slices.Sort(changed)
	return &status.Problem{Reason: v1alpha1.ReasonNotYetSupported,
		Message: strings.Join(changed, ", ") + " cannot be changed yet on a running cluster; nothing was touched: revert the change, or create a new RedisCluster"}
}

// image that the pods run: one that the operator chose stays until the user asks
// for another; one that the user asked for goes with the request.
func (s *scope) image() string {
	if s.cluster.Spec.Image != "" {
		return s.cluster.Spec.Image
	}
	if s.rememberedTemplate()["image"] == partHash("") {
		for _, container := range s.statefulSet.Spec.Template.Spec.Containers {
			if container.Name == naming.ContainerRedis {
				return container.Image
			}
		}
	}
	return s.defaultImage
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
		for _, claim := range s.statefulSet.Spec.VolumeClaimTemplates {
			return claim.Spec.Resources.Requests["storage"]
		}
	}
	return *resource.NewQuantity(max(storagePerMemory*s.limit, minStorage), resource.BinarySI)
}
