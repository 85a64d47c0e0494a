package olm

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/test/e2e/kubeapi"
)

// The names of what a user applies.
const (
	packageName      = "redis-operator"
	catalogNamespace = "olm"
	catalogImage     = "registry.seang.org/redis-operator-catalog:"
)

// useCatalog makes the CatalogSource show the catalog of a tag, and waits until OLM
// reads that one: a release is published.
func useCatalog(ctx context.Context, tag string) {
	GinkgoHelper()
	source := &operatorsv1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: catalogNamespace, Name: packageName}}
	err := api.Get(ctx, client.ObjectKeyFromObject(source), source)
	Expect(client.IgnoreNotFound(err)).To(Succeed())
	source.Spec = operatorsv1alpha1.CatalogSourceSpec{SourceType: operatorsv1alpha1.SourceTypeGrpc, Image: catalogImage + tag,
		DisplayName: "Redis operator", GrpcPodConfig: &operatorsv1alpha1.GrpcPodConfig{SecurityContextConfig: operatorsv1alpha1.Restricted}}
	if err != nil {
		Expect(api.Create(ctx, source)).To(Succeed())
	} else {
		Expect(api.Update(ctx, source)).To(Succeed())
	}
	var since metav1.Time
	Eventually(func(g Gomega) {
		pods := &corev1.PodList{}
		g.Expect(api.List(ctx, pods, client.InNamespace(catalogNamespace), client.MatchingLabels{"olm.catalogSource": packageName})).To(Succeed())
		g.Expect(pods.Items).To(HaveLen(1), "the catalog before it is still served")
		container := pods.Items[0].Spec.Containers[0]
		g.Expect(container.Image).To(Equal(catalogImage + tag))
		g.Expect(pods.Items[0].Status.StartTime).NotTo(BeNil())
		since = *pods.Items[0].Status.StartTime
	}, installTimeout, "500ms").Should(Succeed())
	await(ctx, source, installTimeout, "served", func(now *operatorsv1alpha1.CatalogSource) bool {
		state := now.Status.GRPCConnectionState
		return state != nil && state.LastObservedState == "READY" && !state.LastConnectTime.Before(&since)
	}, func(now *operatorsv1alpha1.CatalogSource) string {
		return fmt.Sprintf("%+v, pod since %s", now.Status.GRPCConnectionState, since)
	})
}

// install asks for the operator of a channel of the catalog with a tag.
func install(ctx context.Context, tag, channel string) {
	GinkgoHelper()
	useCatalog(ctx, tag)
	useGroup(ctx)
	subscribe(ctx, channel)
}

// useGroup makes the operator's namespace one where operators may be installed: for all
// namespaces, unless the group is edited.
func useGroup(ctx context.Context, edits ...func(*operatorsv1.OperatorGroup)) {
	GinkgoHelper()
	group := operatorGroup()
	Expect(client.IgnoreNotFound(api.Delete(ctx, group))).To(Succeed())
	Expect(api.AwaitGone(ctx, group)).To(Succeed())
	group = operatorGroup()
	for _, edit := range edits {
		edit(group)
	}
	Expect(api.Create(ctx, group)).To(Succeed())
}

func operatorGroup() *operatorsv1.OperatorGroup {
	return &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: kubeapi.OperatorNamespace, Name: packageName}}
}

func subscription() *operatorsv1alpha1.Subscription {
	return &operatorsv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: kubeapi.OperatorNamespace, Name: packageName}}
}

// subscribe asks for the operator of a channel.
func subscribe(ctx context.Context, channel string) {
	GinkgoHelper()
	s := subscription()
	s.Spec = &operatorsv1alpha1.SubscriptionSpec{Package: packageName, Channel: channel, CatalogSource: packageName,
		CatalogSourceNamespace: catalogNamespace, InstallPlanApproval: operatorsv1alpha1.ApprovalAutomatic}
	Expect(api.Create(ctx, s)).To(Succeed())
}

// changeSubscription edits the Subscription as a person does.
func changeSubscription(ctx context.Context, edit func(*operatorsv1alpha1.SubscriptionSpec)) {
	GinkgoHelper()
	s := subscription()
	Expect(api.Get(ctx, client.ObjectKeyFromObject(s), s)).To(Succeed())
	before := s.DeepCopy()
	edit(s.Spec)
	Expect(api.Patch(ctx, s, client.MergeFrom(before))).To(Succeed())
}

