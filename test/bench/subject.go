package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/admin"
	"seang.org/operator/test/e2e/kubeapi"
	"seang.org/operator/test/e2e/oracle"
)

// redisProgram is the name of a member's process.
const redisProgram = "redis-server"

// recoveryTimeout bounds what follows one fault until the cluster is whole again.
const recoveryTimeout = 2 * time.Minute

// subject is a RedisCluster that something is done to again and again.
type subject struct {
	*suite
	key client.ObjectKey
	// service is how an application reaches the primary.
	service oracle.Target
	proxies *proxies
}

// newSubject makes a cluster and waits until it is Ready.
func (s *suite) newSubject(ctx context.Context, persistent bool) (*subject, error) {
	cluster, err := s.createReady(ctx, persistent)
	if err != nil {
		return nil, err
	}
	c := &subject{suite: s, key: client.ObjectKeyFromObject(cluster)}
	if c.service, err = oracle.ServiceTarget(ctx, s.api, c.key, naming.PrimaryService(c.key.Name)); err != nil {
		return nil, err
	}
	if c.proxies, err = watchProxies(ctx, s.api.Typed, s.clock); err != nil {
		return nil, err
	}
	return c, nil
}

// remove deletes the cluster.
func (c *subject) remove(ctx context.Context) error { return c.delete(ctx, c.reference()) }

func (c *subject) reference() *v1alpha1.RedisCluster {
	return &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: c.key.Namespace, Name: c.key.Name}}
}

// await waits until something holds of the cluster, and returns it then.
func (c *subject) await(ctx context.Context, what string, holds func(*v1alpha1.RedisCluster) bool) (*v1alpha1.RedisCluster, error) {
	return kubeapi.AwaitGoal(ctx, c.api, c.reference(), kubeapi.Goal[*v1alpha1.RedisCluster]{What: what, Within: recoveryTimeout, Done: holds,
		Show: func(now *v1alpha1.RedisCluster) string {
			return fmt.Sprintf("primary %q, in sync %v, record %+v, conditions %+v",
				now.Status.Primary, now.Status.InSyncReplicas, now.Status.Record, now.Status.Conditions)
		}})
}

// awaitWhole waits until the cluster is Ready with every replica in sync.
func (c *subject) awaitWhole(ctx context.Context) (*v1alpha1.RedisCluster, error) {
	return c.await(ctx, "whole", func(now *v1alpha1.RedisCluster) bool {
		return kubeapi.IsReady(now) && len(now.Status.InSyncReplicas) == replicas
	})
}

// awaitCalm waits until the cluster is whole and the proxies have rested.
func (c *subject) awaitCalm(ctx context.Context) (*v1alpha1.RedisCluster, error) {
	if _, err := c.awaitWhole(ctx); err != nil {
		return nil, err
	}
	if err := c.proxies.awaitRest(ctx); err != nil {
		return nil, err
	}
	return c.awaitWhole(ctx)
}

// awaitMoved waits until a promotion after that of the epoch is done, and the
// status speaks of it.
func (c *subject) awaitMoved(ctx context.Context, epoch int64) (*v1alpha1.RedisCluster, error) {
	return c.await(ctx, "led by another", func(now *v1alpha1.RedisCluster) bool {
		return now.Status.Record.Epoch > epoch && now.Status.Primary == now.Status.Record.Primary.Pod
	})
}

// pod reads a pod of the cluster.
func (c *subject) pod(ctx context.Context, name string) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	if err := c.api.Get(ctx, client.ObjectKey{Namespace: c.key.Namespace, Name: name}, pod); err != nil {
		return nil, fmt.Errorf("read pod %s: %w", name, err)
	}
	return pod, nil
}

// others are the pods of the members but for the named one.
func (c *subject) others(ctx context.Context, than string) ([]*corev1.Pod, error) {
	var pods []*corev1.Pod
	for _, name := range members(c.key.Name) {
		if name == than {
			continue
		}
		pod, err := c.pod(ctx, name)
		if err != nil {
			return nil, err
		}
		pods = append(pods, pod)
	}
	return pods, nil
}

