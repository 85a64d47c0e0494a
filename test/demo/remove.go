package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
)

// recreate deletes the RedisCluster whose volumes are retained and creates it
// again: its data is there.
func (d *demo) recreate(ctx context.Context) error {
	if err := d.delete(ctx, d.volumes); err != nil {
		return err
	}
	left, err := d.left(ctx, d.volumes)
	if err != nil {
		return err
	}
	d.screen.line("left over: %s", strings.Join(left, ", "))
	again, err := sample(onVolumes)
	if err != nil {
		return err
	}
	began := d.screen.clock.Now()
	if err := d.api.Create(ctx, again); err != nil {
		return fmt.Errorf("create RedisCluster %s again: %w", again.Name, err)
	}
	d.screen.command(fmt.Sprintf("kubectl -n %s apply -f %s/%s", namespace, samples, onVolumes))
	if err := d.awaitReady(ctx, again); err != nil {
		return err
	}
	d.screen.result("deleted with Retain and created again → Ready", "%s, with its data", seconds(d.screen.clock.Since(began)))
	return d.redis(ctx, again, naming.PrimaryService, d.note, "GET", "note")
}

// remove deletes both, this time with their volumes, and looks for leftovers.
func (d *demo) remove(ctx context.Context) error {
	began := d.screen.clock.Now()
	if err := d.api.Get(ctx, client.ObjectKeyFromObject(d.volumes), d.volumes); err != nil {
		return fmt.Errorf("read RedisCluster %s: %w", d.volumes.Name, err)
	}
	change := d.volumes.DeepCopy()
	change.Spec.Storage.ReclaimPolicy = v1alpha1.ReclaimDelete
	if err := d.api.Patch(ctx, change, client.MergeFrom(d.volumes)); err != nil {
		return fmt.Errorf("let the volumes of %s be deleted: %w", change.Name, err)
	}
	d.screen.command(fmt.Sprintf(`kubectl -n %s patch rediscluster %s --type merge -p '{"spec":{"storage":{"reclaimPolicy":"Delete"}}}'`, namespace, change.Name))
	for _, cluster := range []*v1alpha1.RedisCluster{d.memory, change} {
		if err := d.delete(ctx, cluster); err != nil {
			return err
		}
		left, err := d.left(ctx, cluster)
		if err != nil {
			return err
		}
		if len(left) > 0 {
			return fmt.Errorf("left over of %s: %s", cluster.Name, strings.Join(left, ", "))
		}
		d.screen.line("nothing is left of %s", cluster.Name)
	}
	d.screen.result("both deleted", "%s, nothing is left", seconds(d.screen.clock.Since(began)))
	if err := d.api.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return fmt.Errorf("delete namespace %s: %w", namespace, err)
	}
	return nil
}

func (d *demo) delete(ctx context.Context, cluster *v1alpha1.RedisCluster) error {
	d.screen.command(fmt.Sprintf("kubectl -n %s delete rediscluster %s", namespace, cluster.Name))
	if err := d.api.Delete(ctx, cluster.DeepCopy()); err != nil {
		return fmt.Errorf("delete RedisCluster %s: %w", cluster.Name, err)
	}
	if err := d.api.AwaitGone(ctx, cluster); err != nil {
		return err
	}
	// The garbage collector removes the other children; each is awaited.
	var errs []error
	err := d.children(ctx, cluster, func(child client.Object) {
		if _, volume := child.(*corev1.PersistentVolumeClaim); !volume || child.GetDeletionTimestamp() != nil {
			errs = append(errs, d.api.AwaitGone(ctx, child))
		}
	})
	return errors.Join(append(errs, err)...)
}

// left names the children that exist.
func (d *demo) left(ctx context.Context, cluster *v1alpha1.RedisCluster) ([]string, error) {
	var names []string
	err := d.children(ctx, cluster, func(child client.Object) {
		kind := fmt.Sprintf("%T", child)
		names = append(names, strings.ToLower(kind[strings.LastIndexByte(kind, '.')+1:])+"/"+child.GetName())
	})
	return names, err
}

func (d *demo) children(ctx context.Context, cluster *v1alpha1.RedisCluster, visit func(client.Object)) error {
	for _, list := range []client.ObjectList{
		&appsv1.StatefulSetList{}, &corev1.PodList{}, &corev1.ServiceList{}, &corev1.ConfigMapList{},
		&corev1.SecretList{}, &policyv1.PodDisruptionBudgetList{}, &networkingv1.NetworkPolicyList{}, &corev1.PersistentVolumeClaimList{},
	} {
		if err := d.api.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels(naming.Selector(cluster.Name))); err != nil {
			return fmt.Errorf("look for leftovers of %s: %w", cluster.Name, err)
		}
		if err := meta.EachListItem(list, func(item runtime.Object) error {
			visit(item.(client.Object)) //nolint:forcetypeassert // Items of such lists are.
			return nil
		}); err != nil {
			return fmt.Errorf("look for leftovers of %s: %w", cluster.Name, err)
		}
	}
	return nil
}
