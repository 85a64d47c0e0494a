package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/test/e2e/oracle"
	"seang.org/operator/test/registry"
)

// notRedisImage has a shell and no server; makers of other clusters may lack it.
const notRedisImage = registry.NotRedis

// stormWindow is how long the operator's writes about a bad spec are counted,
// and stormLimit how many there may be: none but a late status or two.
const (
	stormWindow = 8 * time.Second
	stormLimit  = 3
)

// secretOf makes the Secret of an application's password.
func secretOf(in, name, password string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: name}, Data: map[string][]byte{naming.KeyPassword: []byte(password)}}
}

const goodPassword = "a-password-of-sixteen-bytes-or-more"

// expectEvent waits for a warning about the cluster that names the reason.
func (c rediscluster) expectEvent(ctx context.Context, reason string) {
	GinkgoHelper()
	Eventually(func() []string { return c.eventReasons(ctx) }, noticeTimeout, "200ms").Should(
		ContainElement(HaveSuffix(reason)), "no Event of %s says %s", c.key, reason)
}

// expectNoStorm counts the operator's writes in the namespaces for a while.
func expectNoStorm(namespaces ...string) {
	GinkgoHelper()
	if auditLog == "" {
		return
	}
	from := auditPosition()
	count := func() (most int) {
		for _, in := range namespaces {
			writes, events := writesSince(from, in)
			most = max(most, len(writes)+len(events))
		}
		return most
	}
	Consistently(count, stormWindow, "2s").Should(BeNumerically("<=", stormLimit), func() string { return describeWrites(from) })
}

// A bad change to a cluster that runs.
type badChange struct {
	reason string
	// prepare makes what the change needs.
	prepare func(ctx context.Context, c rediscluster)
	spoil   func(*v1alpha1.RedisClusterSpec)
	// mend puts right what is not in the spec; without it the change is reverted.
	mend func(ctx context.Context, c rediscluster)
}

var _ = Describe("A bad change of a running RedisCluster", Ordered, ContinueOnFailure, func() {
	c := ofItsOwn("spoilt", spec(1))

	DescribeTable("is reported, touches nothing that runs, and is mended at once", func(ctx SpecContext, bad badChange) {
		containers := c.containers(ctx)
		good := c.get(ctx).Spec
		if bad.prepare != nil {
			bad.prepare(ctx, *c)
		}
		c.change(ctx, func(r *v1alpha1.RedisCluster) { bad.spoil(&r.Spec) })
		now := c.awaitReason(ctx, noticeTimeout, bad.reason)
		Expect(now.Status.Primary).NotTo(BeEmpty())
		Expect(conditionIs(now, v1alpha1.ConditionAvailable, metav1.ConditionTrue, v1alpha1.ReasonPrimaryAvailable)).To(BeTrue(), describe(now))
		c.expectEvent(ctx, bad.reason)
		expectNoStorm(namespace)
		Expect(oracle.Do(ctx, c.primary(ctx), "SET", "alive", bad.reason)).To(Equal("OK"))
		Expect(c.containers(ctx)).To(Equal(containers))

		began := time.Now()
		if bad.mend != nil {
			bad.mend(ctx, *c)
		} else {
			c.change(ctx, func(r *v1alpha1.RedisCluster) { r.Spec = good })
		}
		c.awaitReady(ctx, recoveryTimeout)
		measured("mended → Ready", time.Since(began).Round(time.Millisecond))
		Expect(c.containers(ctx)).To(Equal(containers))
		c.change(ctx, func(r *v1alpha1.RedisCluster) { r.Spec = good })
		c.awaitReady(ctx, recoveryTimeout)
	},
		Entry("a limit that is too small for the data", badChange{reason: v1alpha1.ReasonMemoryTooSmall,
			prepare: func(ctx context.Context, c rediscluster) {
				filler := strings.Repeat("x", 1<<20)
				for i := range 30 {
					Expect(oracle.Do(ctx, c.primary(ctx), "SET", fmt.Sprint("filler-", i), filler)).To(Equal("OK"))
				}
			},
			spoil: func(s *v1alpha1.RedisClusterSpec) { s.MemoryLimit = resource.MustParse("64Mi") },
			mend: func(ctx context.Context, c rediscluster) {
				for i := range 30 {
					Expect(oracle.Do(ctx, c.primary(ctx), "DEL", fmt.Sprint("filler-", i))).To(Equal("1"))
				}
			}}, SpecTimeout(specTimeout)),
		Entry("a directive that Redis refuses", badChange{reason: v1alpha1.ReasonInvalidConfig,
			spoil: func(s *v1alpha1.RedisClusterSpec) {
				s.Config = map[string]v1alpha1.ConfigValue{"maxmemory-policy": "no-such-policy"}
			}}, SpecTimeout(specTimeout)),
		Entry("a directive that no Redis knows", badChange{reason: v1alpha1.ReasonInvalidConfig,
			spoil: func(s *v1alpha1.RedisClusterSpec) {
				s.Config = map[string]v1alpha1.ConfigValue{"no-such-directive": "1"}
			}}, SpecTimeout(specTimeout)),
		Entry("a bad value of a directive that is read at the start alone", badChange{reason: v1alpha1.ReasonInvalidConfig,
			spoil: func(s *v1alpha1.RedisClusterSpec) { s.Config = map[string]v1alpha1.ConfigValue{"databases": "none"} }}, SpecTimeout(specTimeout)),
		Entry("a directive that the operator owns", badChange{reason: v1alpha1.ReasonInvalidConfig,
			spoil: func(s *v1alpha1.RedisClusterSpec) { s.Config = map[string]v1alpha1.ConfigValue{"appendonly": "yes"} }}, SpecTimeout(specTimeout)),
		Entry("an absent Secret, created later", badChange{reason: v1alpha1.ReasonInvalidSecret,
			spoil: func(s *v1alpha1.RedisClusterSpec) { s.Auth = &v1alpha1.AuthSpec{SecretName: "later"} },
			mend: func(ctx context.Context, c rediscluster) {
				Expect(api.Create(ctx, secretOf(c.key.Namespace, "later", goodPassword))).To(Succeed())
			}}, SpecTimeout(specTimeout)),
		Entry("a malformed Secret, corrected later", badChange{reason: v1alpha1.ReasonInvalidSecret,
			prepare: func(ctx context.Context, c rediscluster) {
				Expect(api.Create(ctx, secretOf(c.key.Namespace, "malformed", "short"))).To(Succeed())
			},
			spoil: func(s *v1alpha1.RedisClusterSpec) { s.Auth = &v1alpha1.AuthSpec{SecretName: "malformed"} },
			mend: func(ctx context.Context, c rediscluster) {
				Expect(api.Update(ctx, secretOf(c.key.Namespace, "malformed", goodPassword))).To(Succeed())
			}}, SpecTimeout(specTimeout)),
	)

	It("is refused at admission where its schema can tell", func(ctx SpecContext) {
		for quantity, message := range map[string]string{"1Mi": "at least 64Mi", "lots": "memoryLimit"} {
			err := api.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": v1alpha1.GroupVersion.String(), "kind": "RedisCluster",
				"metadata": map[string]any{"namespace": namespace, "name": "refused"},
				"spec":     map[string]any{"replicas": 1, "memoryLimit": quantity, "enablePersistence": false},
			}})
			Expect(apierrors.IsInvalid(err)).To(BeTrue(), "memoryLimit %s: %v", quantity, err)
			Expect(err).To(MatchError(ContainSubstring(message)))
		}
	}, SpecTimeout(specTimeout))
})

