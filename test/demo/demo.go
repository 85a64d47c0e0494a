package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/test/e2e/kubeapi"
)

const namespace = "redis-demo"

// samples is where the manifests are, from the root of the repository, and the
// two that are shown.
const (
	samples   = "config/samples"
	inMemory  = "minimal.yaml"
	onVolumes = "storage.yaml"
)

// demo is the state that the steps hand on.
type demo struct {
	api    *kubeapi.API
	screen *screen
	// catalog is the image to install the operator from; empty if it is installed.
	catalog string

	memory  *v1alpha1.RedisCluster // in memory: serves the traffic
	volumes *v1alpha1.RedisCluster // on volumes
	pod     *corev1.Pod            // the client
	note    string                 // what was written to the one on volumes
}

// prepare makes an empty namespace that admits restricted pods only.
func (d *demo) prepare(ctx context.Context) error {
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := d.api.Delete(ctx, object); err == nil {
		d.screen.line("removing what an earlier run has left")
	}
	if err := d.api.AwaitGone(ctx, object); err != nil {
		return err
	}
	object.Labels = map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
	if err := d.api.Create(ctx, object); err != nil {
		return fmt.Errorf("create namespace %s: %w", namespace, err)
	}
	d.screen.line("namespace/%s created; it enforces the Pod Security Standard \"restricted\"", namespace)
	return nil
}

// create applies two samples and waits until both are Ready.
func (d *demo) create(ctx context.Context) error {
	for file, cluster := range map[string]**v1alpha1.RedisCluster{inMemory: &d.memory, onVolumes: &d.volumes} {
		read, err := sample(file)
		if err != nil {
			return err
		}
		*cluster = read
	}
	began := d.screen.clock.Now()
	for _, cluster := range []*v1alpha1.RedisCluster{d.memory, d.volumes} {
		if err := d.api.Create(ctx, cluster.DeepCopy()); err != nil {
			return fmt.Errorf("create RedisCluster %s: %w", cluster.Name, err)
		}
	}
	d.screen.command(fmt.Sprintf("kubectl -n %s apply -f %s/%s -f %s/%s", namespace, samples, inMemory, samples, onVolumes))
	d.screen.command(fmt.Sprintf("kubectl -n %s get redisclusters --watch -o wide", namespace))
	d.screen.line("%s", columns("NAME", "REPLICAS", "PHASE", "ACTIVE", "PRIMARY", "WAITING FOR"))
	type end struct {
		took time.Duration
		err  error
	}
	ends := map[string]chan end{}
	for _, cluster := range []*v1alpha1.RedisCluster{d.memory, d.volumes} {
		ended := make(chan end, 1)
		ends[cluster.Name] = ended
		go func() {
			err := d.awaitReady(ctx, cluster)
			ended <- end{d.screen.clock.Since(began), err}
		}()
	}
	memory, volumes := <-ends[d.memory.Name], <-ends[d.volumes.Name]
	if err := errors.Join(memory.err, volumes.err); err != nil {
		return err
	}
	d.screen.result(fmt.Sprintf("created → Ready: 1 primary + %d replicas in memory", d.memory.Spec.Replicas), "%s", seconds(memory.took))
	d.screen.result(fmt.Sprintf("created → Ready: 1 primary + %d replica on volumes, at the same time", d.volumes.Spec.Replicas), "%s", seconds(volumes.took))
	return nil
}

// sample reads the RedisCluster of a file in config/samples.
func sample(file string) (*v1alpha1.RedisCluster, error) {
	text, err := os.ReadFile(filepath.Join(samples, file))
	if err != nil {
		return nil, fmt.Errorf("read a sample: %w", err)
	}
	cluster := &v1alpha1.RedisCluster{}
	if err := yaml.UnmarshalStrict(text, cluster); err != nil {
		return nil, fmt.Errorf("read the sample %s: %w", file, err)
	}
	cluster.Namespace = namespace
	return cluster, nil
}

