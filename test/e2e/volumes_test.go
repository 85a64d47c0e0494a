package e2e

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/test/e2e/oracle"
)

var _ = Describe("A RedisCluster on volumes", Ordered, func() {
	var c rediscluster

	claims := func(ctx context.Context) map[string]corev1.PersistentVolumeClaim {
		GinkgoHelper()
		list := &corev1.PersistentVolumeClaimList{}
		Expect(api.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels(naming.Selector(c.key.Name)))).To(Succeed())
		found := map[string]corev1.PersistentVolumeClaim{}
		for _, claim := range list.Items {
			found[claim.Name] = claim
		}
		return found
	}

	It("becomes Ready, with a bound volume for each member", func(ctx SpecContext) {
		s := persistentSpec()
		s.Storage.ReclaimPolicy = v1alpha1.ReclaimRetain
		began := time.Now()
		c = create(ctx, namespace, "volumes", s)
		c.awaitReady(ctx, startTimeout)
		measured("created → Ready", time.Since(began).Round(time.Millisecond))
		found := claims(ctx)
		Expect(found).To(HaveLen(3))
		for name, claim := range found {
			Expect(claim.Status.Phase).To(Equal(corev1.ClaimBound), name)
			Expect(claim.OwnerReferences).To(BeEmpty(), "%s would vanish with its owner", name)
		}
		Expect(oracle.Do(ctx, c.primary(ctx), "SET", "key", "value")).To(Equal("OK"))
	}, SpecTimeout(specTimeout))

	It("survives kill -9 of its primary, whose data is kept aside", func(ctx SpecContext) {
		c.failOver(ctx, func(primary *corev1.Pod, _ *traffic, _ func()) { killRedis(primary) })
		By("keeping what the old primary alone may have had")
		c.expectEvent(ctx, "DataKeptAside")
	}, SpecTimeout(specTimeout))

	It("has its data after all pods were deleted at once", func(ctx SpecContext) {
		before := c.pods(ctx)
		began := time.Now()
		for _, pod := range before {
			Expect(api.Delete(ctx, &pod)).To(Succeed())
		}
		for _, pod := range before {
			Expect(api.AwaitGone(ctx, &pod)).To(Succeed())
		}
		c.awaitReady(ctx, startTimeout)
		measured("all deleted → Ready", time.Since(began).Round(time.Millisecond))
		Expect(oracle.Do(ctx, c.primary(ctx), "GET", "key")).To(Equal("value"))
	}, SpecTimeout(specTimeout))

	It("drops the volumes of members that are scaled away, and no others", func(ctx SpecContext) {
		c.change(ctx, func(r *v1alpha1.RedisCluster) { r.Spec.Replicas = 1 })
		c.awaitReady(ctx, startTimeout)
		Eventually(func() []string {
			var names []string
			for name := range claims(ctx) {
				names = append(names, name)
			}
			return names
		}, startTimeout, "200ms").Should(ConsistOf(naming.Claim(c.key.Name, 0), naming.Claim(c.key.Name, 1)))
		Expect(oracle.Do(ctx, c.primary(ctx), "GET", "key")).To(Equal("value"))
	}, SpecTimeout(specTimeout))

	It("leaves its volumes with Retain, and a RedisCluster of its name has the data", func(ctx SpecContext) {
		before := claims(ctx)
		object := c.get(ctx)
		c.delete(ctx)
		after := claims(ctx)
		Expect(after).To(HaveLen(len(before)))
		for name, claim := range after {
			Expect(claim.UID).To(Equal(before[name].UID))
			Expect(claim.DeletionTimestamp).To(BeNil())
		}
		began := time.Now()
		create(ctx, namespace, c.key.Name, object.Spec)
		c.awaitReady(ctx, startTimeout)
		measured("created again → Ready", time.Since(began).Round(time.Millisecond))
		Expect(oracle.Do(ctx, c.primary(ctx), "GET", "key")).To(Equal("value"))
	}, SpecTimeout(specTimeout))

	It("deletes its volumes with Delete", func(ctx SpecContext) {
		c.change(ctx, func(r *v1alpha1.RedisCluster) { r.Spec.Storage.ReclaimPolicy = v1alpha1.ReclaimDelete })
		c.delete(ctx)
		Eventually(func() []string { return children(ctx, c) }, startTimeout, "500ms").Should(BeEmpty(), fmt.Sprintf("children of %s", c.key))
	}, SpecTimeout(specTimeout))
})
