package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/testkit/apiserver"
	"seang.org/operator/internal/testkit/nodes"
)

// workload is one thing that a person asks for, or that happens.
type workload struct {
	name string
	// begin asks for it.
	begin func(l *lane)
	// done says what is still to come; nil if nothing is.
	done func(l *lane, pods map[string]*corev1.Pod) error
	// unplanned ones may lose what was acknowledged a moment before.
	unplanned bool
}

// envAll, if not empty, makes these tests stop at every write of every course, with and
// without volumes: some minutes.
const envAll = "CRASH_ALL"

// TestACrashAfterAnyWriteChangesNothing stops the operator after each of its writes, to
// the API server or to Redis, in turn; another takes over, and the end is that of a run
// without a crash. So it is where the answer of a write is lost and the operator goes on.
func TestACrashAfterAnyWriteChangesNothing(t *testing.T) {
	t.Parallel()
	server := apiserver.Get(t)
	var group sync.WaitGroup
	defer group.Wait()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for _, c := range lanes(os.Getenv(envAll) != "", rand.New(rand.NewPCG(seed, 0))) {
		// Lanes mostly wait: more run at a time than there are processors.
		group.Go(func() {
			t.Run(c.name(), func(t *testing.T) {
				start := time.Now()
				l := newLane(t, server, c)
				runs := l.crashEach(c)
				t.Logf("%d runs in %s", runs, time.Since(start).Round(time.Second))
			})
		})
	}
}

// course is the workloads of one lane, which follow each other, and the writes after
// which the operator stops: the first, and each so many later.
type course struct {
	what          string
	workloads     []workload
	how           end
	persistent    bool
	first, stride int
	created       bool
	// stale is what its operator reads through, if not nil.
	stale *staleClient
}

func (c course) name() string {
	return fmt.Sprintf("%s/persistent=%t/%s/%d+%d", c.what, c.persistent, c.how, c.first, c.stride)
}

// lane is one RedisCluster in a namespace of its own, and its operator.
type lane struct {
	t         *testing.T
	server    *apiserver.Server
	client    client.Client
	namespace string
	nodes     *nodes.Nodes
	life      *life
	writer    *writer
	password  string
	wanted    *v1alpha1.RedisCluster
	// cluster as read last; nil once it is gone.
	cluster *v1alpha1.RedisCluster
	// keys are on every member.
	keys []string
	// before are the pods at the begin of the workload.
	before map[string]*corev1.Pod
	// reference is the end state of each workload without a crash.
	reference map[string]string
}

func newLane(t *testing.T, server *apiserver.Server, c course) *lane {
	t.Helper()
	namespace := server.Namespace(t)
	showLog(t, namespace)
	l := &lane{t: t, server: server, client: server.Client, namespace: namespace,
		nodes: nodes.Start(t, server.Client, namespace, "redis-7.0"), wanted: cluster(namespace, 1, c.persistent), reference: map[string]string{}}
	l.life = live(t, server, namespace, c.stale)
	if c.created {
		l.run(create(), 0, crash)
		secret := &corev1.Secret{}
		if err := l.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: naming.AppSecret("cache")}, secret); err != nil {
			t.Fatal(err)
		}
		l.password = string(secret.Data[naming.KeyPassword])
		l.writer = &writer{client: l.client, namespace: namespace, password: l.password, interval: writeInterval}
		if c.what == "switchover" {
			l.writer.interval = fastInterval
		}
		l.writer.start(t)
	}
	return l
}

// crashEach runs the workloads until none of them comes to the write to stop at, and
// returns how many runs there were that did.
func (l *lane) crashEach(c course) int {
	for _, w := range c.workloads {
		l.run(w, 0, c.how)
	}
	runs := 0
	for k := c.first; ; k += c.stride {
		reached := 0
		for _, w := range c.workloads {
			if l.run(w, k, c.how) {
				reached++
			}
		}
		if runs += reached; reached == 0 {
			return runs
		}
	}
}

// settleTimeout is how long a workload may take, crash and takeover included.
const settleTimeout = 45 * time.Second

