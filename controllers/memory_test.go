package controllers

import (
	"testing"

	"seang.org/operator/api/v1alpha1"
)

// TestAnOlderReadingIsNotBelieved shows what a pass takes for the RedisCluster, after it
// read one or wrote one.
func TestAnOlderReadingIsNotBelieved(t *testing.T) {
	at := func(version string, replicas int32) *v1alpha1.RedisCluster {
		cluster := &v1alpha1.RedisCluster{}
		cluster.ResourceVersion, cluster.Spec.Replicas = version, replicas
		return cluster
	}
	for name, c := range map[string]struct {
		read, wrote, again *v1alpha1.RedisCluster
		wantReplicas       int32
	}{
		"the first":                             {again: at("8", 1), wantReplicas: 1},
		"a newer one":                           {read: at("8", 1), again: at("10", 2), wantReplicas: 2},
		"one that was read before a newer one":  {read: at("10", 2), again: at("8", 1), wantReplicas: 2},
		"one that is older than our last write": {read: at("8", 1), wrote: at("10", 2), again: at("9", 1), wantReplicas: 2},
		"one that came after our last write":    {wrote: at("10", 2), again: at("11", 3), wantReplicas: 3},
	} {
		t.Run(name, func(t *testing.T) {
			m := &memory{}
			if c.read != nil {
				m.newest(c.read)
			}
			if c.wrote != nil {
				m.wrote(c.wrote)
			}
			if got := m.newest(c.again); got.Spec.Replicas != c.wantReplicas {
				t.Errorf("version %s with %d replicas, want %d", got.ResourceVersion, got.Spec.Replicas, c.wantReplicas)
			}
		})
	}
}
