package olm

import (
	"context"
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
)

// Somebody edits the role that OLM made of the bundle.
var _ = Describe("An operator that lacks a permission", Ordered, Label(long), func() {
	AfterAll(func(ctx SpecContext) { uninstall(ctx) }, NodeTimeout(installTimeout))

	It("says which, harms nothing, and goes on when it has it again", func(ctx SpecContext) {
		install(ctx, "v"+*next, "candidate")
		awaitVersion(ctx, *next)
		clusters := []*v1alpha1.RedisCluster{rediscluster(ctx, newNamespace(ctx), "limited")}
		awaitReady(ctx, clusters...)
		w := watch(ctx, clusters)

		role := managerRole(ctx)
		complete := role.DeepCopy().Rules
		takeAway(role, "statefulsets", "patch")
		Expect(api.Update(ctx, role)).To(Succeed())
		changeScheduling(ctx, clusters[0], &v1alpha1.SchedulingSpec{NodeSelector: map[string]string{"kubernetes.io/os": "linux"}})
		await(ctx, clusters[0].DeepCopy(), noticeTimeout, "Rejected for want of a permission", func(now *v1alpha1.RedisCluster) bool {
			accepted := meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionSpecAccepted)
			return accepted != nil && accepted.Reason == v1alpha1.ReasonRejected
		}, func(now *v1alpha1.RedisCluster) string { return fmt.Sprintf("%+v", now.Status.Conditions) })
		said := condition(ctx, clusters[0], v1alpha1.ConditionSpecAccepted)
		Expect(said.Message).To(ContainSubstring(`cannot patch resource "statefulsets" in API group "apps"`))
		Expect(condition(ctx, clusters[0], v1alpha1.ConditionAvailable).Status).To(Equal(metav1.ConditionTrue))

		// What runs is unharmed: the change is taken back while the permission is missing.
		changeScheduling(ctx, clusters[0], nil)
		awaitReady(ctx, clusters...)
		Expect(w.finish(ctx).Children).To(HaveEach(HaveField("Resource", "statefulsets")), "but for what was refused")

		changeScheduling(ctx, clusters[0], &v1alpha1.SchedulingSpec{NodeSelector: map[string]string{"kubernetes.io/os": "linux"}})
		role.Rules = complete
		Expect(api.Update(ctx, role)).To(Succeed())
		awaitReady(ctx, clusters...)
		removeClusters(ctx, clusters)
	}, SpecTimeout(specTimeout))
})

// managerRole is what OLM made of the cluster permissions in the bundle.
func managerRole(ctx context.Context) *rbacv1.ClusterRole {
	GinkgoHelper()
	roles := &rbacv1.ClusterRoleList{}
	Expect(api.List(ctx, roles, client.MatchingLabels{"olm.owner": csvName(*next)})).To(Succeed())
	at := slices.IndexFunc(roles.Items, func(r rbacv1.ClusterRole) bool {
		return slices.ContainsFunc(r.Rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, "statefulsets") })
	})
	Expect(at).NotTo(BeNumerically("<", 0), "OLM has made no role with the operator's permissions")
	return &roles.Items[at]
}

func takeAway(role *rbacv1.ClusterRole, resource, verb string) {
	for i, rule := range role.Rules {
		if slices.Contains(rule.Resources, resource) {
			role.Rules[i].Verbs = slices.DeleteFunc(slices.Clone(rule.Verbs), func(v string) bool { return v == verb })
		}
	}
}

func changeScheduling(ctx context.Context, cluster *v1alpha1.RedisCluster, to *v1alpha1.SchedulingSpec) {
	GinkgoHelper()
	Expect(api.Get(ctx, client.ObjectKeyFromObject(cluster), cluster)).To(Succeed())
	before := cluster.DeepCopy()
	cluster.Spec.Scheduling = to
	Expect(api.Patch(ctx, cluster, client.MergeFrom(before))).To(Succeed())
}

func condition(ctx context.Context, cluster *v1alpha1.RedisCluster, kind string) metav1.Condition {
	GinkgoHelper()
	now := cluster.DeepCopy()
	Expect(api.Get(ctx, client.ObjectKeyFromObject(cluster), now)).To(Succeed())
	found := meta.FindStatusCondition(now.Status.Conditions, kind)
	Expect(found).NotTo(BeNil())
	return *found
}