// run does the workload with an operator whose k-th write ends so, and compares the end
// with that of a run without a crash. It tells whether there were so many writes.
func (l *lane) run(w workload, k int, how end) bool {
	l.t.Helper()
	l.keys = nil
	if l.writer != nil {
		acked, resume := l.writer.pause()
		l.keys = acked[:min(1, len(acked))]
		resume()
	}
	l.before, _ = l.pods()
	life := l.life
	life.arm(k, how)
	w.begin(l)
	deadline := time.Now().Add(settleTimeout)
	for {
		if l.life.dead() {
			l.life = live(l.t, l.server, l.namespace, nil)
		}
		err := l.settled(w)
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			l.t.Fatalf("%s, at write %d %s (reached: %t): not within %s: %v", w.name, k, how, life.reached(), settleTimeout, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	reached := life.reached()
	life.arm(0, how)
	return reached
}

func (l *lane) pods() (map[string]*corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := l.client.List(l.t.Context(), list, client.InNamespace(l.namespace)); err != nil {
		return nil, err
	}
	pods := map[string]*corev1.Pod{}
	for i := range list.Items {
		pods[list.Items[i].Name] = &list.Items[i]
	}
	return pods, nil
}

// settled returns why the workload is not at its end, as it should be.
func (l *lane) settled(w workload) error {
	ctx := l.t.Context()
	c := &v1alpha1.RedisCluster{}
	err := l.client.Get(ctx, client.ObjectKeyFromObject(l.wanted), c)
	l.cluster = c
	if apierrors.IsNotFound(err) {
		l.cluster, err = nil, nil
	}
	pods, podsErr := l.pods()
	if err := errors.Join(err, podsErr); err != nil {
		return err
	}
	if err := w.done(l, pods); err != nil {
		return err
	}
	if l.cluster == nil {
		return l.same(ctx, w)
	}
	if !isReady(c) || c.Status.Phase != v1alpha1.PhaseReady {
		return fmt.Errorf("not Ready: %v", c.Status.Conditions)
	}
	if err := l.whole(ctx, w, pods); err != nil {
		return err
	}
	if err := l.life.idle(c, len(pods)); err != nil {
		return err
	}
	return l.same(ctx, w)
}

// whole checks the members, with the writer held.
func (l *lane) whole(ctx context.Context, w workload, pods map[string]*corev1.Pod) error {
	if l.writer != nil {
		acked, resume := l.writer.pause()
		defer resume()
		if !w.unplanned {
			l.keys = append(l.keys, acked...)
		}
	}
	return l.members(ctx, l.cluster, pods, l.keys)
}

// same compares the objects with those of the first run.
func (l *lane) same(ctx context.Context, w workload) error {
	c := l.cluster
	if c == nil {
		c = &v1alpha1.RedisCluster{}
	}
	state, err := normalised(ctx, l.client, l.namespace, c)
	if err != nil {
		return err
	}
	if l.reference[w.name] == "" {
		l.reference[w.name] = state
	}
	if diff := cmp.Diff(l.reference[w.name], state); diff != "" {
		return fmt.Errorf("the end state differs from that without a crash (-without +with):\n%s", diff)
	}
	return nil
}

// patch changes the RedisCluster as a person does.
func (l *lane) patch(patch string) {
	if err := l.client.Patch(l.t.Context(), l.wanted.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		l.t.Fatalf("patch %s: %v", patch, err)
	}
}

func (l *lane) annotate(annotation, value string) {
	l.patch(fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, annotation, value))
}

func pending(isPending bool, format string, arguments ...any) error {
	if isPending {
		return fmt.Errorf(format, arguments...)
	}
	return nil
}

func create() workload {
	return workload{name: "create",
		begin: func(l *lane) {
			if err := l.client.Create(l.t.Context(), l.wanted.DeepCopy()); err != nil {
				l.t.Fatalf("create: %v", err)
			}
		},
		done: func(l *lane, pods map[string]*corev1.Pod) error {
			if l.cluster != nil && l.password == "" || l.writer == nil {
				secret := &corev1.Secret{}
				_ = l.client.Get(l.t.Context(), client.ObjectKey{Namespace: l.namespace, Name: naming.AppSecret("cache")}, secret)
				l.password = string(secret.Data[naming.KeyPassword])
			}
			return pending(l.cluster == nil || len(pods) < 2, "no RedisCluster")
		}}
}

func remove() workload {
	return workload{name: "delete",
		begin: func(l *lane) {
			if err := l.client.Delete(l.t.Context(), l.wanted.DeepCopy()); err != nil {
				l.t.Fatalf("delete: %v", err)
			}
		},
		done: func(l *lane, pods map[string]*corev1.Pod) error {
			return pending(l.cluster != nil || len(pods) > 0, "it is still there, with %d pods", len(pods))
		}}
}

// collect deletes what is left, as the garbage collector does.
func collect() workload {
	return workload{name: "collect",
		begin: func(l *lane) {
			all, err := listAll(l.t.Context(), l.client, l.namespace)
			for i := range all {
				err = errors.Join(err, client.IgnoreNotFound(l.client.Delete(l.t.Context(), &all[i])))
			}
			if err != nil {
				l.t.Fatalf("collect garbage: %v", err)
			}
		},
		done: func(*lane, map[string]*corev1.Pod) error { return nil }}
}

func switchover(to int) workload {
	target := naming.Pod("cache", to)
	return workload{name: "switchover to " + target,
		begin: func(l *lane) { l.annotate(naming.AnnotationSwitchoverTo, target) },
		done: func(l *lane, _ map[string]*corev1.Pod) error {
			_, asked := l.cluster.Annotations[naming.AnnotationSwitchoverTo]
			return pending(asked || l.cluster.Status.Primary != target, "asked: %t, primary %s", asked, l.cluster.Status.Primary)
		}}
}

func failover() workload {
	var old string
	return workload{name: "failover", unplanned: true,
		begin: func(l *lane) {
			old = l.cluster.Status.Primary
			l.nodes.Restart(l.before[old].UID)
		},
		done: func(l *lane, _ map[string]*corev1.Pod) error {
			return pending(l.cluster.Status.Primary == old, "the primary is %s still", old)
		}}
}

func scale(replicas int) workload {
	return workload{name: fmt.Sprintf("scale to %d replicas", replicas),
		begin: func(l *lane) { l.patch(fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)) },
		done: func(_ *lane, pods map[string]*corev1.Pod) error {
			return pending(len(pods) != 1+replicas, "%d pods", len(pods))
		}}
}

