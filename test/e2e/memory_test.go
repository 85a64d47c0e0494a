package e2e

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	. "github.com/onsi/gomega/gstruct"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/test/e2e/kubeapi"
	"seang.org/operator/test/e2e/oracle"
)

var _ = Describe("A RedisCluster in memory", Ordered, ContinueOnFailure, func() {
	var c rediscluster

	It("becomes Ready, with the status and objects of the contract", func(ctx SpecContext) {
		began := time.Now()
		c = create(ctx, namespace, "memory", spec(2))
		status := c.awaitReady(ctx, startTimeout).Status
		measured("created → Ready", time.Since(began).Round(time.Millisecond))

		Expect(status.Phase).To(Equal(v1alpha1.PhaseReady))
		Expect(status.ActiveReplicas).To(BeEquivalentTo(2))
		Expect(status.InSyncReplicas).To(HaveLen(2))
		Expect(status.Primary).NotTo(BeElementOf(status.InSyncReplicas))
		Expect(status.LastSyncTimestamp).NotTo(BeNil())
		Expect(status.MaxMemory).NotTo(BeNil())
		Expect(status.RedisVersion).To(MatchRegexp(`^(redis|valkey) \d+\.`))
		Expect(status.Services).To(PointTo(Equal(v1alpha1.ServiceNames{Primary: "memory-primary", Replicas: "memory-replicas", Nodes: "memory-nodes"})))
		Expect(status.Binding).To(PointTo(Equal(v1alpha1.Binding{Name: "memory-app"})))
		for kind, want := range map[string]metav1.ConditionStatus{
			v1alpha1.ConditionReady: metav1.ConditionTrue, v1alpha1.ConditionAvailable: metav1.ConditionTrue,
			v1alpha1.ConditionProgressing: metav1.ConditionFalse, v1alpha1.ConditionDegraded: metav1.ConditionFalse,
			v1alpha1.ConditionSpecAccepted: metav1.ConditionTrue, v1alpha1.ConditionPaused: metav1.ConditionFalse,
		} {
			Expect(meta.FindStatusCondition(status.Conditions, kind)).To(HaveField("Status", want), kind)
		}
		Expect(meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionVersionSupported)).To(HaveField("Status", Not(Equal(metav1.ConditionUnknown))))
		for _, object := range []client.Object{
			&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "memory"}}, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "memory"}},
			&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "memory-primary"}}, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "memory-replicas"}},
			&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "memory-nodes"}}, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "memory-config"}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "memory-app"}}, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "memory-system"}},
		} {
			Expect(api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: object.GetName()}, object)).To(Succeed())
			Expect(metav1.IsControlledBy(object, c.get(ctx))).To(BeTrue(), "%T %s is not owned", object, object.GetName())
		}
		Expect(c.eventReasons(ctx)).To(ContainElement("Ready"))
	}, SpecTimeout(specTimeout))

	It("labels exactly the primary and the replicas, on different nodes", func(ctx SpecContext) {
		roles, nodes := map[string]string{}, map[string]bool{}
		for name, pod := range c.pods(ctx) {
			roles[name] = pod.Labels[naming.LabelRole]
			nodes[pod.Spec.NodeName] = true
		}
		status := c.get(ctx).Status
		want := map[string]string{status.Primary: naming.RolePrimary}
		for _, replica := range status.InSyncReplicas {
			want[replica] = naming.RoleReplica
		}
		Expect(roles).To(Equal(want))
		Expect(nodes).To(HaveLen(3))
	}, SpecTimeout(specTimeout))

	It("serves writes through one Service and reads through the other, to those who log in", func(ctx SpecContext) {
		secret := c.secret(ctx, "memory-app")
		Expect(secret).To(HaveKeyWithValue("type", []byte("redis")))
		Expect(secret).To(HaveKeyWithValue("host", []byte("memory-primary."+namespace+".svc")))
		Expect(secret).To(And(HaveKey("port"), HaveKey("username"), HaveKey("password"), HaveKey("uri")))

		Expect(oracle.Do(ctx, c.primary(ctx), "SET", "key", "value")).To(Equal("OK"))
		Eventually(func() (string, error) { return oracle.Do(ctx, c.replicas(ctx), "GET", "key") }, "5s", "50ms").Should(Equal("value"))
		_, err := oracle.Do(ctx, c.replicas(ctx), "SET", "key", "other")
		Expect(err).To(MatchError(ContainSubstring("READONLY")))

		stranger := c.primary(ctx)
		stranger.Password = "a-password-that-is-wrong"
		_, err = oracle.Do(ctx, stranger, "GET", "key")
		Expect(err).To(HaveOccurred())
		stranger.Username, stranger.Password = "", ""
		_, err = oracle.Do(ctx, stranger, "GET", "key")
		Expect(err).To(MatchError(ContainSubstring("NOAUTH")))
		for _, command := range [][]string{{"REPLICAOF", "NO", "ONE"}, {"CONFIG", "GET", "maxmemory"}, {"ACL", "LIST"}, {"SHUTDOWN"}, {"DEBUG", "SLEEP", "0"}} {
			_, err := oracle.Do(ctx, c.primary(ctx), command...)
			Expect(err).To(MatchError(MatchRegexp("NOPERM|not allowed")), "%v", command)
		}
	}, SpecTimeout(specTimeout))

	It("shows no secret in pods, Events, status, ConfigMaps and logs", func(ctx SpecContext) { expectNoSecrets(ctx, c) }, SpecTimeout(specTimeout))

	It("writes nothing in 30 s of steady state", func(SpecContext) {
		from := auditPosition()
		Consistently(func() (int, int) {
			writes, events := writesSince(from, "")
			return len(writes), len(events)
		}, "30s", "2s").Should(BeZero(), func() string { return describeWrites(from) })
	}, SpecTimeout(specTimeout))

	It("goes on without a pause when a replica is lost", func(ctx SpecContext) {
		o := c.write(ctx)
		replica := c.pod(ctx, c.get(ctx).Status.InSyncReplicas[0])
		Expect(api.Delete(ctx, replica, client.GracePeriodSeconds(1))).To(Succeed())
		notReady := c.await(ctx, noticeTimeout, "one replica short", func(now *v1alpha1.RedisCluster) bool {
			return now.Status.ActiveReplicas == 1 && !meta.IsStatusConditionTrue(now.Status.Conditions, v1alpha1.ConditionReady)
		})
		Expect(meta.IsStatusConditionTrue(notReady.Status.Conditions, v1alpha1.ConditionAvailable)).To(BeTrue(), describe(notReady))
		Expect(notReady.Status.Phase).To(Equal(v1alpha1.PhaseProvisioning))
		c.awaitReady(ctx, startTimeout)
		Expect(o.Mark()).To(BeNumerically("<", 2*time.Second), "writes paused")
		verify(ctx, o, true)
	}, SpecTimeout(specTimeout))

	DescribeTable("survives the loss of the primary", func(ctx SpecContext, planned bool, lose func(context.Context, *corev1.Pod) error) {
		o := c.write(ctx)
		old := c.primaryPod(ctx)
		record := c.get(ctx).Status.Record
		began := time.Now()
		Expect(lose(ctx, old)).To(Succeed())
		now := c.awaitFailover(ctx, record.Epoch)
		measured("lost → led by another", time.Since(began).Round(time.Millisecond))
		Expect(now.Status.Primary).NotTo(Equal(old.Name))
		c.awaitReady(ctx, startTimeout)
		measured("lost → Ready", time.Since(began).Round(time.Millisecond))
		verify(ctx, o, planned)
	},
		Entry("by kill -9 of its Redis", false, func(_ context.Context, pod *corev1.Pod) error { return kubeapi.Kill(pod, "redis-server") }, SpecTimeout(specTimeout)),
		Entry("by deletion of its pod, which is planned", true, func(ctx context.Context, pod *corev1.Pod) error { return api.Delete(ctx, pod) }, SpecTimeout(specTimeout)),
		Entry("by eviction, as a drain does, which is planned", true, func(ctx context.Context, pod *corev1.Pod) error {
			return api.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}})
		}, SpecTimeout(specTimeout)),
		Entry("by forced deletion of its pod", false, func(ctx context.Context, pod *corev1.Pod) error {
			return api.Delete(ctx, pod, client.GracePeriodSeconds(0))
		}, SpecTimeout(specTimeout)),
	)

	It("replaces a primary that hangs, which writes nothing when it goes on", func(ctx SpecContext) {
		c.failOver(ctx, func(primary *corev1.Pod, _ *traffic, moved func()) {
			began := time.Now()
			Expect(kubeapi.Signal(primary, "redis-server", syscall.SIGSTOP)).To(Succeed())
			defer func() { _ = kubeapi.Signal(primary, "redis-server", syscall.SIGCONT) }() // It may have been replaced.
			moved()
			measured("hung → led by another", time.Since(began).Round(time.Millisecond))
		})
	}, SpecTimeout(specTimeout))

	It("moves its primary where a person asks, once, and loses no acknowledged write", func(ctx SpecContext) {
		o := c.write(ctx)
		old := c.primaryPod(ctx).Name
		names := slices.Sorted(maps.Keys(c.pods(ctx)))
		target := names[(slices.Index(names, old)+1)%len(names)]
		began := time.Now()
		c.request(ctx, target)
		c.await(ctx, noticeTimeout, "led by "+target+", and asked no more", func(now *v1alpha1.RedisCluster) bool {
			return now.Status.Primary == target && now.Annotations[naming.AnnotationSwitchoverTo] == ""
		})
		measured("asked → moved", time.Since(began).Round(time.Millisecond))
		c.awaitReady(ctx, startTimeout)
		verify(ctx, o, true)

		epoch := c.get(ctx).Status.Record.Epoch
		c.request(ctx, "no-such-pod")
		c.expectEvent(ctx, "SwitchoverRefused")
		now := c.await(ctx, noticeTimeout, "asked no more", func(now *v1alpha1.RedisCluster) bool {
			return now.Annotations[naming.AnnotationSwitchoverTo] == ""
		})
		Expect(now.Status.Record.Epoch).To(Equal(epoch))
		Expect(now.Status.Primary).To(Equal(target))
	}, SpecTimeout(specTimeout))

	It("scales 2 → 4 → 1 under load and loses no acknowledged write", func(ctx SpecContext) {
		o := c.write(ctx)
		for _, replicas := range []int32{4, 1} {
			began := time.Now()
			scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
			Expect(api.SubResource("scale").Update(ctx, c.get(ctx), client.WithSubResourceBody(scale))).To(Succeed())
			c.awaitReady(ctx, startTimeout)
			measured("scaled", time.Since(began).Round(time.Millisecond))
			read := &autoscalingv1.Scale{}
			Expect(api.SubResource("scale").Get(ctx, c.get(ctx), read)).To(Succeed())
			Expect(read.Status.Replicas).To(Equal(replicas))
			Expect(read.Status.Selector).NotTo(BeEmpty())
			Eventually(func() int { return len(c.pods(ctx)) }, startTimeout, "200ms").Should(BeEquivalentTo(replicas + 1))
		}
		c.awaitReady(ctx, startTimeout)
		verify(ctx, o, true)
	}, SpecTimeout(2*specTimeout))

	It("with strict durability, refuses writes while it has no replica", func(ctx SpecContext) {
		c.change(ctx, func(r *v1alpha1.RedisCluster) {
			r.Spec.Replicas = 2
			r.Spec.Durability = &v1alpha1.DurabilitySpec{Mode: v1alpha1.DurabilityStrict}
		})
		now := c.awaitReady(ctx, startTimeout)
		// They hang: one that is deleted may be back before the other is gone.
		signal := func(signal syscall.Signal) {
			for _, name := range now.Status.InSyncReplicas {
				Expect(kubeapi.Signal(c.pod(ctx, name), "redis-server", signal)).To(Succeed())
			}
		}
		signal(syscall.SIGSTOP)
		write := func() error {
			_, err := oracle.Do(ctx, c.primary(ctx), "SET", "alone", "1")
			return err
		}
		Eventually(write, noticeTimeout, "50ms").Should(MatchError(ContainSubstring("NOREPLICAS")))
		signal(syscall.SIGCONT)
		Eventually(write, noticeTimeout, "50ms").Should(Succeed())
		c.change(ctx, func(r *v1alpha1.RedisCluster) { r.Spec.Replicas, r.Spec.Durability = 1, nil })
		c.awaitReady(ctx, startTimeout)
	}, SpecTimeout(specTimeout))

	It("takes a configuration live, and takes it back", func(ctx SpecContext) {
		before := c.containers(ctx)
		policy := func() []string {
			var values []string
			for _, pod := range c.pods(ctx) {
				value, err := oracle.Do(ctx, c.operatorAt(ctx, pod), "CONFIG", "GET", "maxmemory-policy")
				Expect(err).NotTo(HaveOccurred())
				values = append(values, value)
			}
			return values
		}
		c.change(ctx, func(r *v1alpha1.RedisCluster) {
			r.Spec.Config = map[string]v1alpha1.ConfigValue{"maxmemory-policy": "allkeys-lru"}
		})
		c.awaitReady(ctx, noticeTimeout)
		Expect(policy()).To(HaveEach(ContainSubstring("allkeys-lru")))
		c.change(ctx, func(r *v1alpha1.RedisCluster) { r.Spec.Config = nil })
		c.awaitReady(ctx, noticeTimeout)
		Expect(policy()).To(HaveEach(ContainSubstring("noeviction")))
		Expect(c.containers(ctx)).To(Equal(before))
	}, SpecTimeout(specTimeout))

	It("takes more memory and less, live", func(ctx SpecContext) {
		before := c.containers(ctx)
		last := c.get(ctx).Status.MaxMemory.Value()
		for _, memory := range []string{"128Mi", "96Mi"} {
			limit := resource.MustParse(memory)
			c.change(ctx, func(r *v1alpha1.RedisCluster) { r.Spec.MemoryLimit = limit })
			now := c.awaitReady(ctx, startTimeout)
			Expect(now.Status.MaxMemory.Value()).NotTo(Equal(last))
			last = now.Status.MaxMemory.Value()
			for _, pod := range c.pods(ctx) {
				Expect(pod.Status.ContainerStatuses[0].Resources.Limits.Memory().Cmp(limit)).To(BeZero(), pod.Name)
				Expect(oracle.Do(ctx, c.operatorAt(ctx, pod), "CONFIG", "GET", "maxmemory")).To(ContainSubstring(now.Status.MaxMemory.AsDec().String()))
			}
		}
		Expect(c.containers(ctx)).To(Equal(before))
	}, SpecTimeout(specTimeout))

	It("stands still while it is paused, and acts at once afterwards", func(ctx SpecContext) {
		paused := func(value any) client.Patch {
			text, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{naming.AnnotationPaused: value}}})
			Expect(err).NotTo(HaveOccurred())
			return client.RawPatch(types.MergePatchType, text)
		}
		Expect(api.Patch(ctx, c.get(ctx), paused("true"))).To(Succeed())
		c.await(ctx, noticeTimeout, "paused", func(now *v1alpha1.RedisCluster) bool {
			return conditionIs(now, v1alpha1.ConditionPaused, metav1.ConditionTrue, v1alpha1.ReasonPausedByUser)
		})
		c.change(ctx, func(r *v1alpha1.RedisCluster) { r.Spec.Replicas = 2 })
		c.await(ctx, noticeTimeout, "seen while paused", func(now *v1alpha1.RedisCluster) bool { return now.Status.ObservedGeneration == now.Generation })
		Consistently(func() int { return len(c.pods(ctx)) }, "3s", "500ms").Should(Equal(2))
		Expect(api.Patch(ctx, c.get(ctx), paused(nil))).To(Succeed())
		now := c.awaitReady(ctx, startTimeout)
		Expect(now.Status.ActiveReplicas).To(BeEquivalentTo(2))
	}, SpecTimeout(specTimeout))

	It("leaves nothing when it is deleted", func(ctx SpecContext) {
		c.delete(ctx)
		Eventually(func() []string { return children(ctx, c) }, startTimeout, "500ms").Should(BeEmpty())
	}, SpecTimeout(specTimeout))
})

// children names the objects of a cluster that exist.
func children(ctx context.Context, c rediscluster) []string {
	GinkgoHelper()
	var names []string
	for _, list := range []client.ObjectList{
		&appsv1.StatefulSetList{}, &corev1.PodList{}, &corev1.ServiceList{}, &corev1.ConfigMapList{},
		&corev1.SecretList{}, &policyv1.PodDisruptionBudgetList{}, &networkingv1.NetworkPolicyList{}, &corev1.PersistentVolumeClaimList{},
	} {
		Expect(api.List(ctx, list, client.InNamespace(c.key.Namespace), client.MatchingLabels(naming.Selector(c.key.Name)))).To(Succeed())
		Expect(meta.EachListItem(list, func(item runtime.Object) error {
			names = append(names, kindOf(item)+"/"+item.(client.Object).GetName())
			return nil
		})).To(Succeed())
	}
	return names
}