// at logs in at one pod as an application does.
func (c *subject) at(pod *corev1.Pod) oracle.Target {
	target := c.service
	target.Address = admin.Address(pod.Status.PodIP, false)
	return target
}

// replace deletes a pod whose process was killed and waits until another took its
// place: the kubelet would keep the next crash of the same pod down for longer and
// longer.
func (c *subject) replace(ctx context.Context, pod *corev1.Pod) error {
	ctx, cancel := context.WithTimeoutCause(ctx, recoveryTimeout, fmt.Errorf("not gone within %s", recoveryTimeout))
	defer cancel()
	if err := c.api.Delete(ctx, pod, client.Preconditions{UID: &pod.UID}); err != nil {
		return fmt.Errorf("delete pod %s: %w", pod.Name, err)
	}
	if err := c.api.AwaitGone(ctx, pod); err != nil {
		return err
	}
	fresh := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	return kubeapi.Await(ctx, c.api, fresh, func(p *corev1.Pod) (bool, error) {
		return p.UID != pod.UID && isPodReady(p), nil
	})
}

func isPodReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
	})
}

// fullSyncs adds up how often the living processes sent all of their data.
func (c *subject) fullSyncs(ctx context.Context) (int, error) {
	pods, err := c.others(ctx, "")
	if err != nil {
		return 0, err
	}
	total := 0
	for _, pod := range pods {
		_, n, err := c.syncsOf(ctx, pod)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// write starts writers through the Service of the primary, and returns once they write.
func (c *subject) write(ctx context.Context, options oracle.Options) (*oracle.Oracle, error) {
	o := oracle.Start(ctx, c.service, options)
	return o, awaitWrites(ctx, o)
}

// awaitWrites waits until a few writes more were acknowledged.
func awaitWrites(ctx context.Context, o *oracle.Oracle) error {
	ctx, cancel := context.WithTimeoutCause(ctx, recoveryTimeout, fmt.Errorf("no writes within %s", recoveryTimeout))
	defer cancel()
	return o.Await(ctx, 20)
}

// verify ends the writers and prints what became of their writes. What must not be
// lost in a planned move, or an unplanned one, is an error.
func (c *subject) verify(ctx context.Context, o *oracle.Oracle, planned bool) (oracle.Report, error) {
	if err := awaitWrites(ctx, o); err != nil {
		return oracle.Report{}, err
	}
	report, err := o.Verify(ctx)
	if err != nil {
		return report, err
	}
	c.say("writes: %+v", report)
	return report, report.Err(planned)
}

// promotion waits for the first of the pods that says, asked each millisecond on a
// connection of its own, that it is the primary.
type promotion struct {
	connections []*oracle.Connection
	found       chan time.Time
	stop        context.CancelFunc
}

// connectTo prepares to watch the pods.
func (c *subject) connectTo(ctx context.Context, pods []*corev1.Pod) (*promotion, error) {
	p := &promotion{found: make(chan time.Time, len(pods)), stop: func() {}}
	for _, pod := range pods {
		connection, err := oracle.Dial(ctx, c.at(pod))
		if err != nil {
			p.close()
			return nil, err
		}
		p.connections = append(p.connections, connection)
	}
	return p, nil
}

// watch begins to ask.
func (p *promotion) watch(ctx context.Context, s *suite) {
	ctx, p.stop = context.WithCancel(ctx)
	for _, connection := range p.connections {
		go func() {
			ticker := s.clock.NewTicker(time.Millisecond)
			defer ticker.Stop()
			for ctx.Err() == nil {
				if role, err := connection.Do(ctx, "ROLE"); err == nil && strings.HasPrefix(role, "master") {
					p.found <- s.clock.Now()
					return
				}
				select {
				case <-ticker.C():
				case <-ctx.Done():
				}
			}
		}()
	}
}

// await returns when one was first seen as the primary.
func (p *promotion) await(ctx context.Context) (time.Time, error) {
	select {
	case at := <-p.found:
		return at, nil
	case <-ctx.Done():
		return time.Time{}, fmt.Errorf("wait for a promotion: %w", errors.Join(ctx.Err(), context.Cause(ctx)))
	}
}

func (p *promotion) close() {
	p.stop()
	for _, connection := range p.connections {
		connection.Close()
	}
}
