package main

import (
	"context"
	"fmt"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/test/e2e/audit"
)

// specToWrite measures how long after a change of the spec the operator, which
// was idle, has written the first child.
func specToWrite(ctx context.Context, s *suite, n int) ([]result, error) {
	cluster, _, err := s.createSettled(ctx, false)
	if err != nil {
		return nil, err
	}
	var samples []float64
	for i := range n {
		requests, err := s.change(ctx, cluster, strconv.Itoa(100+i))
		if err != nil {
			return nil, err
		}
		took, err := firstChildWrite(requests, cluster.Name)
		if err != nil {
			return nil, err
		}
		samples = append(samples, milliseconds(took))
		s.say("spec change → first child write %.1f ms", milliseconds(took))
	}
	return []result{distribution("ms, spec change answered → child write answered", samples, 50, p99)}, s.delete(ctx, cluster)
}

// change gives a directive a new value and returns the requests until the
// operator is idle again.
func (s *suite) change(ctx context.Context, cluster *v1alpha1.RedisCluster, value string) ([]audit.Request, error) {
	from, err := s.log.End()
	if err != nil {
		return nil, err
	}
	if err := s.api.Get(ctx, client.ObjectKeyFromObject(cluster), cluster); err != nil {
		return nil, fmt.Errorf("read RedisCluster %s: %w", cluster.Name, err)
	}
	before := cluster.DeepCopy()
	cluster.Spec.Config = map[string]v1alpha1.ConfigValue{"slowlog-max-len": v1alpha1.ConfigValue(value)}
	if err := s.api.Patch(ctx, cluster, client.MergeFrom(before)); err != nil {
		return nil, fmt.Errorf("change RedisCluster %s: %w", cluster.Name, err)
	}
	if err := s.awaitReady(ctx, cluster); err != nil {
		return nil, err
	}
	if _, err := s.settle(ctx, from); err != nil {
		return nil, err
	}
	return s.requests(from)
}