// nowhere is a place that no node is.
func nowhere() *v1alpha1.SchedulingSpec {
	return &v1alpha1.SchedulingSpec{NodeSelector: map[string]string{"cache.seang.org/no-such": "node"}}
}

// A RedisCluster that cannot start as it was created.
type badStart struct {
	name string
	// reasons are those that may be given.
	reasons []string
	spoil   func(*v1alpha1.RedisClusterSpec)
	// prepare makes the obstacle, and mend removes it; without it a good spec
	// is applied.
	prepare func(ctx context.Context, in string)
	mend    func(ctx context.Context, in string)
}

var badStarts = []badStart{
	{name: "unknown-image", reasons: []string{v1alpha1.ReasonImageNotPulled},
		spoil: func(s *v1alpha1.RedisClusterSpec) { s.Image = registry.Absent }},
	{name: "not-redis", reasons: []string{v1alpha1.ReasonImageNotRedis},
		spoil: func(s *v1alpha1.RedisClusterSpec) { s.Image = notRedisImage }},
	{name: "nowhere", reasons: []string{v1alpha1.ReasonPodNotScheduled},
		spoil: func(s *v1alpha1.RedisClusterSpec) { s.Scheduling = nowhere() }},
	{name: "absent-secret", reasons: []string{v1alpha1.ReasonInvalidSecret},
		spoil: func(s *v1alpha1.RedisClusterSpec) { s.Auth = &v1alpha1.AuthSpec{SecretName: "absent"} },
		mend: func(ctx context.Context, in string) {
			Expect(api.Create(ctx, secretOf(in, "absent", goodPassword))).To(Succeed())
		}},
	{name: "refused-config", reasons: []string{v1alpha1.ReasonInvalidConfig, v1alpha1.ReasonPodFailing},
		spoil: func(s *v1alpha1.RedisClusterSpec) {
			s.Config = map[string]v1alpha1.ConfigValue{"maxmemory-policy": "no-such-policy"}
		}},
	{name: "owned-config", reasons: []string{v1alpha1.ReasonInvalidConfig},
		spoil: func(s *v1alpha1.RedisClusterSpec) { s.Config = map[string]v1alpha1.ConfigValue{"appendonly": "yes"} }},
	{name: "clash", reasons: []string{v1alpha1.ReasonNameConflict},
		prepare: func(ctx context.Context, in string) { Expect(api.Create(ctx, strangersMap(in))).To(Succeed()) },
		mend: func(ctx context.Context, in string) {
			stranger := strangersMap(in)
			Expect(api.Get(ctx, client.ObjectKeyFromObject(stranger), stranger)).To(Succeed())
			Expect(stranger.Data).To(Equal(map[string]string{"of": "a stranger"}))
			Expect(stranger.OwnerReferences).To(BeEmpty())
			Expect(api.Delete(ctx, stranger)).To(Succeed())
		}},
	{name: "quota", reasons: []string{v1alpha1.ReasonPodsNotCreated},
		prepare: func(ctx context.Context, in string) { Expect(api.Create(ctx, noPods(in))).To(Succeed()) },
		mend:    func(ctx context.Context, in string) { Expect(api.Delete(ctx, noPods(in))).To(Succeed()) }},
	{name: "no-such-class", reasons: []string{v1alpha1.ReasonVolumeNotBound, v1alpha1.ReasonPodNotScheduled},
		spoil: func(s *v1alpha1.RedisClusterSpec) {
			s.EnablePersistence = new(true)
			s.Storage = &v1alpha1.StorageSpec{Size: new(resource.MustParse("256Mi")), StorageClassName: "e2e-absent"}
		},
		mend: func(ctx context.Context, _ string) { createClass(ctx, "e2e-absent") }},
}

