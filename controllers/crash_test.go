package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/testkit/apiserver"
	"seang.org/operator/internal/testkit/nodes"
)

// envAll, if not empty, makes these tests stop at every write of every course, with and
// without volumes: some minutes.
const envAll = "CRASH_ALL"

// lanesAtATime are more than there are processors: lanes mostly wait.
const lanesAtATime = 20

// TestACrashAfterAnyWriteChangesNothing stops the operator after each of its writes, to
// the API server or to Redis, in turn; another takes over, and the end is that of a run
// without a crash. So it is where the answer of a write is lost and the operator goes on.
func TestACrashAfterAnyWriteChangesNothing(t *testing.T) {
	t.Parallel()
	server := apiserver.Get(t)
	var group errgroup.Group
	group.SetLimit(lanesAtATime)
	defer func() { _ = group.Wait() }()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for _, c := range lanes(os.Getenv(envAll) != "", rand.New(rand.NewPCG(seed, 0))) {
		group.Go(func() error {
			t.Run(c.name(), func(t *testing.T) {
				start := time.Now()
				l := newLane(t, server, c)
				runs := l.crashEach(c)
				t.Logf("%d runs in %s", runs, time.Since(start).Round(time.Second))
			})
			return nil
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
	// also is what else belongs to the end state; nil if nothing does.
	also func(pods map[string]*corev1.Pod) (string, error)
}

func newLane(t *testing.T, server *apiserver.Server, c course) *lane {
	t.Helper()
	namespace := server.Namespace(t)
	showLog(t, namespace)
	l := &lane{t: t, server: server, client: server.Client, namespace: namespace,
		nodes: nodes.Start(t, server.Client, namespace, "redis-7.0"), wanted: cluster(namespace, 1, c.persistent), reference: map[string]string{}}
	if c.what == "rotation" {
		l.wanted.Spec.Auth = &v1alpha1.AuthSpec{OverlapSeconds: new(int32(0))}
	}
	l.life = live(t, server, namespace, c.stale)
	if c.created {
		l.run(create(), 0, crash)
		l.writer = &writer{client: l.client, namespace: namespace, interval: writeInterval}
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
		return l.same(ctx, w, pods)
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
	return l.same(ctx, w, pods)
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
func (l *lane) same(ctx context.Context, w workload, pods map[string]*corev1.Pod) error {
	c := l.cluster
	if c == nil {
		c = &v1alpha1.RedisCluster{}
	}
	state, err := normalised(ctx, l.client, l.namespace, c)
	if err != nil {
		return err
	}
	if l.also != nil {
		more, err := l.also(pods)
		if err != nil {
			return err
		}
		state += more
	}
	if l.reference[w.name] == "" {
		l.reference[w.name] = state
	}
	if diff := cmp.Diff(l.reference[w.name], state); diff != "" {
		return fmt.Errorf("the end state differs from that of the first run (-first +this):\n%s", diff)
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
		for _, name := range []string{"roll", "lifecycle", "scale", "switchover", "failover", "config", "rotation", "tls"} {
			c := course{what: name, how: how, created: name != "lifecycle"}
			switch {
			case all:
				every(c, 3)
				c.persistent = true
				every(c, 3)
			case name == "tls": // Two rolls, of which another course stops at each write.
				some(c, 16)
			case how == lost:
				some(c, 8)
			case name == "scale", name == "config", name == "rotation":
				some(c, 6)
			case name == "roll": // Each takes the longest.
				every(c, 5)
			default:
				every(c, 3)
			}
		}
	}
	return courses
}
