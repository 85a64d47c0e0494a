package olm

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/test/e2e/kubeapi"
)

// The story is told in the mode AllNamespaces; here are the others. Which namespaces the
// operator serves, the OperatorGroup says.
var _ = Describe("The operator serves the namespaces of its OperatorGroup, and no others", Ordered, ContinueOnFailure, Label(long), func() {
	AfterEach(func(ctx SpecContext) { uninstall(ctx) }, NodeTimeout(installTimeout))

	It("OwnNamespace", func(ctx SpecContext) {
		serves(ctx, []string{kubeapi.OperatorNamespace}, newNamespace(ctx))
	}, SpecTimeout(specTimeout))

	It("SingleNamespace", func(ctx SpecContext) {
		serves(ctx, []string{newNamespace(ctx)}, newNamespace(ctx))
	}, SpecTimeout(specTimeout))

	It("MultiNamespace", func(ctx SpecContext) {
		serves(ctx, []string{newNamespace(ctx), newNamespace(ctx)}, newNamespace(ctx))
	}, SpecTimeout(specTimeout))
})

// serves installs the operator for namespaces, and shows that RedisClusters live there
// from beginning to end, and that one elsewhere is left alone.
func serves(ctx context.Context, inside []string, outside string) {
	GinkgoHelper()
	useCatalog(ctx, "v"+*next)
	useGroup(ctx, func(g *operatorsv1.OperatorGroup) { g.Spec.TargetNamespaces = inside })
	subscribe(ctx, "candidate")
	awaitVersion(ctx, *next)
	ignored := rediscluster(ctx, outside, "outside")
	var served []*v1alpha1.RedisCluster
	for _, in := range inside {
		served = append(served, rediscluster(ctx, in, "inside"))
	}
	for _, cluster := range served {
		awaitReady(ctx, cluster)
		Expect(api.Delete(ctx, cluster.DeepCopy())).To(Succeed())
		Expect(api.AwaitGone(ctx, cluster)).To(Succeed())
	}
	Expect(api.Get(ctx, client.ObjectKeyFromObject(ignored), ignored)).To(Succeed())
	Expect(ignored.Status.Conditions).To(BeEmpty())
	Expect(ignored.Finalizers).To(BeEmpty())
}