// strangersMap has the name of a child of the RedisCluster "clash".
func strangersMap(in string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: naming.ConfigMap("clash")}, Data: map[string]string{"of": "a stranger"}}
}

func noPods(in string) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: "no-pods"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}}
}

// createClass copies the default StorageClass under a new name.
func createClass(ctx context.Context, name string) {
	GinkgoHelper()
	classes := &storagev1.StorageClassList{}
	Expect(api.List(ctx, classes)).To(Succeed())
	i := slices.IndexFunc(classes.Items, func(class storagev1.StorageClass) bool {
		return class.Annotations["storageclass.kubernetes.io/is-default-class"] == "true"
	})
	Expect(i).To(BeNumerically(">=", 0), "no default StorageClass")
	class := classes.Items[i].DeepCopy()
	class.ObjectMeta = metav1.ObjectMeta{Name: name}
	Expect(api.Create(ctx, class)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(api.Delete(ctx, class)).To(Succeed()) }, NodeTimeout(time.Minute))
}

// They start at the same time, each in a namespace of its own, since each waits
// for the machine and not for the others.
var _ = Describe("A RedisCluster that cannot start", Ordered, ContinueOnFailure, func() {
	clusters := map[string]rediscluster{}
	var namespaces []string

	BeforeAll(func(ctx SpecContext) {
		for _, bad := range badStarts {
			in := newNamespace(ctx)
			namespaces = append(namespaces, in)
			if bad.prepare != nil {
				bad.prepare(ctx, in)
			}
			s := spec(1)
			if bad.spoil != nil {
				bad.spoil(&s)
			}
			clusters[bad.name] = create(ctx, in, bad.name, s)
		}
	}, NodeTimeout(specTimeout))

	It("says why in a condition and an Event, and does not storm", func(ctx SpecContext) {
		for _, bad := range badStarts {
			c := clusters[bad.name]
			now := c.await(ctx, startTimeout, fmt.Sprint("not Ready for ", bad.reasons), func(now *v1alpha1.RedisCluster) bool {
				return slices.ContainsFunc(bad.reasons, func(reason string) bool {
					return conditionIs(now, v1alpha1.ConditionReady, metav1.ConditionFalse, reason)
				})
			})
			GinkgoWriter.Println(describe(now))
		}
		for _, bad := range badStarts {
			c := clusters[bad.name]
			Eventually(func() bool {
				return slices.ContainsFunc(c.eventReasons(ctx), func(event string) bool {
					return slices.ContainsFunc(bad.reasons, func(reason string) bool { return strings.HasSuffix(event, reason) })
				})
			}, noticeTimeout, "500ms").Should(BeTrue(), "no Event of %s says %v", c.key, bad.reasons)
		}
		expectNoStorm(namespaces...)
	}, SpecTimeout(2*specTimeout))

	It("starts by itself within 60 s once it is put right", func(ctx SpecContext) {
		mended := map[string]time.Time{}
		for _, bad := range badStarts {
			c := clusters[bad.name]
			mended[bad.name] = time.Now()
			if bad.mend != nil {
				bad.mend(ctx, c.key.Namespace)
			} else {
				c.change(ctx, func(r *v1alpha1.RedisCluster) { r.Spec = spec(1) })
			}
		}
		for _, bad := range badStarts {
			c := clusters[bad.name]
			c.awaitReady(ctx, time.Until(mended[bad.name].Add(recoveryTimeout)))
			measured(bad.name+" mended → Ready", time.Since(mended[bad.name]).Round(time.Millisecond))
		}
	}, SpecTimeout(specTimeout))

	It("does not hold up the deletion of its namespace", func(ctx SpecContext) {
		from := auditPosition()
		for _, in := range namespaces {
			Expect(api.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: in}})).To(Succeed())
		}
		for _, in := range namespaces {
			Expect(api.AwaitGone(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: in}})).To(Succeed())
			writes, _ := writesSince(from, in)
			Expect(len(writes)).To(BeNumerically("<", 20), "writes in a namespace that is being deleted: %v", writes)
		}
	}, SpecTimeout(specTimeout))
})
