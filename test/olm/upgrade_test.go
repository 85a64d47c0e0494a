package olm

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/test/e2e/kubeapi"
)

var _ = Describe("The operator, from its first release to the next", Ordered, func() {
	var (
		namespace string
		clusters  []*v1alpha1.RedisCluster
	)

	BeforeAll(func(ctx SpecContext) { namespace = newNamespace(ctx) }, NodeTimeout(noticeTimeout))
	AfterAll(func(ctx SpecContext) { uninstall(ctx) }, NodeTimeout(installTimeout))

	It("is installed from the catalog, and runs RedisClusters", func(ctx SpecContext) {
		useCatalog(ctx, "v0.1.0")
		useGroup(ctx)
		began := time.Now()
		subscribe(ctx, "candidate")
		awaitVersion(ctx, "0.1.0")
		measured("Subscription → Succeeded", time.Since(began).Round(time.Second))
		for i := range *clusterCount {
			clusters = append(clusters, rediscluster(ctx, namespace, fmt.Sprintf("cache-%02d", i)))
		}
		awaitReady(ctx, clusters...)
	}, SpecTimeout(specTimeout))

	It("is upgraded within its channel when a release is published", func(ctx SpecContext) {
		w := watch(ctx, clusters)
		useCatalog(ctx, "v0.2.0")
		awaitVersion(ctx, "0.2.0")
		settle(ctx, clusters)
		w.verifyUpgrade(ctx, "0.1.0", "0.2.0")
	}, SpecTimeout(specTimeout))

	It("is upgraded across channels, from candidate to stable", func(ctx SpecContext) {
		useCatalog(ctx, "latest") // which make catalog-image builds
		w := watch(ctx, clusters)
		changeSubscription(ctx, func(s *operatorsv1alpha1.SubscriptionSpec) { s.Channel = "stable" })
		awaitVersion(ctx, "0.3.0")
		settle(ctx, clusters)
		w.verifyUpgrade(ctx, "0.2.0", "0.3.0")
	}, SpecTimeout(specTimeout))

	It("waits for approval where a person wants to give it", func(ctx SpecContext) {
		changeSubscription(ctx, func(s *operatorsv1alpha1.SubscriptionSpec) {
			s.Channel, s.InstallPlanApproval = "candidate", operatorsv1alpha1.ApprovalManual
		})
		w := watch(ctx, clusters)
		useCatalog(ctx, "v"+*next)
		status := awaitSubscription(ctx, "waiting for approval", func(now operatorsv1alpha1.SubscriptionStatus) bool {
			return now.State == operatorsv1alpha1.SubscriptionStateUpgradePending && now.CurrentCSV == csvName(*next)
		})
		Expect(status.InstalledCSV).To(Equal(csvName("0.3.0")))
		Expect(installed(ctx)).To(ConsistOf(csvName("0.3.0")))

		plan := &operatorsv1alpha1.InstallPlan{}
		Expect(api.Get(ctx, client.ObjectKey{Namespace: kubeapi.OperatorNamespace, Name: status.InstallPlanRef.Name}, plan)).To(Succeed())
		before := plan.DeepCopy()
		plan.Spec.Approved = true
		Expect(api.Patch(ctx, plan, client.MergeFrom(before))).To(Succeed())
		awaitVersion(ctx, *next)
		settle(ctx, clusters)
		w.verifyUpgrade(ctx, "0.3.0", *next)
	}, SpecTimeout(specTimeout))

	It("is removed: the data plane goes on; and adopts it without a write when it is back", func(ctx SpecContext) {
		w := watch(ctx, clusters)
		uninstall(ctx)
		w.awaitWrites(ctx)
		subscribe(ctx, "candidate")
		awaitVersion(ctx, *next)
		settle(ctx, clusters)
		w.verify(ctx)
		removeClusters(ctx, clusters)
	}, SpecTimeout(specTimeout))
})
