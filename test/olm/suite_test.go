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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"seang.org/operator/test/e2e/audit"
	"seang.org/operator/test/e2e/kubeapi"
	"seang.org/operator/test/olm/lifecycle"
)

// long is the label of chapters that make test-olm leaves to make test-olm-all.
const long = "long"

// Times that a small, loaded machine needs.
const (
	installTimeout = lifecycle.InstallTimeout
	noticeTimeout  = lifecycle.NoticeTimeout
	specTimeout    = 8 * time.Minute
)

var (
	clusterCount = flag.Int("clusters", 3, "number of RedisClusters that live through the upgrades")
	next         = flag.String("next", "", "version of the working tree")

	api      *lifecycle.OLM
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
	connected, err := kubeapi.Connect()
	Expect(err).NotTo(HaveOccurred())
	api, err = lifecycle.Of(ctx, connected)
	Expect(err).NotTo(HaveOccurred())
	auditLog = audit.Log(os.Getenv("AUDIT_LOG"))
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

// await waits for an object to be as wanted, and fails with what was last seen of it.
func await[T client.Object](ctx context.Context, object T, within time.Duration, what string, done func(T) bool, show func(T) string) T {
	GinkgoHelper()
	last, err := kubeapi.AwaitGoal(ctx, api.API, object, kubeapi.Goal[T]{What: what, Within: within, Done: done, Show: show})
	Expect(err).NotTo(HaveOccurred())
	return last
}

// measured shows a figure in the report of the suite.
func measured(what string, value any) { AddReportEntry(what, fmt.Sprint(value)) }
