package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/test/e2e/oracle"
)

// The examples that the tests start from, by their names in alm-examples.
const (
	inMemory  = "cache"
	onVolumes = "storage" // with reclaimPolicy Retain
)

// settled is how many writes are accepted before and after the primary is killed.
const settled = 20

func exampleGetsReady(ctx context.Context, s *suite) error {
	return s.withReady(ctx, func(*v1alpha1.RedisCluster) error { return nil })
}

func statusIsComplete(ctx context.Context, s *suite) error {
	return s.withReady(ctx, judgeStatus)
}

// withReady runs a test on the example in memory once it is Ready, and removes it.
func (s *suite) withReady(ctx context.Context, test func(*v1alpha1.RedisCluster) error) error {
	cluster, err := s.example(ctx, inMemory)
	if err != nil {
		return err
	}
	err = s.awaitReady(ctx, cluster)
	if err == nil {
		err = test(cluster)
	}
	return errors.Join(err, s.remove(ctx, cluster))
}

// killedPrimaryIsReplaced deletes the primary's pod without grace under a writing
// client: another takes over, no confirmed write is lost, and all replicas come back.
func killedPrimaryIsReplaced(ctx context.Context, s *suite) error {
	return s.withReady(ctx, func(cluster *v1alpha1.RedisCluster) error {
		target, err := oracle.ServiceTarget(ctx, s.api, client.ObjectKeyFromObject(cluster), naming.PrimaryService(cluster.Name))
		if err != nil {
			return err
		}
		o := oracle.Start(ctx, target, oracle.Options{Name: "scorecard", Confirming: 1})
		if err := o.Await(ctx, settled); err != nil {
			return err
		}
		old := cluster.Status.Primary
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: old}}
		if err := s.api.Delete(ctx, pod, client.GracePeriodSeconds(0)); err != nil {
			return fmt.Errorf("kill the primary %s: %w", old, err)
		}
		if err := s.await(ctx, cluster, "another primary than "+old, func(now *v1alpha1.RedisCluster) bool {
			return now.Status.Primary != "" && now.Status.Primary != old
		}); err != nil {
			return err
		}
		if err := errors.Join(o.Await(ctx, settled), s.awaitReady(ctx, cluster)); err != nil {
			return err
		}
		report, err := o.Verify(ctx)
		if err != nil {
			return err
		}
		return report.Err(false)
	})
}

// specFieldsHaveEffect changes fields of each kind on a running cluster: what is
// resized live, set live, rolled, scaled, and given to a Service.
func specFieldsHaveEffect(ctx context.Context, s *suite) error {
	return s.withReady(ctx, func(cluster *v1alpha1.RedisCluster) error {
		request := resource.MustParse("150m")
		err := s.change(ctx, cluster, func(spec *v1alpha1.RedisClusterSpec) {
			spec.Replicas = 1
			spec.MemoryLimit = resource.MustParse("320Mi")
			spec.Config = map[string]v1alpha1.ConfigValue{"maxmemory-policy": "allkeys-lfu"}
			spec.Resources = &v1alpha1.ResourcesSpec{CPU: &v1alpha1.CPUSpec{Request: &request}}
			spec.PodMetadata = &v1alpha1.PodMetadata{Labels: map[string]string{"scorecard": "changed"}}
			spec.Service = &v1alpha1.ServicesSpec{Primary: &v1alpha1.ServiceSpec{Annotations: map[string]string{"scorecard": "changed"}}}
		})
		if err != nil {
			return err
		}
		if err := s.awaitReady(ctx, cluster); err != nil {
			return err
		}
		seen, err := s.observe(ctx, cluster)
		if err != nil {
			return err
		}
		return judgeEffects(&cluster.Spec, seen)
	})
}

// observe reads what a spec is to have an effect on.
func (s *suite) observe(ctx context.Context, cluster *v1alpha1.RedisCluster) (effects, error) {
	var seen effects
	pods := &corev1.PodList{}
	if err := s.api.List(ctx, pods, client.InNamespace(s.namespace), client.MatchingLabels(naming.Selector(cluster.Name))); err != nil {
		return seen, fmt.Errorf("list the pods of %s: %w", cluster.Name, err)
	}
	seen.pods = pods.Items
	name := naming.PrimaryService(cluster.Name)
	if err := s.api.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, &seen.service); err != nil {
		return seen, fmt.Errorf("read Service %s: %w", name, err)
	}
	target, err := oracle.ServiceTarget(ctx, s.api, client.ObjectKeyFromObject(cluster), name)
	if err != nil {
		return seen, err
	}
	text, err := oracle.Do(ctx, target, "INFO")
	if err != nil {
		return seen, fmt.Errorf("ask the primary of %s: %w", cluster.Name, err)
	}
	seen.info = map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			seen.info[key] = value
		}
	}
	return seen, nil
}

// nothingLeftAfterDeletion deletes a cluster on volumes twice: with Retain the volumes
// stay, and one of the same name adopts them; with Delete nothing stays.
func nothingLeftAfterDeletion(ctx context.Context, s *suite) (err error) {
	cluster, err := s.example(ctx, onVolumes)
	if err != nil {
		return err
	}
	again := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: cluster.Name}, Spec: *cluster.Spec.DeepCopy()}
	defer func() { err = errors.Join(err, s.remove(ctx, again)) }()
	if err := s.deletedAfterReady(ctx, cluster); err != nil {
		return err
	}
	again.Spec.Storage.ReclaimPolicy = v1alpha1.ReclaimDelete
	if err := s.api.Create(ctx, again); err != nil {
		return fmt.Errorf("create %s again: %w", again.Name, err)
	}
	return s.deletedAfterReady(ctx, again)
}

func (s *suite) deletedAfterReady(ctx context.Context, cluster *v1alpha1.RedisCluster) error {
	if err := s.awaitReady(ctx, cluster); err != nil {
		return err
	}
	if err := s.deleteWhole(ctx, cluster); err != nil {
		return err
	}
	left, err := s.children(ctx, cluster)
	if err != nil {
		return err
	}
	return judgeLeftovers(&cluster.Spec, left)
}
