package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/test/e2e/audit"
	"seang.org/operator/test/e2e/kubeapi"
)

const (
	// fleetSize is the most clusters that are made.
	fleetSize = 20
	// steadyMinutes is the longest that the idle operator is watched.
	steadyMinutes = 10
	// disturbed is how long it is watched after a restart and after a resync.
	disturbed = time.Minute
	// poke is an annotation of no meaning.
	poke = "bench.seang.org/poked"
)

// raise makes the fleet as large as asked, in memory and on volumes by turns,
// and waits until the operator is idle.
func (s *suite) raise(ctx context.Context, size int) error {
	from, err := s.log.End()
	if err != nil {
		return err
	}
	for len(s.fleet) < min(size, fleetSize) {
		// One at a time: a small machine starts no faster with all at once.
		cluster, err := s.createReady(ctx, len(s.fleet)%2 == 1)
		if err != nil {
			return err
		}
		s.fleet = append(s.fleet, cluster)
	}
	_, err = s.settle(ctx, from)
	return err
}

// steadyWrites counts what the operator writes, Events included, while there is
// nothing to do. N is the number of clusters, up to 20, and of minutes, up to 10.
func steadyWrites(ctx context.Context, s *suite, n int) ([]result, error) {
	if err := s.raise(ctx, n); err != nil {
		return nil, err
	}
	minutes := min(n, steadyMinutes)
	var results []result
	for _, phase := range []struct {
		unit    string
		disturb func(context.Context) error
		watch   time.Duration
	}{
		{fmt.Sprintf("writes in %d min of steady state", minutes), func(context.Context) error { return nil }, time.Duration(minutes) * time.Minute},
		{"writes in 1 min from the operator's restart", s.restartOperator, disturbed},
		{"writes in 1 min from a resync of all objects", s.pokeFleet, disturbed},
	} {
		from, err := s.log.End()
		if err != nil {
			return results, err
		}
		if err := phase.disturb(ctx); err != nil {
			return results, err
		}
		if err := s.pass(ctx, phase.watch); err != nil {
			return results, err
		}
		requests, err := s.requests(from)
		if err != nil {
			return results, err
		}
		writes, events := audit.Writes(requests, kubeapi.OperatorUser)
		s.say("%s, %d clusters: %d and %d Events%s", phase.unit, len(s.fleet), len(writes), len(events), summary(writes))
		results = append(results, figure(phase.unit, len(s.fleet), float64(len(writes)+len(events)), 0))
	}
	return results, nil
}

// pass lets time go by: what must not happen is no event to wait for.
func (s *suite) pass(ctx context.Context, d time.Duration) error {
	select {
	case <-s.clock.After(d):
		return nil
	case <-ctx.Done():
		return errors.Join(ctx.Err(), context.Cause(ctx))
	}
}

// pokeFleet makes the API server send each cluster and its main child anew to
// all who watch them, without a change that matters.
func (s *suite) pokeFleet(ctx context.Context) error {
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, poke, s.clock.Now().String()))
	for _, cluster := range s.fleet {
		at := metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name}
		child := metav1.ObjectMeta{Namespace: cluster.Namespace, Name: naming.StatefulSet(cluster.Name)}
		for _, object := range []client.Object{&v1alpha1.RedisCluster{ObjectMeta: at}, &appsv1.StatefulSet{ObjectMeta: child}} {
			if err := s.api.Patch(ctx, object, patch); err != nil {
				return fmt.Errorf("annotate %T %s: %w", object, object.GetName(), err)
			}
		}
	}
	return nil
}
