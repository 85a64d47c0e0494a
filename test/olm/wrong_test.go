package olm

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/test/e2e/kubeapi"
	"seang.org/operator/test/olm/lifecycle"
)

// What docs/olm.md says a user sees, and where.
var _ = Describe("What goes wrong is said", Ordered, ContinueOnFailure, func() {
	AfterEach(func(ctx SpecContext) { uninstall(ctx) }, NodeTimeout(installTimeout))

	It("in the Subscription, of a channel that does not exist", func(ctx SpecContext) {
		install(ctx, "v"+*next, "fast")
		awaitCondition(ctx, operatorsv1alpha1.SubscriptionResolutionFailed, "no operators found in channel fast of package redis-operator")
	}, SpecTimeout(specTimeout))

	It("in the Subscription, of a bundle image that cannot be pulled", Label(long), func(ctx SpecContext) {
		install(ctx, "absent", "candidate")
		awaitCondition(ctx, operatorsv1alpha1.SubscriptionBundleUnpackFailed, "Bundle unpacking failed - DeadlineExceeded")
	}, SpecTimeout(specTimeout))

	It("in the ClusterServiceVersion, of an operator that does not get ready", Label(long), func(ctx SpecContext) {
		install(ctx, "broken", "candidate")
		failed := awaitCSV(ctx, faulty("2"), operatorsv1alpha1.CSVPhaseFailed)
		Expect(failed.Status.Message).To(ContainSubstring(kubeapi.OperatorDeployment))
	}, SpecTimeout(specTimeout))

	It("in the OperatorGroups, of a namespace with two of them", func(ctx SpecContext) {
		useCatalog(ctx, "v"+*next)
		useGroup(ctx)
		second := lifecycle.Group()
		second.Name = "second"
		Expect(api.Create(ctx, second)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(api.Delete(ctx, second))).To(Succeed()) }, NodeTimeout(noticeTimeout))
		subscribe(ctx, "candidate")
		await(ctx, second, noticeTimeout, operatorsv1.MutlipleOperatorGroupCondition, func(now *operatorsv1.OperatorGroup) bool {
			return meta.IsStatusConditionTrue(now.Status.Conditions, operatorsv1.MutlipleOperatorGroupCondition)
		}, func(now *operatorsv1.OperatorGroup) string { return fmt.Sprintf("%+v", now.Status) })
		Expect(installed(ctx)).To(BeEmpty())
	}, SpecTimeout(specTimeout))
})

// What is there already does no harm.
var _ = Describe("What an earlier installation has left", Ordered, Label(long), func() {
	AfterAll(func(ctx SpecContext) { uninstall(ctx) }, NodeTimeout(installTimeout))

	It("an older CRD, and a RedisCluster of it, are taken over", func(ctx SpecContext) {
		install(ctx, "v0.1.0", "candidate")
		awaitVersion(ctx, "0.1.0")
		older := crd(ctx)
		cluster := rediscluster(ctx, newNamespace(ctx), "older")
		awaitReady(ctx, cluster)
		uninstall(ctx)
		install(ctx, "v"+*next, "candidate")
		awaitVersion(ctx, *next)
		Expect(crd(ctx).Spec).NotTo(Equal(older.Spec), "the CRD is still that of 0.1.0")
		settle(ctx, []*v1alpha1.RedisCluster{cluster})
		removeClusters(ctx, []*v1alpha1.RedisCluster{cluster})
	}, SpecTimeout(specTimeout))

	// OLM leaves the CRD when the operator goes: to delete it deletes the RedisClusters,
	// as far as the operator is there to let go of them.
	It("the CRD, deleted while RedisClusters exist, takes them along, but for retained volumes", func(ctx SpecContext) {
		in := newNamespace(ctx)
		kept := retained(ctx, in, "kept")
		awaitReady(ctx, kept)
		uninstall(ctx)
		running := containers(ctx, in)
		definition := crd(ctx)
		Expect(api.Delete(ctx, definition)).To(Succeed())
		Consistently(func() []string { return containers(ctx, in) }, "5s", "1s").Should(Equal(running), "Redis was stopped without an operator")

		subscribe(ctx, "candidate")
		Expect(api.AwaitGone(ctx, kept)).To(Succeed())
		Expect(api.AwaitGone(ctx, definition)).To(Succeed())
		volumes := &corev1.PersistentVolumeClaimList{}
		Expect(api.List(ctx, volumes, client.InNamespace(in))).To(Succeed())
		Expect(volumes.Items).To(HaveLen(2))
	}, SpecTimeout(specTimeout))
})

func crd(ctx context.Context) *apiextensionsv1.CustomResourceDefinition {
	GinkgoHelper()
	definition := &apiextensionsv1.CustomResourceDefinition{}
	Expect(api.Get(ctx, client.ObjectKey{Name: "redisclusters." + naming.Group}, definition)).To(Succeed())
	return definition
}

// retained makes a RedisCluster on volumes that outlive it.
func retained(ctx context.Context, in, name string) *v1alpha1.RedisCluster {
	GinkgoHelper()
	object := lifecycle.Small(in, name)
	object.Spec.EnablePersistence = new(true)
	object.Spec.Storage = &v1alpha1.StorageSpec{ReclaimPolicy: v1alpha1.ReclaimRetain, Size: new(resource.MustParse("64Mi"))}
	Expect(api.Create(ctx, object)).To(Succeed())
	return object
}

// faulty is the version of a release with a fault: the next one's with another end.
func faulty(end string) string { return (*next)[:len(*next)-1] + end }

// awaitCondition waits until the Subscription has a condition with a text.
func awaitCondition(ctx context.Context, kind operatorsv1alpha1.SubscriptionConditionType, text string) {
	GinkgoHelper()
	status := awaitSubscription(ctx, string(kind), func(now operatorsv1alpha1.SubscriptionStatus) bool {
		condition := now.GetCondition(kind)
		return condition.Status == "True"
	})
	Expect(status.GetCondition(kind).Message).To(ContainSubstring(text), fmt.Sprintf("%+v", status.Conditions))
}
