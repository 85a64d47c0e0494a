package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/conf"
	"seang.org/operator/internal/testkit/apiserver"
	"seang.org/operator/internal/testkit/fakeredis"
	"seang.org/operator/internal/testkit/nodes"
	"seang.org/operator/test/e2e/kubeapi"
)

const (
	crowdNamespace = metav1.NamespaceDefault
	// crowdWriters write at the same time while a crowd is made.
	crowdWriters = 8
	// crowdInterval is how often it is looked whether all are Ready.
	crowdInterval = time.Second
	// crowdTimeout bounds the making of a crowd.
	crowdTimeout = 15 * time.Minute
)

// crowd is many clusters on an API server without nodes. It plays the
// StatefulSet controller and the kubelets, with fake Redis in the pods.
type crowd struct {
	server   *apiserver.Server
	fakes    *fakeredis.Fleet
	clusters []*v1alpha1.RedisCluster
}

func newCrowd(server *apiserver.Server) *crowd {
	return &crowd{server: server, fakes: fakeredis.NewFleet()}
}

func (c *crowd) remove() error { return c.fakes.Close() }

// raise makes n clusters and waits until all are Ready.
func (c *crowd) raise(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, crowdTimeout, fmt.Errorf("%d clusters not Ready within %s", n, crowdTimeout))
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.create(ctx, n) })
	group.Go(func() error { return c.runPods(ctx, n) })
	group.Go(func() error { return c.awaitReady(ctx, n) })
	return group.Wait()
}

func (c *crowd) create(ctx context.Context, n int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(crowdWriters)
	for i := range n {
		cluster := &v1alpha1.RedisCluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: crowdNamespace, Name: fmt.Sprintf("crowd-%d", i+1)},
			Spec: v1alpha1.RedisClusterSpec{Replicas: replicas, MemoryLimit: resource.MustParse("64Mi"),
				EnablePersistence: new(false)},
		}
		c.clusters = append(c.clusters, cluster)
		group.Go(func() error {
			if err := c.server.Client.Create(ctx, cluster); err != nil {
				return fmt.Errorf("create RedisCluster %s: %w", cluster.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// runPods makes and runs the pods of n StatefulSets as they appear.
func (c *crowd) runPods(ctx context.Context, n int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(crowdWriters)
	seen := map[string]bool{}
	sets := &appsv1.StatefulSetList{}
	group.Go(func() error {
		return c.poll(ctx, sets, func() bool {
			for i := range sets.Items {
				if set := sets.Items[i].DeepCopy(); !seen[set.Name] {
					seen[set.Name] = true
					group.Go(func() error { return c.runPodsOf(ctx, set) })
				}
			}
			return len(seen) == n
		})
	})
	return group.Wait()
}

func (c *crowd) runPodsOf(ctx context.Context, set *appsv1.StatefulSet) error {
	system := &corev1.Secret{}
	key := client.ObjectKey{Namespace: set.Namespace, Name: naming.SystemSecret(set.Name)}
	if err := c.server.Client.Get(ctx, key, system); err != nil {
		return fmt.Errorf("read the Secret that the pods of %s mount: %w", set.Name, err)
	}
	for ordinal := range int(ptr.Deref(set.Spec.Replicas, 1)) {
		pod := nodes.Pod(set, naming.Pod(set.Name, ordinal))
		if err := c.server.Client.Create(ctx, pod); err != nil {
			return fmt.Errorf("create pod %s: %w", pod.Name, err)
		}
		limit := pod.Spec.Containers[0].Resources.Limits.Memory().Value()
		ip, err := c.fakes.Boot(string(system.Data[naming.KeyACL]), conf.MaxMemory(limit, false))
		if err != nil {
			return err
		}
		pod.Status = nodes.Running(pod, ip)
		if err := c.server.Client.Status().Update(ctx, pod); err != nil {
			return fmt.Errorf("run pod %s: %w", pod.Name, err)
		}
	}
	return nil
}

// awaitReady waits until n clusters are Ready.
func (c *crowd) awaitReady(ctx context.Context, n int) error {
	clusters := &v1alpha1.RedisClusterList{}
	return c.poll(ctx, clusters, func() bool {
		ready := 0
		for i := range clusters.Items {
			if cluster := &clusters.Items[i]; kubeapi.IsReady(cluster) {
				ready++
			}
		}
		return ready == n
	})
}

// poll lists objects until what is wanted of them holds. A watch would have to be
// taken up again: the API server ends those of a kind that it has only just learnt.
func (c *crowd) poll(ctx context.Context, list client.ObjectList, holds func() bool) error {
	err := wait.PollUntilContextCancel(ctx, crowdInterval, true, func(ctx context.Context) (bool, error) {
		if err := c.server.Client.List(ctx, list, client.InNamespace(crowdNamespace)); err != nil {
			return false, fmt.Errorf("list %T: %w", list, err)
		}
		return holds(), nil
	})
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}
