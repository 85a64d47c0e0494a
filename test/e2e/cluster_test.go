package e2e

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/test/e2e/kubeapi"
	"seang.org/operator/test/e2e/oracle"
)

// rediscluster is a RedisCluster that the tests work with.
type rediscluster struct {
	key client.ObjectKey
}

// spec is a small cluster with so many replicas, in memory.
func spec(replicas int32) v1alpha1.RedisClusterSpec {
	return v1alpha1.RedisClusterSpec{Replicas: replicas, MemoryLimit: resource.MustParse("96Mi"), EnablePersistence: new(false)}
}

// persistentSpec is the same on volumes, with two replicas.
func persistentSpec() v1alpha1.RedisClusterSpec {
	s := spec(2)
	s.EnablePersistence = new(true)
	s.Storage = &v1alpha1.StorageSpec{Size: new(resource.MustParse("512Mi"))}
	return s
}

func create(ctx context.Context, in, name string, spec v1alpha1.RedisClusterSpec) rediscluster {
	GinkgoHelper()
	object := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: name}, Spec: spec}
	Expect(api.Create(ctx, object)).To(Succeed())
	return rediscluster{key: client.ObjectKeyFromObject(object)}
}

// ofItsOwn gives the specs of a container a RedisCluster: it is Ready before the first,
// and gone after the last.
func ofItsOwn(name string, spec v1alpha1.RedisClusterSpec) *rediscluster {
	c := &rediscluster{}
	BeforeAll(func(ctx SpecContext) {
		*c = create(ctx, namespace, name, spec)
		c.awaitReady(ctx, startTimeout)
	}, NodeTimeout(specTimeout))
	AfterAll(func(ctx SpecContext) { c.delete(ctx) }, NodeTimeout(specTimeout))
	return c
}

func (c rediscluster) reference() *v1alpha1.RedisCluster {
	return &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: c.key.Namespace, Name: c.key.Name}}
}

func (c rediscluster) get(ctx context.Context) *v1alpha1.RedisCluster {
	GinkgoHelper()
	object := &v1alpha1.RedisCluster{}
	Expect(api.Get(ctx, c.key, object)).To(Succeed())
	return object
}

// await waits until the status fulfils a condition, and fails with the last
// status that was seen.
func (c rediscluster) await(ctx context.Context, within time.Duration, what string, done func(*v1alpha1.RedisCluster) bool) *v1alpha1.RedisCluster {
	GinkgoHelper()
	last, err := kubeapi.AwaitGoal(ctx, api, c.reference(), kubeapi.Goal[*v1alpha1.RedisCluster]{What: what, Within: within, Done: done, Show: describe})
	if err != nil {
		Fail(fmt.Sprintf("%s: %v", c.key, err))
	}
	return last
}

// describe is what a person wants to know of a cluster that is not as it should.
func describe(cluster *v1alpha1.RedisCluster) string {
	var b strings.Builder
	fmt.Fprintf(&b, "generation %d, observed %d, phase %s, primary %q, in sync %v, record %+v\n", cluster.Generation,
		cluster.Status.ObservedGeneration, cluster.Status.Phase, cluster.Status.Primary, cluster.Status.InSyncReplicas, cluster.Status.Record)
	for _, condition := range cluster.Status.Conditions {
		fmt.Fprintf(&b, "  %s=%s %s: %s\n", condition.Type, condition.Status, condition.Reason, condition.Message)
	}
	return b.String()
}

// awaitReady waits until the whole current spec is in force, and for kube-proxy, which
// follows a Service up to a second and a half later: until then it refuses connections.
func (c rediscluster) awaitReady(ctx context.Context, within time.Duration) *v1alpha1.RedisCluster {
	GinkgoHelper()
	now := c.await(ctx, within, "Ready", func(now *v1alpha1.RedisCluster) bool {
		return conditionIs(now, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	})
	address := c.primary(ctx).Address
	Eventually(func() error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return conn.Close()
	}, "5s", "20ms").Should(Succeed(), "connect through the primary Service at %s", address)
	return now
}

// awaitFailover waits until a promotion after the epoch is done, and the status
// speaks of it: the record alone comes earlier.
func (c rediscluster) awaitFailover(ctx context.Context, epoch int64) *v1alpha1.RedisCluster {
	GinkgoHelper()
	return c.await(ctx, noticeTimeout, "led by another", func(now *v1alpha1.RedisCluster) bool {
		return now.Status.Record.Epoch > epoch && now.Status.Primary == now.Status.Record.Primary.Pod
	})
}