// awaitSubscription waits for what the Subscription says.
func awaitSubscription(ctx context.Context, what string, done func(operatorsv1alpha1.SubscriptionStatus) bool) operatorsv1alpha1.SubscriptionStatus {
	GinkgoHelper()
	return await(ctx, subscription(), installTimeout, what, func(now *operatorsv1alpha1.Subscription) bool { return done(now.Status) },
		func(now *operatorsv1alpha1.Subscription) string { return fmt.Sprintf("%+v", now.Status) }).Status
}

func csvName(version string) string { return packageName + ".v" + version }

func csv(version string) *operatorsv1alpha1.ClusterServiceVersion {
	return &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: kubeapi.OperatorNamespace, Name: csvName(version)}}
}

// awaitCSV waits until the ClusterServiceVersion of a version is in a phase.
func awaitCSV(ctx context.Context, version string, phase operatorsv1alpha1.ClusterServiceVersionPhase) *operatorsv1alpha1.ClusterServiceVersion {
	GinkgoHelper()
	return await(ctx, csv(version), installTimeout, csvName(version)+" "+string(phase),
		func(now *operatorsv1alpha1.ClusterServiceVersion) bool { return now.Status.Phase == phase },
		func(now *operatorsv1alpha1.ClusterServiceVersion) string {
			return fmt.Sprintf("%s %s: %s\n%+v", now.Status.Phase, now.Status.Reason, now.Status.Message, now.Status.RequirementStatus)
		})
}

// awaitVersion waits until the operator of a version is installed and runs, and
// nothing of the one before is left.
func awaitVersion(ctx context.Context, version string) {
	GinkgoHelper()
	awaitCSV(ctx, version, operatorsv1alpha1.CSVPhaseSucceeded)
	awaitSubscription(ctx, "at "+version, func(now operatorsv1alpha1.SubscriptionStatus) bool { return now.InstalledCSV == csvName(version) })
	Expect(api.AwaitOperator(ctx)).To(Succeed())
	deployment := &appsv1.Deployment{}
	Expect(api.Get(ctx, client.ObjectKey{Namespace: kubeapi.OperatorNamespace, Name: kubeapi.OperatorDeployment}, deployment)).To(Succeed())
	if image := deployment.Spec.Template.Spec.Containers[0].Image; version <= *next {
		Expect(image).To(HaveSuffix(":v" + version)) // later ones are the same program
	}
	Eventually(func() (others []string) {
		for _, name := range installed(ctx) {
			if name != csvName(version) {
				others = append(others, name)
			}
		}
		return others
	}, noticeTimeout, "500ms").Should(BeEmpty())
}

// installed are the names of the ClusterServiceVersions.
func installed(ctx context.Context) []string {
	GinkgoHelper()
	list := &operatorsv1alpha1.ClusterServiceVersionList{}
	Expect(api.List(ctx, list, client.InNamespace(kubeapi.OperatorNamespace))).To(Succeed())
	var names []string
	for _, item := range list.Items {
		if strings.HasPrefix(item.Name, packageName) {
			names = append(names, item.Name)
		}
	}
	return names
}

// uninstall removes the operator as OLM's documentation says: the Subscription, then
// the ClusterServiceVersion. The CRD and the RedisClusters stay.
func uninstall(ctx context.Context) {
	GinkgoHelper()
	Expect(client.IgnoreNotFound(api.Delete(ctx, subscription()))).To(Succeed())
	Expect(api.AwaitGone(ctx, subscription())).To(Succeed())
	Expect(api.DeleteAllOf(ctx, &operatorsv1alpha1.ClusterServiceVersion{}, client.InNamespace(kubeapi.OperatorNamespace))).To(Succeed())
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: kubeapi.OperatorNamespace, Name: kubeapi.OperatorDeployment}}
	ctx, cancel := context.WithTimeout(ctx, noticeTimeout)
	defer cancel()
	Expect(api.AwaitGone(ctx, deployment)).To(Succeed())
	Expect(api.DeleteAllOf(ctx, &operatorsv1alpha1.InstallPlan{}, client.InNamespace(kubeapi.OperatorNamespace))).To(Succeed())
}
