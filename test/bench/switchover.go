package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/test/e2e/oracle"
)

// switchover asks for another primary and measures for how long no write of a
// client that connects again is acknowledged, each time with a whole cluster and
// proxies that have rested.
func switchover(ctx context.Context, s *suite, n int) ([]result, error) {
	c, err := s.newSubject(ctx, false)
	if err != nil {
		return nil, err
	}
	options := oracle.Options{Name: "switchover", Plain: 1, Pace: time.Millisecond}
	bare, err := c.handOverBare(ctx, min(n, floorRuns), options)
	if err != nil {
		return nil, err
	}
	o, err := c.write(ctx, options)
	if err != nil {
		return nil, err
	}
	syncsBefore, err := c.fullSyncs(ctx)
	if err != nil {
		return nil, err
	}
	gaps, err := s.handOvers(n, "", func() (time.Duration, error) { return c.handOver(ctx, o) })
	if err != nil {
		return nil, err
	}
	syncs, err := c.fullSyncs(ctx)
	if err != nil {
		return nil, err
	}
	report, err := c.verify(ctx, o, true)
	const unit = "ms, longest gap between acknowledged writes"
	return []result{
		distribution(unit+"; value is p50", gaps, 60, median).above(bare),
		distribution(unit+"; value is p99", gaps, 200, p99),
		figure(fmt.Sprintf("acknowledged writes lost, of %d", report.Unconfirmed), n, float64(report.LostUnconfirmed), 0),
		figure("full resyncs", n, float64(syncs-syncsBefore), 0),
	}, errors.Join(err, c.remove(ctx))
}

// handOverBare does the same with pods that no operator looks after.
func (c *subject) handOverBare(ctx context.Context, n int, options oracle.Options) ([]float64, error) {
	f, err := c.newFloor(ctx)
	if err != nil {
		return nil, err
	}
	o, err := f.start(ctx, options)
	if err != nil {
		return nil, err
	}
	gaps, err := c.handOvers(n, "floor: ", func() (time.Duration, error) { return f.handOver(ctx, o) })
	if err != nil {
		return nil, err
	}
	_, err = o.Verify(ctx)
	return gaps, errors.Join(err, f.remove(ctx))
}

// handOvers moves a primary n times, and returns and prints the longest gap of each, in
// milliseconds.
func (s *suite) handOvers(n int, of string, handOver func() (time.Duration, error)) ([]float64, error) {
	var gaps []float64
	for range n {
		gap, err := handOver()
		if err != nil {
			return nil, err
		}
		gaps = append(gaps, milliseconds(gap))
		s.say("%slongest gap %.1f ms", of, milliseconds(gap))
	}
	return gaps, nil
}

// handOver moves the primary of a calm cluster and returns the longest time
// meanwhile in which no write was acknowledged.
func (c *subject) handOver(ctx context.Context, o *oracle.Oracle) (time.Duration, error) {
	before, err := c.awaitCalm(ctx)
	if err != nil {
		return 0, err
	}
	target := next(before)
	o.Mark()
	if err := awaitWrites(ctx, o); err != nil {
		return 0, err
	}
	if err := c.askFor(ctx, target); err != nil {
		return 0, err
	}
	if err := c.awaitAnswer(ctx, before.Status.Record.Epoch, target); err != nil {
		return 0, err
	}
	if err := awaitWrites(ctx, o); err != nil {
		return 0, err
	}
	return o.Mark(), nil
}

// next is the member after the primary, by name.
func next(cluster *v1alpha1.RedisCluster) string {
	names := members(cluster.Name)
	return names[(slices.Index(names, cluster.Status.Primary)+1)%len(names)]
}

// askFor asks for a pod as primary.
func (c *subject) askFor(ctx context.Context, pod string) error {
	cluster := c.reference()
	if err := c.api.Get(ctx, c.key, cluster); err != nil {
		return fmt.Errorf("read RedisCluster %s: %w", c.key, err)
	}
	before := cluster.DeepCopy()
	metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, naming.AnnotationSwitchoverTo, pod)
	if err := c.api.Patch(ctx, cluster, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("ask RedisCluster %s for another primary: %w", c.key, err)
	}
	return nil
}

// awaitAnswer waits until the request is answered, by the move that was asked for.
func (c *subject) awaitAnswer(ctx context.Context, epoch int64, pod string) error {
	now, err := c.await(ctx, "led by "+pod, func(now *v1alpha1.RedisCluster) bool {
		_, asked := now.Annotations[naming.AnnotationSwitchoverTo]
		return !asked && (now.Status.Primary == pod || now.Status.Record.Epoch == epoch)
	})
	if err == nil && now.Status.Primary != pod {
		return fmt.Errorf("the request for %s as primary was refused: an Event of %s says why", pod, c.key)
	}
	return err
}
