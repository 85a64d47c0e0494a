package olm

import (
	"context"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/catalog"
	"seang.org/operator/internal/naming"
	"seang.org/operator/test/e2e/kubeapi"
	"seang.org/operator/test/olm/lifecycle"
)

// Upgrades in one step from each release, without the ones between.
var _ = Describe("Every release is upgraded at once", Ordered, ContinueOnFailure, Label(long), func() {
	AfterEach(func(ctx SpecContext) { uninstall(ctx) }, NodeTimeout(installTimeout))

	for _, release := range released() {
		It("from "+release.Version+" to the next in candidate", func(ctx SpecContext) {
			upgradesAtOnce(ctx, "candidate", release.Version, *next)
		}, SpecTimeout(specTimeout))
	}

	stable := slices.DeleteFunc(released(), func(r catalog.Release) bool { return !slices.Contains(r.Channels, "stable") })
	newest := stable[len(stable)-1].Version
	for _, release := range stable[:len(stable)-1] {
		It("from "+release.Version+" to the newest in stable", func(ctx SpecContext) {
			upgradesAtOnce(ctx, "stable", release.Version, newest)
		}, SpecTimeout(specTimeout))
	}
})

// upgradesAtOnce installs a release when it is the newest, and publishes a later one.
func upgradesAtOnce(ctx context.Context, channel, from, to string) {
	GinkgoHelper()
	install(ctx, "v"+from, channel)
	awaitVersion(ctx, from)
	clusters := []*v1alpha1.RedisCluster{rediscluster(ctx, newNamespace(ctx), "upgraded")}
	awaitReady(ctx, clusters...)
	w := watch(ctx, clusters)
	useCatalog(ctx, "v"+to)
	awaitVersion(ctx, to)
	Expect(planned(ctx)).To(ConsistOf(csvName(from), csvName(to)), "other releases were installed on the way")
	settle(ctx, clusters)
	w.verifyUpgrade(ctx, from, to)
	removeClusters(ctx, clusters)
}

// releases are all of them, the working tree the last.
func releases() catalog.Releases {
	out, next, err := catalog.Read()
	if err != nil {
		panic(err) // while the tree of specs is built nothing else is heard
	}
	return out.With(next)
}

// released are those that are out.
func released() catalog.Releases {
	all := releases()
	return all[:len(all)-1]
}

// planned are the names of what InstallPlans have installed.
func planned(ctx context.Context) (names []string) {
	GinkgoHelper()
	list := &operatorsv1alpha1.InstallPlanList{}
	Expect(api.List(ctx, list, client.InNamespace(kubeapi.OperatorNamespace))).To(Succeed())
	for _, plan := range list.Items {
		names = append(names, plan.Spec.ClusterServiceVersionNames...)
	}
	return names
}

var _ = Describe("An upgrade that cannot go straight on", Ordered, Label(long), func() {
	var (
		namespace string
		clusters  []*v1alpha1.RedisCluster
	)

	BeforeAll(func(ctx SpecContext) { namespace = newNamespace(ctx) }, NodeTimeout(noticeTimeout))
	AfterAll(func(ctx SpecContext) { uninstall(ctx) }, NodeTimeout(installTimeout))

	It("waits while RedisClusters are rolled, and then happens", func(ctx SpecContext) {
		useCatalog(ctx, "v"+*next)
		// So that the release after a broken one is installed: docs/releases.md.
		useGroup(ctx, func(g *operatorsv1.OperatorGroup) {
			g.Spec.UpgradeStrategy = operatorsv1.UpgradeStrategyUnsafeFailForward
		})
		subscribe(ctx, "candidate")
		awaitVersion(ctx, *next)
		for _, name := range []string{"rolled-a", "rolled-b", "rolled-c"} {
			clusters = append(clusters, rediscluster(ctx, namespace, name))
		}
		awaitReady(ctx, clusters...)
		useCatalog(ctx, "later")
		later := lifecycle.CSV(faulty("1"))
		Eventually(func(g Gomega) {
			keepRolling(ctx, clusters)
			g.Expect(api.Get(ctx, client.ObjectKeyFromObject(later), later)).To(Succeed())
			g.Expect(later.Status.Reason).To(Equal(operatorsv1alpha1.CSVReasonOperatorConditionNotUpgradeable))
			g.Expect(later.Status.Message).To(ContainSubstring("rolled-"), "it does not say which RedisCluster is waited for")
		}, installTimeout, "200ms").Should(Succeed())
		began := time.Now()
		awaitVersion(ctx, faulty("1"))
		measured("last roll asked for → upgraded", time.Since(began).Round(time.Second))
	}, SpecTimeout(specTimeout))

	It("a broken release fails, and the next one repairs it; no Redis notices", func(ctx SpecContext) {
		settle(ctx, clusters)
		w := watch(ctx, clusters)
		useCatalog(ctx, "broken")
		failed := awaitCSV(ctx, faulty("2"), operatorsv1alpha1.CSVPhaseFailed)
		Expect(failed.Status.Message).To(ContainSubstring(kubeapi.OperatorDeployment))
		w.awaitWrites(ctx)
		useCatalog(ctx, "repaired")
		awaitVersion(ctx, faulty("3"))
		settle(ctx, clusters)
		w.verify(ctx)
		removeClusters(ctx, clusters)
	}, SpecTimeout(specTimeout))
})

// keepRolling asks for another roll of each cluster that has done with the last one.
func keepRolling(ctx context.Context, clusters []*v1alpha1.RedisCluster) {
	GinkgoHelper()
	for _, cluster := range clusters {
		Expect(api.Get(ctx, client.ObjectKeyFromObject(cluster), cluster)).To(Succeed())
		if !meta.IsStatusConditionTrue(cluster.Status.Conditions, v1alpha1.ConditionReady) {
			continue
		}
		before := cluster.DeepCopy()
		metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, naming.AnnotationRestartedAt, time.Now().Format(time.RFC3339Nano))
		Expect(api.Patch(ctx, cluster, client.MergeFrom(before))).To(Succeed())
	}
}
