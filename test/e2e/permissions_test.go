package e2e

import (
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/test/e2e/audit"
	"seang.org/operator/test/e2e/kubeapi"
)

// unseen says whether a permission is needed, and leaves no trace in an audit log.
func unseen(permission string, unused []string) bool {
	// What is watched is listed where the API server does not stream the list.
	if what, list := strings.CutPrefix(permission, "list "); list {
		return !slices.Contains(unused, "watch "+what)
	}
	// The embedded cluster has no cert-manager: make test-cert-manager shows these.
	if strings.HasSuffix(permission, " certificates.cert-manager.io") {
		return true
	}
	// The admission plugin OwnerReferencesPermissionEnforcement, which some clusters have,
	// asks for it where a child names its owner with blockOwnerDeletion.
	return permission == "update redisclusters/finalizers.cache.seang.org"
}

// After the whole suite, each permission of the operator was used.
var _ = ReportAfterSuite("The operator has no permission that it does not use", func(ctx SpecContext, report Report) {
	if !report.SuiteSucceeded || auditLog == "" || !slices.ContainsFunc(report.SpecReports, func(r SpecReport) bool { return r.State == types.SpecStatePassed }) ||
		slices.ContainsFunc(report.SpecReports, func(r SpecReport) bool {
			return r.State == types.SpecStateSkipped && r.LeafNodeType == types.NodeTypeIt
		}) {
		return // a part of the suite shows nothing
	}
	requests, err := auditLog.Since(0)
	Expect(err).NotTo(HaveOccurred())
	all := audit.Unused(granted(ctx), requests, kubeapi.OperatorUser)
	unused := slices.DeleteFunc(slices.Clone(all), func(p string) bool { return unseen(p, all) })
	Expect(unused).To(BeEmpty(), "remove these markers +kubebuilder:rbac, or test what needs them")
})

// granted are the rules of the operator's roles.
func granted(ctx SpecContext) []rbacv1.PolicyRule {
	GinkgoHelper()
	var rules []rbacv1.PolicyRule
	for _, name := range []string{"manager", "metrics-auth"} {
		role := &rbacv1.ClusterRole{}
		Expect(api.Get(ctx, client.ObjectKey{Name: fmt.Sprintf("redis-operator-%s-role", name)}, role)).To(Succeed())
		rules = append(rules, role.Rules...)
	}
	role := &rbacv1.Role{}
	Expect(api.Get(ctx, client.ObjectKey{Namespace: kubeapi.OperatorNamespace, Name: "redis-operator-leader-election-role"}, role)).To(Succeed())
	return append(rules, role.Rules...)
}
