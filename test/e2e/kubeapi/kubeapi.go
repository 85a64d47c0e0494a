// Package kubeapi is what the programs that try the operator on a real
// Kubernetes need of its API: to wait for objects by watching them, to run
// commands in pods, and to crash containers.
package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"seang.org/operator/api/v1alpha1"
)

// API is a connection to an API server. It reads and writes live objects of
// Kubernetes' own kinds and of ours.
type API struct {
	client.WithWatch
	Typed  kubernetes.Interface
	Config *rest.Config
}

// Connect uses the kubeconfig that kubectl would use.
func Connect() (*API, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find a Kubernetes by KUBECONFIG: %w", err)
	}
	config.QPS, config.Burst = 100, 200
	scheme := runtime.NewScheme()
	if err := errors.Join(clientscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("register the kinds: %w", err)
	}
	watching, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	return &API{WithWatch: watching, Typed: typed, Config: config}, nil
}

// Await watches the object with the name of the given one until done is true or
// fails. Done sees each version, the current one first; none while the object
// does not exist.
func Await[T client.Object](ctx context.Context, a *API, object T, done func(T) (bool, error)) error {
	source, err := a.watcher(object)
	if err != nil {
		return err
	}
	_, err = watchtools.UntilWithSync(ctx, source, object, nil, func(event watch.Event) (bool, error) {
		found, ok := event.Object.(T)
		if !ok || event.Type == watch.Deleted {
			return false, nil
		}
		return done(found)
	})
	return explain(ctx, object, err)
}

// Goal is what an object is to become, and how soon.
type Goal[T client.Object] struct {
	What   string
	Within time.Duration
	Done   func(T) bool
	// Show says of an object what a person wants to know who waited in vain.
	Show func(T) string
}

// AwaitGoal is Await with a bound. It returns what was last seen of the object, and its
// error says what was waited for and shows that.
func AwaitGoal[T client.Object](ctx context.Context, a *API, object T, goal Goal[T]) (last T, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, goal.Within, fmt.Errorf("not %s within %s", goal.What, goal.Within))
	defer cancel()
	seen := "it was never seen"
	err = Await(ctx, a, object, func(now T) (bool, error) {
		last, seen = now, goal.Show(now)
		return goal.Done(now), nil
	})
	if err != nil {
		return last, fmt.Errorf("%w\n%s", err, seen)
	}
	return last, nil
}

// AwaitGone watches the object until it does not exist, or another of the same
// name took its place.
func (a *API) AwaitGone(ctx context.Context, object client.Object) error {
	source, err := a.watcher(object)
	if err != nil {
		return err
	}
	gone := func(found client.Object) bool {
		return object.GetUID() != "" && found.GetUID() != object.GetUID()
	}
	_, err = watchtools.UntilWithSync(ctx, source, object, func(store cache.Store) (bool, error) {
		for _, item := range store.List() {
			if found, ok := item.(client.Object); ok && !gone(found) {
				return false, nil
			}
		}
		return true, nil
	}, func(event watch.Event) (bool, error) {
		found, ok := event.Object.(client.Object)
		return ok && (event.Type == watch.Deleted || gone(found)), nil
	})
	return explain(ctx, object, err)
}

// IsReady says that the spec as it is in this copy of the RedisCluster is in force.
func IsReady(cluster *v1alpha1.RedisCluster) bool {
	ready := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == cluster.Generation
}

func explain(ctx context.Context, object client.Object, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("wait for %T %s: %w", object, client.ObjectKeyFromObject(object), errors.Join(err, context.Cause(ctx)))
}

// watcher lists and watches one object.
func (a *API) watcher(object client.Object) (cache.ListerWatcher, error) {
	gvk, err := apiutil.GVKForObject(object, a.Scheme())
	if err != nil {
		return nil, fmt.Errorf("kind of %T: %w", object, err)
	}
	newList := func() (client.ObjectList, error) {
		made, err := a.Scheme().New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err != nil {
			return nil, fmt.Errorf("make a list of %s: %w", gvk.Kind, err)
		}
		list, ok := made.(client.ObjectList)
		if !ok {
			return nil, fmt.Errorf("%T is no list", made)
		}
		return list, nil
	}
	options := func(raw metav1.ListOptions) *client.ListOptions {
		return &client.ListOptions{Namespace: object.GetNamespace(), Raw: &raw,
			FieldSelector: fields.OneTermEqualSelector("metadata.name", object.GetName())}
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, raw metav1.ListOptions) (runtime.Object, error) {
			list, err := newList()
			if err != nil {
				return nil, err
			}
			return list, a.List(ctx, list, options(raw))
		},
		WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
			list, err := newList()
			if err != nil {
				return nil, err
			}
			return a.Watch(ctx, list, options(raw))
		},
	}, nil
}
