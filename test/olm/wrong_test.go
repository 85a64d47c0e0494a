package olm

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"seang.org/operator/test/e2e/kubeapi"
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
		failed := awaitCSV(ctx, faulty("1"), operatorsv1alpha1.CSVPhaseFailed)
		Expect(failed.Status.Message).To(ContainSubstring(kubeapi.OperatorDeployment))
	}, SpecTimeout(specTimeout))
})

// install asks for the operator of a channel of the catalog with a tag.
func install(ctx context.Context, tag, channel string) {
	GinkgoHelper()
	useCatalog(ctx, tag)
	useGroup(ctx)
	subscribe(ctx, channel)
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
