// Package olm tests what a user of the Operator Lifecycle Manager sees: installation
// from a catalog, upgrades under running, writing clients, and what goes wrong.
//
// It needs a Kubernetes with OLM, which KUBECONFIG names, with the images of
// test/olm/releases: make test-olm starts one. The specs are chapters of one story.
package olm

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"seang.org/operator/test/e2e/audit"
	"seang.org/operator/test/e2e/kubeapi"
)

// long is the label of chapters that make test-olm leaves to make test-olm-all.
const long = "long"

// Times that a small, loaded machine needs.
const (
	installTimeout = 3 * time.Minute
	readyTimeout   = 4 * time.Minute
	noticeTimeout  = 90 * time.Second
	specTimeout    = 8 * time.Minute
)

var (
	clusterCount = flag.Int("clusters", 3, "number of RedisClusters that live through the upgrades")
	next         = flag.String("next", "", "version of the working tree")

	api      *kubeapi.API
	auditLog audit.Log
)

func TestLifecycle(t *testing.T) {
	if os.Getenv("KUBECONFIG") == "" || *next == "" {
		t.Skip("needs a Kubernetes with OLM, named in KUBECONFIG, and -next: run make test-olm")
	}
	log.SetLogger(GinkgoLogr)
	RegisterFailHandler(Fail)
	RunSpecs(t, "redis-operator through OLM")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	api, err = kubeapi.Connect()
	Expect(err).NotTo(HaveOccurred())
	Expect(operatorsv1alpha1.AddToScheme(api.Scheme())).To(Succeed())
	Expect(operatorsv1.AddToScheme(api.Scheme())).To(Succeed())
	Expect(apiextensionsv1.AddToScheme(api.Scheme())).To(Succeed())
	auditLog = audit.Log(os.Getenv("AUDIT_LOG"))
	apply(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: kubeapi.OperatorNamespace}})
	uninstall(ctx) // what an interrupted run has left
}, NodeTimeout(installTimeout))

// newNamespace makes a namespace that admits restricted pods only.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	object, err := api.CreateNamespace(ctx, "olm-")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(api.Delete(ctx, object))).To(Succeed())
	}, NodeTimeout(time.Minute))
	return object.Name
}

// apply creates an object, or leaves the one that is there.
func apply(ctx context.Context, object client.Object) {
	GinkgoHelper()
	Expect(client.IgnoreAlreadyExists(api.Create(ctx, object))).To(Succeed())
}

// await waits for an object to be as wanted, and fails with what was last seen of it.
func await[T client.Object](ctx context.Context, object T, within time.Duration, what string, done func(T) bool, show func(T) string) T {
	GinkgoHelper()
	last, err := kubeapi.AwaitGoal(ctx, api, object, kubeapi.Goal[T]{What: what, Within: within, Done: done, Show: show})
	Expect(err).NotTo(HaveOccurred())
	return last
}

// measured shows a figure in the report of the suite.
func measured(what string, value any) { AddReportEntry(what, fmt.Sprint(value)) }