// awaitReady shows the lines of kubectl get --watch until the spec as it is now
// is in force.
func (d *demo) awaitReady(ctx context.Context, cluster *v1alpha1.RedisCluster) error {
	shown := ""
	return kubeapi.Await(ctx, d.api, cluster, func(now *v1alpha1.RedisCluster) (bool, error) {
		ready := meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionReady)
		reason := ""
		if ready != nil && ready.Status != metav1.ConditionTrue {
			reason = ready.Reason
		}
		line := columns(now.Name, now.Spec.Replicas, now.Status.Phase, now.Status.ActiveReplicas, now.Status.Primary, reason)
		if line != shown && now.Status.ObservedGeneration == now.Generation {
			d.screen.line("%s", line)
			shown = line
		}
		return kubeapi.IsReady(now), nil
	})
}

// scaleTo sets the number of replicas as kubectl scale does.
func (d *demo) scaleTo(ctx context.Context, replicas int32) error {
	d.screen.command(fmt.Sprintf("kubectl -n %s scale rediscluster/%s --replicas %d", namespace, d.memory.Name, replicas))
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	if err := d.api.SubResource("scale").Patch(ctx, d.memory.DeepCopy(), client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("scale to %d: %w", replicas, err)
	}
	return d.api.Get(ctx, client.ObjectKeyFromObject(d.memory), d.memory)
}

// scale changes the number of replicas while a client writes. These are planned
// moves: no acknowledged write may be lost, confirmed or not.
func (d *demo) scale(ctx context.Context) error {
	t, err := d.startTraffic(ctx)
	if err != nil {
		return err
	}
	for _, replicas := range []int32{4, 1} {
		before := d.memory.Spec.Replicas
		began := d.screen.clock.Now()
		if err := d.scaleTo(ctx, replicas); err != nil {
			return err
		}
		if err := d.awaitReady(ctx, d.memory); err != nil {
			return err
		}
		took := d.screen.clock.Since(began)
		gap, err := t.mark()
		if err != nil {
			return err
		}
		d.screen.result(fmt.Sprintf("scaled %d → %d replicas, in sync", before, replicas), "%s; longest pause of writes %s", seconds(took), seconds(gap))
	}
	report, err := t.finish()
	if err != nil {
		return err
	}
	d.showReport("scaling", report)
	return report.Err(true)
}

// crash kills the primary's Redis and shows what a client sees of it.
func (d *demo) crash(ctx context.Context) error {
	t, err := d.startTraffic(ctx)
	if err != nil {
		return err
	}
	if err := d.api.Get(ctx, client.ObjectKeyFromObject(d.memory), d.memory); err != nil {
		return fmt.Errorf("read RedisCluster %s: %w", d.memory.Name, err)
	}
	old := d.memory.Status.Primary
	primary := &corev1.Pod{}
	if err := d.api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: old}, primary); err != nil {
		return fmt.Errorf("read the pod of the primary: %w", err)
	}
	if _, err := t.mark(); err != nil {
		return err
	}
	began := d.screen.clock.Now()
	if err := d.kill(ctx, primary); err != nil {
		return err
	}
	if err := kubeapi.Await(ctx, d.api, d.memory, func(now *v1alpha1.RedisCluster) (bool, error) {
		return now.Status.Primary != "" && now.Status.Primary != old, nil
	}); err != nil {
		return err
	}
	if err := d.awaitReady(ctx, d.memory); err != nil {
		return err
	}
	took := d.screen.clock.Since(began)
	gap, err := t.mark()
	if err != nil {
		return err
	}
	report, err := t.finish()
	if err != nil {
		return err
	}
	d.screen.result("primary killed → writes accepted again", "%s, as a client sees it", seconds(gap))
	d.screen.result("primary killed → as before, all replicas in sync", "%s", seconds(took))
	d.showReport("the failover", report)
	return report.Err(false)
}

// kill ends the primary as a crash does where its process can be reached, and
// else by deleting its pod without grace.
func (d *demo) kill(ctx context.Context, pod *corev1.Pod) error {
	err := kubeapi.Kill(pod, "redis-server")
	if err == nil {
		d.screen.line("the redis-server of pod %s got a kill -9", pod.Name)
		return nil
	}
	if !errors.Is(err, kubeapi.ErrElsewhere) {
		return err
	}
	d.screen.command(fmt.Sprintf("kubectl -n %s delete pod %s --grace-period 0 --force", namespace, pod.Name))
	if err := d.api.Delete(ctx, pod, client.GracePeriodSeconds(0)); err != nil {
		return fmt.Errorf("delete the pod of the primary: %w", err)
	}
	return nil
}
