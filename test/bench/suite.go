package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/test/e2e/audit"
	"seang.org/operator/test/e2e/kubeapi"
)

const (
	// replicas of each cluster, so that it is one of 1 + 2 members.
	replicas = 2
	// readyTimeout bounds one create on a busy machine.
	readyTimeout = 3 * time.Minute
	// removeTimeout bounds the removal of all that was made.
	removeTimeout = 5 * time.Minute
	// quiet is how long the operator wrote nothing once it counts as idle.
	quiet = 2 * time.Second
)

// suite is what the benchmarks share.
type suite struct {
	out   io.Writer
	clock clock.WithTicker
	// profile is the file for a CPU profile; empty for none.
	profile string
	// version is that of the working tree.
	version string

	// Of the Kubernetes that most benchmarks need.
	api       *kubeapi.API
	log       audit.Log
	namespace string
	// made counts the clusters, for their names.
	made int
	// warm says that the images are on all nodes.
	warm bool
	// fleet are the clusters that run while the operator is idle.
	fleet []*v1alpha1.RedisCluster
}

// connect finds the Kubernetes and makes a namespace there.
func (s *suite) connect(ctx context.Context) error {
	path := os.Getenv("AUDIT_LOG")
	if path == "" {
		return errors.New("AUDIT_LOG must name the audit log of the API server, which times and writes are read from: make bench sets it")
	}
	api, err := kubeapi.Connect()
	if err != nil {
		return err
	}
	namespace, err := api.CreateNamespace(ctx, "bench-")
	if err != nil {
		return err
	}
	s.api, s.log, s.namespace = api, audit.Log(path), namespace.Name
	return nil
}

// remove deletes all that was made, also after an interruption.
func (s *suite) remove(ctx context.Context) error {
	if s.namespace == "" {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), removeTimeout, fmt.Errorf("not gone within %s", removeTimeout))
	defer cancel()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	if err := s.api.Delete(ctx, namespace); err != nil {
		return fmt.Errorf("delete namespace %s: %w", s.namespace, err)
	}
	return s.api.AwaitGone(ctx, namespace)
}

// say prints one thing that was measured.
func (s *suite) say(format string, values ...any) {
	fmt.Fprintf(s.out, "  "+format+"\n", values...)
}

// create makes a small cluster, on volumes or in memory, and does not wait.
func (s *suite) create(ctx context.Context, persistent bool) (*v1alpha1.RedisCluster, error) {
	s.made++
	cluster := &v1alpha1.RedisCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: fmt.Sprintf("bench-%d", s.made)},
		Spec: v1alpha1.RedisClusterSpec{Replicas: replicas, MemoryLimit: resource.MustParse("64Mi"), EnablePersistence: &persistent,
			// Little, so that all clusters of a fleet are scheduled.
			Resources: &v1alpha1.ResourcesSpec{CPU: &v1alpha1.CPUSpec{Request: new(resource.MustParse("10m"))}}},
	}
	if persistent {
		cluster.Spec.Storage = &v1alpha1.StorageSpec{Size: new(resource.MustParse("256Mi"))}
	}
	if err := s.api.Create(ctx, cluster); err != nil {
		return nil, fmt.Errorf("create RedisCluster %s: %w", cluster.Name, err)
	}
	return cluster, nil
}

// createReady makes a cluster and waits until it is Ready.
func (s *suite) createReady(ctx context.Context, persistent bool) (*v1alpha1.RedisCluster, error) {
	cluster, err := s.create(ctx, persistent)
	if err != nil {
		return nil, err
	}
	return cluster, s.awaitReady(ctx, cluster)
}

// createSettled makes a cluster, waits until it is Ready and the operator idle
// again, and returns also what the operator wrote for it.
func (s *suite) createSettled(ctx context.Context, persistent bool) (*v1alpha1.RedisCluster, []audit.Request, error) {
	from, err := s.log.End()
	if err != nil {
		return nil, nil, err
	}
	cluster, err := s.createReady(ctx, persistent)
	if err != nil {
		return nil, nil, err
	}
	writes, err := s.settle(ctx, from)
	return cluster, writes, err
}

// awaitReady waits until the current spec is in force.
func (s *suite) awaitReady(ctx context.Context, cluster *v1alpha1.RedisCluster) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("not Ready within %s", readyTimeout))
	defer cancel()
	reference := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name}}
	return kubeapi.Await(ctx, s.api, reference, func(now *v1alpha1.RedisCluster) (bool, error) {
		return now.Generation >= cluster.Generation && kubeapi.IsReady(now), nil
	})
}

// delete removes a cluster and waits until its pods are gone too, as they would
// disturb what is measured next.
func (s *suite) delete(ctx context.Context, cluster *v1alpha1.RedisCluster) error {
	return s.deleteWithPods(ctx, cluster, naming.Selector(cluster.Name))
}

func (s *suite) deleteWithPods(ctx context.Context, object client.Object, selector map[string]string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, removeTimeout, fmt.Errorf("not gone within %s", removeTimeout))
	defer cancel()
	pods := &corev1.PodList{}
	if err := s.api.List(ctx, pods, client.InNamespace(s.namespace), client.MatchingLabels(selector)); err != nil {
		return fmt.Errorf("list the pods of %s: %w", object.GetName(), err)
	}
	if err := s.api.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		return fmt.Errorf("delete %T %s: %w", object, object.GetName(), err)
	}
	if err := s.api.AwaitGone(ctx, object); err != nil {
		return err
	}
	for i := range pods.Items {
		if err := s.api.AwaitGone(ctx, &pods.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// warmUp makes one cluster that is not measured: it brings the image to as many
// nodes as there are members.
func (s *suite) warmUp(ctx context.Context) error {
	if s.warm {
		return nil
	}
	cluster, err := s.createReady(ctx, false)
	if err != nil {
		return fmt.Errorf("warm up: %w", err)
	}
	s.warm = true
	return s.delete(ctx, cluster)
}

// requests are those about objects of the suite's namespace since a position of
// the audit log.
func (s *suite) requests(from audit.Position) ([]audit.Request, error) {
	all, err := s.log.Since(from)
	if err != nil {
		return nil, err
	}
	var here []audit.Request
	for _, r := range all {
		if r.Namespace == s.namespace {
			here = append(here, r)
		}
	}
	return here, nil
}

// settle waits until the operator is idle, and returns what it wrote since a
// position but for Events.
func (s *suite) settle(ctx context.Context, from audit.Position) ([]audit.Request, error) {
	var writes []audit.Request
	err := s.awaitQuiet(ctx, func() (int, error) {
		requests, err := s.requests(from)
		if err != nil {
			return 0, err
		}
		var events []audit.Request
		writes, events = audit.Writes(requests, kubeapi.OperatorUser)
		return len(writes) + len(events), nil
	})
	return writes, err
}

// awaitQuiet waits until what is counted has not grown for a while. That is no
// event: it is polled.
func (s *suite) awaitQuiet(ctx context.Context, count func() (int, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("the operator did not cease to write within %s", readyTimeout))
	defer cancel()
	last, since := -1, s.clock.Now()
	err := wait.PollUntilContextCancel(ctx, quiet/10, true, func(context.Context) (bool, error) {
		now, err := count()
		if err != nil {
			return false, err
		}
		if now != last {
			last, since = now, s.clock.Now()
		}
		return s.clock.Since(since) >= quiet, nil
	})
	if err != nil {
		return fmt.Errorf("wait until the operator is idle: %w", errors.Join(err, context.Cause(ctx)))
	}
	return nil
}
