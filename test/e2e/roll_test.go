package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/test/e2e/oracle"
	"seang.org/operator/test/registry"
)

// rollTimeout is for three pods, one after the other.
const rollTimeout = 3 * time.Minute

// Images of other versions than the default, which make images builds.
const (
	olderImage = "docker.io/library/redis:7.0"
	newerImage = "docker.io/library/redis:8.0"
)

// restart asks for new pods.
func (c rediscluster) restart(ctx context.Context, at string) {
	GinkgoHelper()
	c.change(ctx, func(r *v1alpha1.RedisCluster) {
		metav1.SetMetaDataAnnotation(&r.ObjectMeta, naming.AnnotationRestartedAt, at)
	})
}

// uids of the pods, by name.
func (c rediscluster) uids(ctx context.Context) map[string]types.UID {
	GinkgoHelper()
	uids := map[string]types.UID{}
	for name, pod := range c.pods(ctx) {
		uids[name] = pod.UID
	}
	return uids
}

// awaitRolled waits until every pod is another than before and all is as asked.
func (c rediscluster) awaitRolled(ctx context.Context, before map[string]types.UID) {
	GinkgoHelper()
	c.awaitReady(ctx, rollTimeout)
	now := c.uids(ctx)
	Expect(slices.Sorted(maps.Keys(now))).To(Equal(slices.Sorted(maps.Keys(before))))
	for name, uid := range now {
		Expect(uid).NotTo(Equal(before[name]), "%s was not replaced", name)
	}
}

