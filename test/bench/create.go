package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"seang.org/operator/test/e2e/audit"
)

// createReady measures from the kubelet's report that the last container runs
// until Ready=True, both in the audit log.
func createReady(ctx context.Context, s *suite, n int) ([]result, error) {
	if err := s.warmUp(ctx); err != nil {
		return nil, err
	}
	var samples []float64
	for range n {
		c, err := s.creation(ctx)
		if err != nil {
			return nil, err
		}
		samples = append(samples, milliseconds(c.ready))
		s.say("last container running → Ready %.0f ms; create → Ready %.0f ms", milliseconds(c.ready), milliseconds(c.total))
	}
	return []result{distribution("ms, last container running → Ready", samples, 300, median)}, nil
}

// creation is how long one create took, until Ready: from the create itself, and
// from the report of the last running container.
type creation struct{ total, ready time.Duration }

// creation makes a cluster in memory, and removes it.
func (s *suite) creation(ctx context.Context) (creation, error) {
	from, err := s.log.End()
	if err != nil {
		return creation{}, err
	}
	began := s.clock.Now()
	cluster, err := s.createReady(ctx, false)
	if err != nil {
		return creation{}, err
	}
	ready := s.clock.Now()
	var requests []audit.Request
	var reported time.Time
	// The API server answers before it writes its log.
	logged := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 5*time.Second, true, func(context.Context) (bool, error) {
		if requests, err = s.requests(from); err == nil {
			reported, err = readyAt(requests, cluster.Name)
		}
		return err == nil, nil
	})
	if logged != nil {
		return creation{}, errors.Join(logged, err)
	}
	running, err := runningAt(requests, members(cluster.Name))
	if err != nil {
		return creation{}, err
	}
	return creation{total: ready.Sub(began), ready: reported.Sub(running)}, s.delete(ctx, cluster)
}

// createWrites counts what the operator writes from a create until it is idle.
func createWrites(ctx context.Context, s *suite, n int) ([]result, error) {
	if err := s.warmUp(ctx); err != nil {
		return nil, err
	}
	var results []result
	refused := 0
	for _, variant := range []struct {
		unit       string
		persistent bool
		target     float64
	}{
		{"writes, in memory", false, 18},
		{"writes, on volumes", true, 22},
	} {
		var samples []float64
		for range n {
			writes, err := s.writesOfCreate(ctx, variant.persistent)
			if err != nil {
				return results, err
			}
			refused += conflicts(writes)
			samples = append(samples, float64(len(writes)))
			s.say("%s: %d%s", variant.unit, len(writes), summary(writes))
		}
		results = append(results, distribution(variant.unit, samples, variant.target, largest))
	}
	return append(results, figure("conflicts in all of these", 2*n, float64(refused), 0)), nil
}

func (s *suite) writesOfCreate(ctx context.Context, persistent bool) ([]audit.Request, error) {
	cluster, writes, err := s.createSettled(ctx, persistent)
	if err != nil {
		return nil, err
	}
	return writes, s.delete(ctx, cluster)
}

// summary counts the writes by what was written, in the order of first writes.
func summary(writes []audit.Request) string {
	count := map[string]int{}
	var order []string
	for _, r := range writes {
		what := r.Verb + " " + r.Resource
		if r.Subresource != "" {
			what += "/" + r.Subresource
		}
		if count[what] == 0 {
			order = append(order, what)
		}
		count[what]++
	}
	var text strings.Builder
	for _, what := range order {
		fmt.Fprintf(&text, ", %d × %s", count[what], what)
	}
	return text.String()
}
