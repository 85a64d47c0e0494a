package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"runtime/pprof"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/manager"
	"seang.org/operator/internal/testkit/apiserver"
)

const (
	// crowdSize is the number of clusters among which nothing is to do.
	crowdSize = 1000
	// noopCores is the number of cores that the operator and the fake Redis
	// share; the API server and etcd run beside them.
	noopCores = 2
	// noopTime covers one read of every Secret, which the operator believes for
	// half a minute.
	noopTime = 30 * time.Second
	// askEvery is how often a pass over every cluster is asked for: the most that
	// can be measured is five passes a second of each. A cluster that waits already
	// is not queued twice.
	askEvery = 200 * time.Millisecond
)

// noopRate counts the passes a second that the operator makes over clusters with
// which nothing is to do, and what it writes meanwhile. The API server is a real
// one without nodes, the members are fakes. N is the number of clusters.
func noopRate(ctx context.Context, s *suite, n int) (results []result, err error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(noopCores))
	server, err := apiserver.Start(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	writes := &writeCounter{}
	operator, err := operate(ctx, server.Config, writes)
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- operator.Start(ctx) }()
	defer func() { cancel(nil); err = errors.Join(err, <-ended) }()

	c := newCrowd(server)
	defer func() { err = errors.Join(err, c.remove()) }()
	began := s.clock.Now()
	if err := c.raise(ctx, n); err != nil {
		return nil, err
	}
	if err := s.awaitQuiet(ctx, func() (int, error) { return int(writes.count.Load()), nil }); err != nil {
		return nil, err
	}
	s.say("%d clusters of 1 + %d members Ready and quiet after %.0f s and %d writes", n, replicas, s.clock.Since(began).Seconds(), writes.count.Load())
	return s.countPasses(ctx, operator, c.clusters, writes)
}

// countPasses keeps the queue filled for a while.
func (s *suite) countPasses(ctx context.Context, operator *manager.Operator, clusters []*v1alpha1.RedisCluster, writes *writeCounter) ([]result, error) {
	stop, err := s.startProfile()
	if err != nil {
		return nil, err
	}
	written, before := writes.count.Load(), usage()
	passed, failed, err := passes()
	if err != nil {
		return nil, err
	}
	began := s.clock.Now()
	for s.clock.Since(began) < noopTime {
		for _, cluster := range clusters {
			operator.Reconciler.Wake <- event.TypedGenericEvent[*v1alpha1.RedisCluster]{Object: cluster}
		}
		if err := s.pass(ctx, askEvery); err != nil {
			return nil, err
		}
	}
	took := s.clock.Since(began)
	passedNow, failedNow, err := passes()
	if err != nil {
		return nil, err
	}
	used := usage() - before
	stop()
	if failed != failedNow {
		return nil, fmt.Errorf("%.0f passes failed", failedNow-failed)
	}
	count := passedNow - passed
	s.say("%.0f passes in %.1f s; %.2f cores used by the operator and the fake Redis, %.0f µs a pass",
		count, took.Seconds(), used.Seconds()/took.Seconds(), float64(used.Microseconds())/count)
	return []result{
		rate("no-op reconciles a second", len(clusters), count/took.Seconds(), 1000),
		figure("writes meanwhile", len(clusters), float64(writes.count.Load()-written), 0),
	}, nil
}

// startProfile writes a CPU profile until stop is called, if one was asked for.
func (s *suite) startProfile() (stop func(), err error) {
	if s.profile == "" {
		return func() {}, nil
	}
	file, err := os.Create(s.profile)
	if err != nil {
		return nil, fmt.Errorf("write the profile: %w", err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, fmt.Errorf("start the profile: %w", err)
	}
	return func() { pprof.StopCPUProfile(); _ = file.Close() }, nil
}

// operate makes the operator as it runs in production, but for its logs.
func operate(ctx context.Context, config *rest.Config, writes *writeCounter) (*manager.Operator, error) {
	ctrl.SetLogger(zap.New(zap.WriteTo(io.Discard)))
	config = rest.CopyConfig(config)
	config.QPS = -1 // As ctrl.GetConfig has it.
	config.Wrap(writes.wrap)
	return manager.New(ctx, config, manager.Options{MetricsAddress: "0", HealthAddress: "0", DefaultImage: "redis:8.0"})
}

// writeCounter counts the requests of a client that are not reads.
type writeCounter struct{ count atomic.Int64 }

func (w *writeCounter) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if request.Method != http.MethodGet {
			w.count.Add(1)
		}
		return next.RoundTrip(request)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// passes returns how often the operator's reconciler ran, and how often with an
// error.
func passes() (all, failed float64, err error) {
	families, err := metrics.Registry.(prometheus.Gatherer).Gather()
	if err != nil {
		return 0, 0, fmt.Errorf("read the operator's metrics: %w", err)
	}
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			value := metric.GetCounter().GetValue()
			all += value
			for _, label := range metric.GetLabel() {
				if label.GetName() == "result" && label.GetValue() == "error" {
					failed += value
				}
			}
		}
	}
	return all, failed, nil
}

// usage is the time that this process has spent on cores.
func usage() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
