package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/operator-framework/api/pkg/manifests"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/test/e2e/kubeapi"
)

// cleanupTimeout bounds the removal of what a test has made.
const cleanupTimeout = 30 * time.Second

// suite is what the tests have in common.
type suite struct {
	api       *kubeapi.API
	namespace string
	// bundle is the directory with the bundle.
	bundle string
	// afterReady, if set, is called once an example got Ready: tests of the tests break
	// the operator there.
	afterReady func(context.Context) error
}

// example makes the RedisCluster of a name from the bundle's alm-examples, under a name
// that nothing else has.
func (s *suite) example(ctx context.Context, name string) (*v1alpha1.RedisCluster, error) {
	cluster, err := s.read(name)
	if err != nil {
		return nil, err
	}
	cluster.Namespace, cluster.Name, cluster.GenerateName = s.namespace, "", name+"-"
	if err := s.api.Create(ctx, cluster); err != nil {
		return nil, fmt.Errorf("create the example %s: %w", name, err)
	}
	return cluster, nil
}

func (s *suite) read(name string) (*v1alpha1.RedisCluster, error) {
	bundle, err := manifests.GetBundleFromDir(filepath.Join(s.bundle, "manifests"))
	if err != nil {
		return nil, fmt.Errorf("read the bundle: %w", err)
	}
	var examples []*v1alpha1.RedisCluster
	if err := json.Unmarshal([]byte(bundle.CSV.Annotations["alm-examples"]), &examples); err != nil {
		return nil, fmt.Errorf("read the bundle's alm-examples: %w", err)
	}
	for _, example := range examples {
		if example.Name == name {
			return example, nil
		}
	}
	return nil, fmt.Errorf("alm-examples has no RedisCluster %s", name)
}

// awaitReady waits until the spec as it is now is in force.
func (s *suite) awaitReady(ctx context.Context, cluster *v1alpha1.RedisCluster) error {
	wanted := cluster.Generation
	err := s.await(ctx, cluster, "Ready", func(now *v1alpha1.RedisCluster) bool {
		ready := meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionReady)
		return ready != nil && ready.Status == "True" && ready.ObservedGeneration >= wanted
	})
	if err != nil || s.afterReady == nil {
		return err
	}
	return s.afterReady(ctx)
}

// await waits for a cluster, and says in vain what it last looked like.
func (s *suite) await(ctx context.Context, cluster *v1alpha1.RedisCluster, what string, done func(*v1alpha1.RedisCluster) bool) error {
	var last v1alpha1.RedisClusterStatus
	err := kubeapi.Await(ctx, s.api, cluster, func(now *v1alpha1.RedisCluster) (bool, error) {
		last = now.Status
		if !done(now) {
			return false, nil
		}
		now.DeepCopyInto(cluster)
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("%s does not get %s: phase %q, conditions %s: %w", cluster.Name, what, last.Phase, describe(last.Conditions), err)
	}
	return nil
}

// change edits the spec.
func (s *suite) change(ctx context.Context, cluster *v1alpha1.RedisCluster, edit func(*v1alpha1.RedisClusterSpec)) error {
	before := cluster.DeepCopy()
	edit(&cluster.Spec)
	if err := s.api.Patch(ctx, cluster, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("change the spec of %s: %w", cluster.Name, err)
	}
	return nil
}

// remove ends a test: what is left of a cluster goes, also where the operator does
// not answer.
func (s *suite) remove(ctx context.Context, cluster *v1alpha1.RedisCluster) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	if err := s.api.Delete(ctx, cluster); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove %s: %w", cluster.Name, err)
	}
	return nil
}

// children lists the objects of a cluster, volumes included.
func (s *suite) children(ctx context.Context, cluster *v1alpha1.RedisCluster) ([]client.Object, error) {
	var found []client.Object
	for _, list := range []client.ObjectList{
		&appsv1.StatefulSetList{}, &corev1.PodList{}, &corev1.ServiceList{}, &corev1.ConfigMapList{},
		&corev1.SecretList{}, &policyv1.PodDisruptionBudgetList{}, &corev1.PersistentVolumeClaimList{},
	} {
		err := s.api.List(ctx, list, client.InNamespace(s.namespace), client.MatchingLabels(naming.Selector(cluster.Name)))
		if err == nil {
			err = meta.EachListItem(list, func(item runtime.Object) error {
				object, ok := item.(client.Object)
				if !ok {
					return fmt.Errorf("%T is no object", item)
				}
				found = append(found, object)
				return nil
			})
		}
		if err != nil {
			return nil, fmt.Errorf("list the objects of %s: %w", cluster.Name, err)
		}
	}
	return found, nil
}

// deleteWhole deletes a cluster and waits until it and its children are gone; volumes
// that are not being deleted may stay.
func (s *suite) deleteWhole(ctx context.Context, cluster *v1alpha1.RedisCluster) error {
	if err := s.api.Delete(ctx, cluster.DeepCopy()); err != nil {
		return fmt.Errorf("delete %s: %w", cluster.Name, err)
	}
	if err := s.api.AwaitGone(ctx, cluster); err != nil {
		return err
	}
	children, err := s.children(ctx, cluster)
	if err != nil {
		return err
	}
	var errs []error
	for _, child := range children {
		if _, volume := child.(*corev1.PersistentVolumeClaim); !volume || child.GetDeletionTimestamp() != nil {
			errs = append(errs, s.api.AwaitGone(ctx, child))
		}
	}
	return errors.Join(errs...)
}
