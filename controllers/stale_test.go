package controllers_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"reflect"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/testkit/apiserver"
)

// TestAStaleCacheDestroysNothing shows the operator older copies of pods, the
// StatefulSet and the RedisCluster, for a while each, and newer ones in between: events
// that come late, not at all, or again. What was acknowledged stays, nothing is deleted
// that need not be, and the end is that of a cache that is fresh.
func TestAStaleCacheDestroysNothing(t *testing.T) {
	t.Parallel()
	server := apiserver.Get(t)
	rounds := 1
	if os.Getenv(envAll) != "" {
		rounds = 10
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	var group sync.WaitGroup
	defer group.Wait()
	// So many pods does the operator delete in each course.
	for name, deletions := range map[string]int{"switchover": 0, "failover": 0, "scale": 0, "config": 0, "roll": 2} {
		random := rand.New(rand.NewPCG(seed, uint64(len(name))))
		group.Go(func() {
			t.Run(name, func(t *testing.T) { staleCourse(t, server, staleRun{name, rounds, deletions, random}) })
		})
	}
}

// staleRun is a course that is done so often, with so many deletions each.
type staleRun struct {
	name              string
	rounds, deletions int
	random            *rand.Rand
}

func staleCourse(t *testing.T, server *apiserver.Server, run staleRun) {
	t.Helper()
	stale := &staleClient{random: run.random, history: map[string][]reading{}}
	l := newLane(t, server, course{what: run.name, created: true, stale: stale})
	asked := workloads(run.name)
	for round := range 1 + run.rounds {
		before := l.life.deletions.Load()
		for _, w := range asked {
			if round > 0 {
				stale.mislead()
				wake := time.AfterFunc(misleadFor, l.life.wake(l.wanted))
				defer wake.Stop()
			}
			l.run(w, 0, crash)
		}
		if got := l.life.deletions.Load() - before; got != int64(run.deletions) {
			t.Errorf("round %d: %d deletions, want %d", round, got, run.deletions)
		}
	}
	t.Logf("%d of %d readings were old", stale.old, stale.all)
}

// staleClient answers some readings with what it read before.
type staleClient struct {
	client.Client
	mu       sync.Mutex
	random   *rand.Rand
	end      time.Time // from when on all is fresh
	history  map[string][]reading
	age      int       // 0: fresh
	until    time.Time // and then another
	old, all int
}

// reading is what was read once; nil if there was nothing.
type reading struct {
	object client.Object
	list   client.ObjectList
}

const (
	// longestStale is how long the view stays the same at most.
	longestStale = 400 * time.Millisecond
	// misleadFor is longer than what is asked for takes.
	misleadFor = 2 * time.Second
	// oldest is by how many changes a copy is old at most.
	oldest = 6
)

// mislead shows old copies for a while from now on.
func (c *staleClient) mislead() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end = time.Now().Add(misleadFor)
}

// choose adds what was read now to the history of the key, and returns what to show.
func (c *staleClient) choose(key string, now reading, changed func(reading) bool) reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	history := c.history[key]
	if len(history) == 0 || changed(history[len(history)-1]) {
		history = append(history, now)
		c.history[key] = history
	}
	c.all++
	if time.Now().After(c.end) {
		return now
	}
	if time.Now().After(c.until) {
		c.until = time.Now().Add(time.Duration(c.random.Int64N(int64(longestStale))))
		c.age = max(0, c.random.IntN(2*oldest)-oldest)
	}
	shown := history[max(0, len(history)-1-c.age)]
	if c.age > 0 && len(history) > 1 {
		c.old++
	}
	return shown
}

func (c *staleClient) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	err := c.Client.Get(ctx, key, object, options...)
	switch object.(type) {
	case *appsv1.StatefulSet, *v1alpha1.RedisCluster:
	default:
		return err
	}
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	now := reading{}
	if err == nil {
		now.object = object.DeepCopyObject().(client.Object)
	}
	shown := c.choose(fmt.Sprintf("%T %s", object, key), now, func(last reading) bool {
		return (last.object == nil) != (now.object == nil) ||
			now.object != nil && last.object.GetResourceVersion() != now.object.GetResourceVersion()
	})
	if shown.object == nil {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	show(object, shown.object.DeepCopyObject())
	return nil
}

func (c *staleClient) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := c.Client.List(ctx, list, options...); err != nil {
		return err
	}
	pods, ok := list.(*corev1.PodList)
	if !ok {
		return nil
	}
	versions := func(list *corev1.PodList) map[string]string {
		versions := map[string]string{}
		for _, pod := range list.Items {
			versions[string(pod.UID)] = pod.ResourceVersion
		}
		return versions
	}
	now := reading{list: pods.DeepCopy()}
	shown := c.choose("pods", now, func(last reading) bool {
		return !reflect.DeepEqual(versions(last.list.(*corev1.PodList)), versions(pods))
	})
	show(list, shown.list.DeepCopyObject())
	return nil
}

func show(into, what any) { reflect.ValueOf(into).Elem().Set(reflect.ValueOf(what).Elem()) }

// deletes says that a request deletes an object.
func deletes(request *http.Request, response *http.Response) bool {
	return request.Method == http.MethodDelete && response.StatusCode < http.StatusBadRequest
}