// conditionIs says that the condition holds for the current spec.
func conditionIs(cluster *v1alpha1.RedisCluster, kind string, status metav1.ConditionStatus, reason string) bool {
	condition := meta.FindStatusCondition(cluster.Status.Conditions, kind)
	return condition != nil && condition.ObservedGeneration == cluster.Generation && condition.Status == status && condition.Reason == reason
}

// awaitReason waits until Ready is False for a reason.
func (c rediscluster) awaitReason(ctx context.Context, within time.Duration, reason string) *v1alpha1.RedisCluster {
	GinkgoHelper()
	return c.await(ctx, within, "not Ready for "+reason, func(now *v1alpha1.RedisCluster) bool {
		return conditionIs(now, v1alpha1.ConditionReady, metav1.ConditionFalse, reason)
	})
}

// change edits the RedisCluster as a person does.
func (c rediscluster) change(ctx context.Context, edit func(*v1alpha1.RedisCluster)) {
	GinkgoHelper()
	before := c.get(ctx)
	after := before.DeepCopy()
	edit(after)
	Expect(api.Patch(ctx, after, client.MergeFrom(before))).To(Succeed())
}

// request asks for a pod as primary.
func (c rediscluster) request(ctx context.Context, pod string) {
	GinkgoHelper()
	c.change(ctx, func(r *v1alpha1.RedisCluster) {
		metav1.SetMetaDataAnnotation(&r.ObjectMeta, naming.AnnotationSwitchoverTo, pod)
	})
}

func (c rediscluster) delete(ctx context.Context) {
	GinkgoHelper()
	object := c.get(ctx)
	Expect(api.Delete(ctx, object)).To(Succeed())
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not gone within %s", startTimeout))
	defer cancel()
	Expect(api.AwaitGone(ctx, object)).To(Succeed())
}

// pods of the cluster, by name.
func (c rediscluster) pods(ctx context.Context) map[string]corev1.Pod {
	GinkgoHelper()
	list := &corev1.PodList{}
	Expect(api.List(ctx, list, client.InNamespace(c.key.Namespace), client.MatchingLabels(naming.Selector(c.key.Name)))).To(Succeed())
	pods := map[string]corev1.Pod{}
	for _, pod := range list.Items {
		pods[pod.Name] = pod
	}
	return pods
}

// containers tell the running Redis processes apart: their identities change
// with each restart.
func (c rediscluster) containers(ctx context.Context) []string {
	GinkgoHelper()
	ids, err := api.Containers(ctx, client.InNamespace(c.key.Namespace), client.MatchingLabels(naming.Selector(c.key.Name)))
	Expect(err).NotTo(HaveOccurred())
	return ids
}

func (c rediscluster) primaryPod(ctx context.Context) *corev1.Pod {
	GinkgoHelper()
	return c.pod(ctx, c.get(ctx).Status.Primary)
}

func (c rediscluster) pod(ctx context.Context, name string) *corev1.Pod {
	GinkgoHelper()
	pod := &corev1.Pod{}
	Expect(api.Get(ctx, client.ObjectKey{Namespace: c.key.Namespace, Name: name}, pod)).To(Succeed())
	return pod
}

func (c rediscluster) secret(ctx context.Context, name string) map[string][]byte {
	GinkgoHelper()
	secret := &corev1.Secret{}
	Expect(api.Get(ctx, client.ObjectKey{Namespace: c.key.Namespace, Name: name}, secret)).To(Succeed())
	return secret.Data
}

// service is how an application reaches a Service of the cluster.
func (c rediscluster) service(ctx context.Context, name string) oracle.Target {
	GinkgoHelper()
	target, err := oracle.ServiceTarget(ctx, api, c.key, name)
	Expect(err).NotTo(HaveOccurred())
	return target
}

func (c rediscluster) primary(ctx context.Context) oracle.Target {
	GinkgoHelper()
	return c.service(ctx, naming.PrimaryService(c.key.Name))
}

func (c rediscluster) replicas(ctx context.Context) oracle.Target {
	GinkgoHelper()
	return c.service(ctx, naming.ReplicasService(c.key.Name))
}

// operatorAt logs in at one pod as the operator does, to read what is in force.
func (c rediscluster) operatorAt(ctx context.Context, pod corev1.Pod) oracle.Target {
	GinkgoHelper()
	target, err := oracle.OperatorTarget(ctx, api, c.key, &pod)
	Expect(err).NotTo(HaveOccurred())
	return target
}