var _ = Describe("A RedisCluster whose pods are replaced", Ordered, ContinueOnFailure, func() {
	var c rediscluster

	// underLoad does something while clients write, and shows that none of their
	// writes is lost.
	underLoad := func(ctx context.Context, do func()) {
		GinkgoHelper()
		o := c.write(ctx)
		began := time.Now()
		do()
		measured("done in", time.Since(began).Round(time.Millisecond))
		verify(ctx, o, true)
	}

	BeforeAll(func(ctx SpecContext) {
		c = create(ctx, namespace, "rolled", spec(2))
		c.awaitReady(ctx, startTimeout)
		Expect(oracle.Do(ctx, c.primary(ctx), "SET", "key", "value")).To(Equal("OK"))
	}, NodeTimeout(specTimeout))

	It("restarts where a person asks, and loses no acknowledged write", func(ctx SpecContext) {
		underLoad(ctx, func() {
			before, epoch := c.uids(ctx), c.get(ctx).Status.Record.Epoch
			c.restart(ctx, "2026-01-01T00:00:00Z")
			c.awaitReason(ctx, noticeTimeout, v1alpha1.ReasonRolling)
			c.awaitRolled(ctx, before)
			Expect(c.get(ctx).Status.Record.Epoch).To(Equal(epoch+1), "the primary moves once")
		})
	}, SpecTimeout(2*rollTimeout))

	It("takes a directive that Redis reads at its start alone, and takes it back", func(ctx SpecContext) {
		databases := func() []string {
			var values []string
			for _, pod := range c.pods(ctx) {
				value, err := oracle.Do(ctx, c.operatorAt(ctx, pod), "CONFIG", "GET", "databases")
				Expect(err).NotTo(HaveOccurred())
				values = append(values, value)
			}
			return values
		}
		for _, value := range []string{"32", "16"} {
			underLoad(ctx, func() {
				before := c.uids(ctx)
				c.change(ctx, func(r *v1alpha1.RedisCluster) {
					r.Spec.Config = map[string]v1alpha1.ConfigValue{"databases": v1alpha1.ConfigValue(value)}
					if value == "16" {
						r.Spec.Config = nil
					}
				})
				c.awaitRolled(ctx, before)
			})
			Expect(databases()).To(HaveEach(ContainSubstring(value)))
		}
	}, SpecTimeout(4*rollTimeout))

	It("touches no member for an image that does not exist, and goes back", func(ctx SpecContext) {
		before := c.uids(ctx)
		underLoad(ctx, func() {
			c.change(ctx, func(r *v1alpha1.RedisCluster) { r.Spec.Image = registry.Absent })
			now := c.awaitReason(ctx, startTimeout, v1alpha1.ReasonImageNotPulled)
			Expect(now.Status.Primary).NotTo(BeEmpty())
			Consistently(func() map[string]types.UID { return c.uids(ctx) }, "5s", "500ms").Should(Equal(before))
			c.change(ctx, func(r *v1alpha1.RedisCluster) { r.Spec.Image = "" })
			c.awaitReady(ctx, rollTimeout)
		})
	}, SpecTimeout(2*rollTimeout))

	It("moves to volumes and back, live", func(ctx SpecContext) {
		for _, persistent := range []bool{true, false} {
			underLoad(ctx, func() {
				before := c.uids(ctx)
				c.change(ctx, func(r *v1alpha1.RedisCluster) {
					r.Spec.EnablePersistence = new(persistent)
					r.Spec.Storage = nil
					if persistent {
						r.Spec.Storage = persistentSpec().Storage
					}
				})
				c.awaitRolled(ctx, before)
			})
			Expect(oracle.Do(ctx, c.primary(ctx), "GET", "key")).To(Equal("value"))
			want := map[bool]int{true: 3, false: 0}[persistent]
			Eventually(func() int { return len(c.claims(ctx)) }, startTimeout, "200ms").Should(Equal(want))
		}
	}, SpecTimeout(4*rollTimeout))

	It("leaves nothing when it is deleted", func(ctx SpecContext) {
		c.delete(ctx)
		Eventually(func() []string { return children(ctx, c) }, startTimeout, "500ms").Should(BeEmpty())
	}, SpecTimeout(specTimeout))

	It("on volumes, restarts without a full copy, and its volumes grow without a restart", func(ctx SpecContext) {
		c = create(ctx, namespace, "grown", persistentSpec())
		c.awaitReady(ctx, startTimeout)
		underLoad(ctx, func() {
			before := c.uids(ctx)
			c.restart(ctx, "2026-01-01T00:00:00Z")
			c.awaitReason(ctx, noticeTimeout, v1alpha1.ReasonRolling)
			c.awaitRolled(ctx, before)
		})
		underLoad(ctx, func() {
			before := c.containers(ctx)
			size := resource.MustParse("768Mi")
			c.change(ctx, func(r *v1alpha1.RedisCluster) { r.Spec.Storage.Size = &size })
			c.awaitReady(ctx, rollTimeout)
			for name, claim := range c.claims(ctx) {
				Expect(claim.Status.Capacity.Storage().Cmp(size)).To(BeNumerically(">=", 0), name)
			}
			Expect(c.containers(ctx)).To(Equal(before))
		})
	}, SpecTimeout(2*rollTimeout))

	It("takes a newer Redis, and refuses one that cannot read the data", func(ctx SpecContext) {
		s := spec(2)
		s.Image = olderImage
		c = create(ctx, namespace, "upgraded", s)
		c.awaitReady(ctx, startTimeout)
		underLoad(ctx, func() {
			before := c.uids(ctx)
			c.change(ctx, func(r *v1alpha1.RedisCluster) { r.Spec.Image = newerImage })
			c.awaitRolled(ctx, before)
			Expect(c.get(ctx).Status.RedisVersion).To(HavePrefix("redis 8."))
		})
		underLoad(ctx, func() {
			before := c.uids(ctx)
			c.change(ctx, func(r *v1alpha1.RedisCluster) { r.Spec.Image = olderImage })
			c.await(ctx, startTimeout, "refused", func(now *v1alpha1.RedisCluster) bool {
				return conditionIs(now, v1alpha1.ConditionSpecAccepted, metav1.ConditionFalse, v1alpha1.ReasonDowngradeRefused)
			})
			c.change(ctx, func(r *v1alpha1.RedisCluster) { r.Spec.Image = newerImage })
			c.awaitReady(ctx, rollTimeout)
			Expect(c.uids(ctx)).To(Equal(before), "pods were replaced")
		})
	}, SpecTimeout(3*rollTimeout))
})

// claims are the volume claims of a cluster, by name.
func (c rediscluster) claims(ctx context.Context) map[string]corev1.PersistentVolumeClaim {
	GinkgoHelper()
	list := &corev1.PersistentVolumeClaimList{}
	Expect(api.List(ctx, list, client.InNamespace(c.key.Namespace), client.MatchingLabels(naming.Selector(c.key.Name)))).To(Succeed(), fmt.Sprint(c.key))
	found := map[string]corev1.PersistentVolumeClaim{}
	for _, claim := range list.Items {
		found[claim.Name] = claim
	}
	return found
}