func configure(policy string) workload {
	return workload{name: "config " + policy,
		begin: func(l *lane) { l.patch(fmt.Sprintf(`{"spec":{"config":{"maxmemory-policy":%q}}}`, policy)) },
		done: func(l *lane, pods map[string]*corev1.Pod) error {
			for _, pod := range pods {
				if err := l.hasPolicy(pod, policy); err != nil {
					return err
				}
			}
			return nil
		}}
}

func roll() workload {
	n := 0
	return workload{name: "roll",
		begin: func(l *lane) {
			n++
			l.annotate(naming.AnnotationRestartedAt, fmt.Sprint(n))
		},
		done: func(l *lane, pods map[string]*corev1.Pod) error {
			for name, pod := range pods {
				if l.before[name].UID == pod.UID {
					return fmt.Errorf("%s is the old one", name)
				}
			}
			return nil
		}}
}

// lanes are the courses. Of all, each write, with and without volumes; else those of
// which each write is cheap enough, and of the others some, which the seed chooses.
func lanes(all bool, random *rand.Rand) []course {
	var courses []course
	// every adds a course that stops at each write, done by so many lanes.
	every := func(c course, lanes int) {
		for first := range lanes {
			c.first, c.stride, c.workloads = first+1, lanes, workloads(c.what)
			courses = append(courses, c)
		}
	}
	some := func(c course, stride int) {
		c.first, c.stride, c.workloads = 1+random.IntN(stride), stride, workloads(c.what)
		courses = append(courses, c)
	}
	for _, how := range []end{crash, lost} {
		for name, few := range map[string]bool{"lifecycle": false, "switchover": false, "failover": false, "roll": false, "scale": true, "config": true} {
			c := course{what: name, how: how, created: name != "lifecycle"}
			switch {
			case all:
				every(c, 3)
				c.persistent = true
				every(c, 3)
			case how == lost:
				some(c, 5)
			case few:
				some(c, 3)
			default:
				every(c, 3)
			}
		}
	}
	return courses
}

func workloads(course string) []workload {
	switch course {
	case "lifecycle":
		return []workload{create(), remove(), collect()}
	case "switchover":
		return []workload{switchover(1), switchover(0)}
	case "failover":
		return []workload{failover()}
	case "scale":
		return []workload{scale(2), switchover(2), scale(1)}
	case "config":
		return []workload{configure("allkeys-lru"), configure("volatile-lru")}
	}
	return []workload{roll()}
}
