package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/internal/naming"
	"seang.org/operator/test/e2e/kubeapi"
	"seang.org/operator/test/e2e/oracle"
)

const (
	// rollWriters at rollPace make 5,000 writes a second.
	rollWriters = 10
	rollPace    = 2 * time.Millisecond
	// syncsPace is how often the processes are asked how often they sent all of
	// their data: what one does in its last moments is not counted.
	syncsPace = 100 * time.Millisecond
)

// roll restarts all members one after the other under load, and measures the
// longest gap between acknowledged writes, what is lost, and the full resyncs: none
// where volumes keep the data, one a member where they do not.
func roll(ctx context.Context, s *suite, n int) ([]result, error) {
	var results []result
	for _, variant := range []struct {
		where      string
		persistent bool
		syncs      float64
	}{
		{"on volumes", true, 0},
		{"in memory", false, replicas + 1},
	} {
		found, err := s.rolls(ctx, n, variant.persistent)
		if err != nil {
			return results, fmt.Errorf("%s: %w", variant.where, err)
		}
		results = append(results,
			distribution("ms, longest gap between acknowledged writes, "+variant.where+"; value is p50", found.gaps, 60, median),
			distribution("ms, longest gap between acknowledged writes, "+variant.where+"; value is p99", found.gaps, 200, p99),
			distribution("full resyncs a roll, "+variant.where, found.syncs, variant.syncs, largest),
			figure(fmt.Sprintf("acknowledged writes lost, of %d, %s", found.report.Unconfirmed, variant.where), n, float64(found.report.LostUnconfirmed), 0))
	}
	return results, nil
}

// rolled is what was seen in rolls of one cluster.
type rolled struct {
	gaps, syncs []float64
	report      oracle.Report
}

func (s *suite) rolls(ctx context.Context, n int, persistent bool) (rolled, error) {
	var found rolled
	c, err := s.newSubject(ctx, persistent)
	if err != nil {
		return found, err
	}
	for i := range n {
		if _, err := c.awaitCalm(ctx); err != nil {
			return found, err
		}
		// Writers of their own for each roll: at this rate they fill the memory soon.
		o, err := c.write(ctx, oracle.Options{Name: fmt.Sprintf("roll-%d", i), Plain: rollWriters, Pace: rollPace})
		if err != nil {
			return found, err
		}
		syncs := c.countSyncs(ctx)
		o.Mark()
		err = c.restartAll(ctx)
		gap, full := o.Mark(), syncs.end()
		if err != nil {
			return found, err
		}
		report, err := o.Verify(ctx)
		if err != nil {
			return found, err
		}
		s.say("longest gap %.1f ms, %d full resyncs, writes %+v", milliseconds(gap), full, report)
		found.gaps, found.syncs = append(found.gaps, milliseconds(gap)), append(found.syncs, float64(full))
		found.report.Add(report)
		if err := o.Discard(ctx); err != nil {
			return found, err
		}
	}
	return found, c.remove(ctx)
}

// restartAll asks for a restart and waits until every pod was replaced and the
// cluster is whole.
func (c *subject) restartAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("not restarted within %s", readyTimeout))
	defer cancel()
	before, err := c.others(ctx, "")
	if err != nil {
		return err
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, naming.AnnotationRestartedAt, c.clock.Now().UTC().Format(time.RFC3339))
	if err := c.api.Patch(ctx, c.reference(), client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("ask RedisCluster %s for a restart: %w", c.key, err)
	}
	for _, old := range before {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: old.Namespace, Name: old.Name}}
		err := kubeapi.Await(ctx, c.api, pod, func(now *corev1.Pod) (bool, error) {
			return now.UID != old.UID && isPodReady(now), nil
		})
		if err != nil {
			return err
		}
	}
	_, err = c.awaitWhole(ctx)
	return err
}

// syncCounter asks the members again and again how often they sent all of their
// data: the count of a process ends with it.
type syncCounter struct {
	stop    context.CancelFunc
	running sync.WaitGroup
	// first and last are what each process said, by its run ID.
	first, last map[string]int
}

// countSyncs begins to count. What processes say that appear later counts from 0.
func (c *subject) countSyncs(ctx context.Context) *syncCounter {
	s := &syncCounter{first: map[string]int{}, last: map[string]int{}}
	c.readSyncs(ctx, s.first)
	ctx, s.stop = context.WithCancel(ctx)
	s.running.Go(func() {
		ticker := c.clock.NewTicker(syncsPace)
		defer ticker.Stop()
		for ctx.Err() == nil {
			c.readSyncs(ctx, s.last)
			select {
			case <-ticker.C():
			case <-ctx.Done():
			}
		}
	})
	return s
}

// end returns the number of full resyncs since the beginning.
func (s *syncCounter) end() int {
	s.stop()
	s.running.Wait()
	total := 0
	for process, n := range s.last {
		total += n - s.first[process]
	}
	return total
}

// readSyncs notes what the processes say that can be reached.
func (c *subject) readSyncs(ctx context.Context, found map[string]int) {
	for _, name := range members(c.key.Name) {
		pod, err := c.pod(ctx, name)
		if err != nil || pod.Status.PodIP == "" {
			continue
		}
		if process, n, err := c.syncsOf(ctx, pod); err == nil {
			found[process] = n
		}
	}
}

// syncsOf is the run ID of a pod's process, and how often that sent all of its data.
func (c *subject) syncsOf(ctx context.Context, pod *corev1.Pod) (runID string, n int, err error) {
	connection, err := oracle.Dial(ctx, c.at(pod))
	if err != nil {
		return "", 0, err
	}
	defer connection.Close()
	server, errServer := connection.Do(ctx, "INFO", "server")
	stats, errStats := connection.Do(ctx, "INFO", "stats")
	if err := errors.Join(errServer, errStats); err != nil {
		return "", 0, fmt.Errorf("read the state of %s: %w", pod.Name, err)
	}
	if _, err := fmt.Sscanf(property(stats, "sync_full"), "%d", &n); err != nil {
		return "", 0, fmt.Errorf("read how often %s sent all of its data: %w", pod.Name, err)
	}
	return property(server, "run_id"), n, nil
}
