package olm

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"seang.org/operator/test/olm/lifecycle"
)

// install asks for the operator of a channel of the catalog with a tag.
func install(ctx context.Context, tag, channel string) {
	GinkgoHelper()
	useCatalog(ctx, tag)
	useGroup(ctx)
	subscribe(ctx, channel)
}

func useCatalog(ctx context.Context, tag string) {
	GinkgoHelper()
	Expect(api.UseCatalog(ctx, tag)).To(Succeed())
}

func useGroup(ctx context.Context, edits ...func(*operatorsv1.OperatorGroup)) {
	GinkgoHelper()
	Expect(api.UseGroup(ctx, edits...)).To(Succeed())
}

func subscribe(ctx context.Context, channel string) {
	GinkgoHelper()
	Expect(api.Subscribe(ctx, channel)).To(Succeed())
}

func changeSubscription(ctx context.Context, edit func(*operatorsv1alpha1.SubscriptionSpec)) {
	GinkgoHelper()
	Expect(api.ChangeSubscription(ctx, edit)).To(Succeed())
}

func awaitSubscription(ctx context.Context, what string, done func(operatorsv1alpha1.SubscriptionStatus) bool) operatorsv1alpha1.SubscriptionStatus {
	GinkgoHelper()
	status, err := api.AwaitSubscription(ctx, what, done)
	Expect(err).NotTo(HaveOccurred())
	return status
}

func awaitCSV(ctx context.Context, version string, phase operatorsv1alpha1.ClusterServiceVersionPhase) *operatorsv1alpha1.ClusterServiceVersion {
	GinkgoHelper()
	found, err := api.AwaitCSV(ctx, version, phase)
	Expect(err).NotTo(HaveOccurred())
	return found
}

// awaitVersion waits until the operator of a version is installed and runs.
func awaitVersion(ctx context.Context, version string) {
	GinkgoHelper()
	Expect(api.AwaitVersion(ctx, version)).To(Succeed())
	if version <= *next { // later ones are the same program
		image, err := api.Image(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(image).To(HaveSuffix(":v" + version))
	}
}

func installed(ctx context.Context) []string {
	GinkgoHelper()
	names, err := api.Installed(ctx)
	Expect(err).NotTo(HaveOccurred())
	return names
}

func uninstall(ctx context.Context) {
	GinkgoHelper()
	Expect(api.Uninstall(ctx)).To(Succeed())
}

func csvName(version string) string { return lifecycle.CSVName(version) }
