package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/test/e2e/kubeapi"
	"seang.org/operator/test/e2e/oracle"
)

// failover kills the primary's process and measures until a write through the
// Service is accepted, each time with a whole cluster and proxies that have rested.
func failover(ctx context.Context, s *suite, n int) ([]result, error) {
	c, err := s.newSubject(ctx, false)
	if err != nil {
		return nil, err
	}
	options := oracle.Options{Name: "failover", Plain: 2, Pace: 2 * time.Millisecond}
	bareWritable, barePromoted, err := c.crashBare(ctx, min(n, floorRuns), options)
	if err != nil {
		return nil, err
	}
	o, err := c.write(ctx, options)
	if err != nil {
		return nil, err
	}
	writable, promoted, err := s.crashes(n, "kill -9", func() (recovery, error) { return c.crash(ctx, o) })
	if err != nil {
		return nil, err
	}
	report, err := c.verify(ctx, o, false)
	const unit = "ms, kill -9 → a write accepted through the Service"
	return []result{
		distribution(unit+"; value is p50", writable, 200, median).above(bareWritable),
		distribution(unit+"; value is p99", writable, 1000, p99),
		distribution("ms, kill -9 → a replica says that it is primary, asked each ms", promoted, 40, median).above(barePromoted),
		count(fmt.Sprintf("acknowledged writes lost, of %d without WAIT", report.Unconfirmed), n, report.LostUnconfirmed),
	}, errors.Join(err, c.remove(ctx))
}

// recovery is how long after a crash of the primary's process another was
// promoted, and a write accepted through the Service.
type recovery struct {
	at                 time.Time
	promoted, writable time.Duration
}

// clockFormat is that of the audit log, for those who compare.
const clockFormat = "15:04:05.000"

// crashBare does the same with pods that no operator looks after.
func (c *subject) crashBare(ctx context.Context, n int, options oracle.Options) (writable, promoted []float64, err error) {
	f, err := c.newFloor(ctx)
	if err != nil {
		return nil, nil, err
	}
	o, err := f.start(ctx, options)
	if err != nil {
		return nil, nil, err
	}
	writable, promoted, err = c.crashes(n, "floor: kill -9", func() (recovery, error) { return f.crash(ctx, o) })
	if err != nil {
		return nil, nil, err
	}
	_, err = o.Verify(ctx)
	return writable, promoted, errors.Join(err, f.remove(ctx))
}

// crashes does something n times that kills a primary, and returns and prints how long
// it took until a write was accepted, and until another was promoted, in milliseconds.
func (s *suite) crashes(n int, what string, crash func() (recovery, error)) (writable, promoted []float64, err error) {
	for range n {
		took, err := crash()
		if err != nil {
			return nil, nil, err
		}
		writable, promoted = append(writable, milliseconds(took.writable)), append(promoted, milliseconds(took.promoted))
		s.say("%s %s → write accepted %.0f ms; promoted after %.1f ms", took.at.Format(clockFormat), what, milliseconds(took.writable), milliseconds(took.promoted))
	}
	return writable, promoted, nil
}

// crash kills the primary's process in a calm cluster that the writers write to, and
// makes the cluster whole again.
func (c *subject) crash(ctx context.Context, o *oracle.Oracle) (recovery, error) {
	before, err := c.awaitCalm(ctx)
	if err != nil {
		return recovery{}, err
	}
	return c.crashNow(ctx, o, before)
}

// crashNow does so with a cluster as it was just seen, after it killed other processes.
func (c *subject) crashNow(ctx context.Context, o *oracle.Oracle, before *v1alpha1.RedisCluster, first ...int) (recovery, error) {
	primary, err := c.pod(ctx, before.Status.Primary)
	if err != nil {
		return recovery{}, err
	}
	others, err := c.others(ctx, primary.Name)
	if err != nil {
		return recovery{}, err
	}
	promotion, err := c.connectTo(ctx, others)
	if err != nil {
		return recovery{}, err
	}
	defer promotion.close()
	killed, err := c.killUnderLoad(ctx, o, primary, first...)
	if err != nil {
		return recovery{}, err
	}
	promotion.watch(ctx, c.suite)
	took, err := c.measure(ctx, o, promotion, killed)
	if err != nil {
		return took, err
	}
	promotion.close()
	if _, err := c.awaitMoved(ctx, before.Status.Record.Epoch); err != nil {
		return took, err
	}
	return took, c.replace(ctx, primary)
}

// killUnderLoad kills a pod's Redis, after other processes, while writes are acknowledged,
// and returns when.
func (s *suite) killUnderLoad(ctx context.Context, o *oracle.Oracle, pod *corev1.Pod, first ...int) (time.Time, error) {
	processes, err := kubeapi.Processes(pod, redisProgram)
	if err != nil {
		return time.Time{}, err
	}
	o.Mark()
	if err := awaitWrites(ctx, o); err != nil {
		return time.Time{}, err
	}
	killed := s.clock.Now()
	return killed, killAll(append(first, processes...)...)
}

// measure waits for the promotion and the first write after a crash.
func (c *subject) measure(ctx context.Context, o *oracle.Oracle, promotion *promotion, killed time.Time) (recovery, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, recoveryTimeout, fmt.Errorf("no write accepted within %s", recoveryTimeout))
	defer cancel()
	promoted, err := promotion.await(ctx)
	if err != nil {
		return recovery{}, err
	}
	writable, err := o.FirstSince(ctx, killed)
	return recovery{at: killed, promoted: promoted.Sub(killed), writable: writable.Sub(killed)}, err
}
