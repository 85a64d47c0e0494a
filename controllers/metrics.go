package controllers

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/redis"
)

// Metrics of each RedisCluster. Times are Unix seconds, sizes bytes.
var (
	clusterLabels = []string{"namespace", "name"}
	memberLabels  = []string{"namespace", "name", "pod"}

	metricMembers        = gauge("members", "Redis processes that answer.", clusterLabels)
	metricInSync         = gauge("in_sync_replicas", "Read replicas in sync with the primary.", clusterLabels)
	metricReady          = gauge("ready", "1 while the Ready condition is True.", clusterLabels)
	metricLagBytes       = gauge("replication_lag_bytes", "Bytes of the primary's history that the replica has not acknowledged.", memberLabels)
	metricLagSeconds     = gauge("replication_lag_seconds", "Seconds since the replica's last acknowledgement, as the primary shows it.", memberLabels)
	metricMemoryUsed     = gauge("memory_used_bytes", "Memory that the member uses.", memberLabels)
	metricMemoryLimit    = gauge("memory_limit_bytes", "maxmemory of the member.", memberLabels)
	metricFailovers      = counter("failovers_total", "Unplanned changes of the primary.", clusterLabels)
	metricLastTransition = gauge("last_transition_timestamp_seconds", "When the Ready condition last changed.", clusterLabels)
)

func gauge(name, help string, labels []string) *prometheus.GaugeVec {
	vec := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "redis_operator", Subsystem: "cluster", Name: name, Help: help}, labels)
	metrics.Registry.MustRegister(vec)
	return vec
}

func counter(name, help string, labels []string) *prometheus.CounterVec {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "redis_operator", Subsystem: "cluster", Name: name, Help: help}, labels)
	metrics.Registry.MustRegister(vec)
	return vec
}

// publishMetrics shows what the pass found.
func publishMetrics(s *scope, now *v1alpha1.RedisClusterStatus) {
	namespace, name := s.cluster.Namespace, s.cluster.Name
	answering := 0
	for i := range s.facts.Members {
		m := &s.facts.Members[i]
		if m.Info == nil {
			deleteMember(namespace, name, m.Pod)
			continue
		}
		answering++
		metricMemoryUsed.WithLabelValues(namespace, name, m.Pod).Set(float64(m.Info.UsedMemory))
		metricMemoryLimit.WithLabelValues(namespace, name, m.Pod).Set(float64(m.Info.MaxMemory))
		if primary := s.decision.Primary; primary != nil && primary.Pod != m.Pod {
			publishLag(namespace, name, m.Pod, primary.Info, primary.Info.Replica(m.IP))
		}
	}
	metricMembers.WithLabelValues(namespace, name).Set(float64(answering))
	metricInSync.WithLabelValues(namespace, name).Set(float64(now.ActiveReplicas))
	for _, condition := range now.Conditions {
		if condition.Type == v1alpha1.ConditionReady {
			metricReady.WithLabelValues(namespace, name).Set(boolean(condition.Status == "True"))
			metricLastTransition.WithLabelValues(namespace, name).Set(float64(condition.LastTransitionTime.Unix()))
		}
	}
	metricFailovers.WithLabelValues(namespace, name).Add(float64(s.failovers))
	s.failovers = 0
}

func publishLag(namespace, name, pod string, primary *redis.Info, seen *redis.Replica) {
	if seen == nil {
		metricLagBytes.DeleteLabelValues(namespace, name, pod)
		metricLagSeconds.DeleteLabelValues(namespace, name, pod)
		return
	}
	metricLagBytes.WithLabelValues(namespace, name, pod).Set(float64(max(primary.Offset-seen.Offset, 0)))
	metricLagSeconds.WithLabelValues(namespace, name, pod).Set(float64(seen.Lag))
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func deleteMember(namespace, name, pod string) {
	for _, vec := range []*prometheus.GaugeVec{metricLagBytes, metricLagSeconds, metricMemoryUsed, metricMemoryLimit} {
		vec.DeleteLabelValues(namespace, name, pod)
	}
}

// forgetMetrics drops the series of a RedisCluster that is gone.
func forgetMetrics(key types.NamespacedName) {
	labels := prometheus.Labels{"namespace": key.Namespace, "name": key.Name}
	for _, vec := range []*prometheus.GaugeVec{metricMembers, metricInSync, metricReady, metricLagBytes, metricLagSeconds,
		metricMemoryUsed, metricMemoryLimit, metricLastTransition} {
		vec.DeletePartialMatch(labels)
	}
	metricFailovers.DeletePartialMatch(labels)
}
