package controllers

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/admin"
)

// ended says that the kubelet reports every container of the pod terminated for
// good: the pod's phase is final. A single terminated container may have been
// replaced since that report.
func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// clocks measures how long the primary is silent and its replicas detached. The
// silence begins when it was heard last, not when that was noticed.
func (r *RedisClusterReconciler) clocks(s *scope) {
	record := s.facts.Record
	silent := s.facts.Silent()
	s.facts.SilentFor = since(&s.memory.silentSince, s.now, silent)
	if silent {
		key := admin.Key{Namespace: s.cluster.Namespace, Pod: record.Primary.Pod, UID: string(record.Primary.PodUID)}
		s.facts.SilentFor = max(s.facts.SilentFor, r.Members.SilentFor(key))
	}
	s.facts.BootingFor = since(&s.memory.bootingSince, s.now, s.facts.Booting())
	s.facts.DetachedFor = since(&s.memory.detachedSince, s.now, s.facts.Detached())
}

// since returns how long a condition holds, and keeps its start.
func since(start *time.Time, now time.Time, holds bool) time.Duration {
	switch {
	case !holds:
		*start = time.Time{}
		return 0
	case start.IsZero():
		*start = now
	}
	return now.Sub(*start)
}

func (s *scope) hasPod(uid types.UID) bool {
	for _, pod := range s.pods {
		if pod.UID == uid {
			return true
		}
	}
	return false
}

// mentions says that the record depends on the pod.
func mentions(record *v1alpha1.Record, uid types.UID) bool {
	if record == nil {
		return false
	}
	for _, h := range record.MayHold {
		if h.PodUID == uid {
			return true
		}
	}
	return record.Primary.PodUID == uid || (record.Previous != nil && record.Previous.PodUID == uid)
}

// record is the newest of the record in the status and those on the volumes
// (safety rule 14).
func (s *scope) record(claims map[string]*corev1.PersistentVolumeClaim) *v1alpha1.Record {
	newest := s.cluster.Status.Record
	for _, claim := range claims {
		kept := &v1alpha1.Record{}
		text := claim.Annotations[naming.AnnotationRecord]
		if text == "" || json.Unmarshal([]byte(text), kept) != nil {
			continue
		}
		if newest == nil || kept.Epoch > newest.Epoch {
			newest = kept
		}
	}
	return newest.DeepCopy()
}

// oldClaim says that the volume is older than the RedisCluster and nothing on it
// says what it holds.
func oldClaim(cluster *v1alpha1.RedisCluster, claim *corev1.PersistentVolumeClaim) bool {
	return claim != nil && claim.Annotations[naming.AnnotationRecord] == "" &&
		claim.CreationTimestamp.Before(&cluster.CreationTimestamp)
}