// runs is how many oracles there were, for the names of their keys.
var runs int

// traffic is writers through the primary Service, and a monitor that writes to each
// member.
type traffic struct {
	*oracle.Oracle
	monitor *oracle.Monitor
	cluster rediscluster
	// epoch is that of the record when the writers began.
	epoch int64
}

// write starts writers and returns once they write.
func (c rediscluster) write(ctx context.Context) *traffic {
	GinkgoHelper()
	return c.writeTo(ctx, c.primary(ctx))
}

// writeTo is write through another target than the primary Service as it is now.
func (c rediscluster) writeTo(ctx context.Context, target oracle.Target) *traffic {
	GinkgoHelper()
	runs++
	name := fmt.Sprintf("oracle-%d", runs)
	replicas := c.replicas(ctx)
	t := &traffic{cluster: c, epoch: c.get(ctx).Status.Record.Epoch,
		Oracle:  oracle.Start(ctx, target, oracle.Options{Name: name, Plain: 2, Confirming: 2, Pace: 2 * time.Millisecond, Replicas: &replicas}),
		monitor: oracle.Watch(ctx, name+":monitor", func(ctx context.Context) ([]oracle.Target, error) { return c.members(ctx, target) })}
	awaitWrites(ctx, t)
	t.Mark()
	return t
}

// members are how to reach each pod that runs, with the login of the primary.
func (c rediscluster) members(ctx context.Context, primary oracle.Target) ([]oracle.Target, error) {
	list := &corev1.PodList{}
	if err := api.List(ctx, list, client.InNamespace(c.key.Namespace), client.MatchingLabels(naming.Selector(c.key.Name))); err != nil {
		return nil, fmt.Errorf("list the members: %w", err)
	}
	var targets []oracle.Target
	for _, pod := range list.Items {
		if pod.Status.PodIP != "" {
			member, err := primary.OfPod(ctx, api, c.key, &pod)
			if err != nil {
				return nil, err
			}
			targets = append(targets, member)
		}
	}
	return targets, nil
}

// awaitWrites waits until a few writes more were acknowledged.
func awaitWrites(ctx context.Context, o *traffic) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("no writes within %s", startTimeout))
	defer cancel()
	Expect(o.Await(ctx, 20)).To(Succeed())
}

// verify ends the writers and shows what became of their writes.
func verify(ctx context.Context, o *traffic, planned bool) {
	GinkgoHelper()
	awaitWrites(ctx, o)
	measured("longest pause of writes", o.Mark().Round(time.Millisecond))
	report, err := o.Verify(ctx)
	Expect(err).NotTo(HaveOccurred())
	measured("writes", fmt.Sprintf("%+v", report))
	Expect(report.Err(planned)).To(Succeed())
	Expect(o.monitor.Err(o.cluster.get(ctx).Status.Record.Epoch-o.epoch)).To(Succeed(), "two members took writes")
}

// failOver has a fault take the primary while clients write, and shows that another
// leads then, that the cluster gets whole again, and that no confirmed write is gone.
// The fault may wait until another leads: moved does.
func (c rediscluster) failOver(ctx context.Context, fault func(primary *corev1.Pod, o *traffic, moved func())) {
	GinkgoHelper()
	o := c.write(ctx)
	primary := c.primaryPod(ctx)
	epoch := c.get(ctx).Status.Record.Epoch
	moved := func() { c.awaitFailover(ctx, epoch) }
	fault(primary, o, moved)
	moved()
	c.awaitReady(ctx, startTimeout)
	verify(ctx, o, false)
}

// killRedis ends the Redis in a pod as a crash does.
func killRedis(pod *corev1.Pod) {
	GinkgoHelper()
	Expect(kubeapi.Kill(pod, "redis-server")).To(Succeed())
}

// eventReasons are the reasons of the Events about the RedisCluster.
func (c rediscluster) eventReasons(ctx context.Context) []string {
	GinkgoHelper()
	list := &corev1.EventList{}
	Expect(api.List(ctx, list, client.InNamespace(c.key.Namespace))).To(Succeed())
	var reasons []string
	for _, event := range list.Items {
		if event.InvolvedObject.Kind == "RedisCluster" && event.InvolvedObject.Name == c.key.Name {
			reasons = append(reasons, event.Reason)
		}
	}
	return reasons
}
