// Package e2e tests what a user sees of the operator on a real Kubernetes, which
// KUBECONFIG names and on which the operator is installed. The tests run where
// the addresses of Services route.
package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"seang.org/operator/internal/naming"
	"seang.org/operator/test/e2e/audit"
	"seang.org/operator/test/e2e/kubeapi"
)

// What config/default installs for those who read the metrics.
const (
	metricsService = kubeapi.OperatorDeployment + "-metrics"
	metricsRole    = "redis-operator-metrics-reader"
)

// envAuditLog is the path of the API server's audit log, if it can be read.
const envAuditLog = "AUDIT_LOG"

// Times that a small, loaded machine needs.
const (
	// startTimeout is from the creation of pods to Ready.
	startTimeout = 90 * time.Second
	// recoveryTimeout is what the product promises once a spec is put right.
	recoveryTimeout = 60 * time.Second
	// noticeTimeout is from a change to what the status says of it.
	noticeTimeout = 30 * time.Second
	// specTimeout bounds each spec that says nothing else.
	specTimeout = 3 * time.Minute
)

var (
	api       *kubeapi.API
	namespace string
	auditLog  audit.Log
)

func TestEndToEnd(t *testing.T) {
	if os.Getenv("KUBECONFIG") == "" {
		t.Skip("needs a Kubernetes with the operator installed, named in KUBECONFIG: run make test-e2e")
	}
	log.SetLogger(GinkgoLogr)
	RegisterFailHandler(Fail)
	RunSpecs(t, "redis-operator")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	api, err = kubeapi.Connect()
	Expect(err).NotTo(HaveOccurred())
	auditLog = audit.Log(os.Getenv(envAuditLog))
	awaitOperator(ctx)
	namespace = newNamespace(ctx)
}, NodeTimeout(2*time.Minute))

// What explains a failure is gone with the cluster soon after.
var _ = JustAfterEach(func(ctx SpecContext) {
	if !CurrentSpecReport().Failed() {
		return
	}
	for what, command := range map[string]string{
		"pods":                "kubectl get pods -A -o wide",
		"Events":              "kubectl get events -A --sort-by=.lastTimestamp | tail -n 60",
		"log of the operator": "kubectl logs -n " + kubeapi.OperatorNamespace + " -l " + labels.FormatLabels(naming.OperatorPods()) + " --prefix --tail=300",
	} {
		said, err := exec.CommandContext(ctx, "sh", "-c", command).CombinedOutput()
		AddReportEntry(what, fmt.Sprintf("%s\n%s", said, errors.Join(err)), ReportEntryVisibilityFailureOrVerbose)
	}
}, NodeTimeout(time.Minute))

// newNamespace makes a namespace that admits restricted pods only, and is
// removed after the suite.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	object, err := api.CreateNamespace(ctx, "e2e-")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(api.Delete(ctx, object))).To(Succeed())
	}, NodeTimeout(time.Minute))
	return object.Name
}

// writesSince are the writes of the operator that concern a namespace since a
// position of the audit log, and its Events; all namespaces if it is empty.
// Those about the Lease are left out, as the Lease is.
func writesSince(from audit.Position, in string) (writes, events []audit.Request) {
	GinkgoHelper()
	requests, err := auditLog.Since(from)
	Expect(err).NotTo(HaveOccurred())
	var here []audit.Request
	for _, r := range requests {
		if (in == "" || r.Namespace == in) && !strings.HasPrefix(r.Name, naming.LeaderElectionID) {
			here = append(here, r)
		}
	}
	return audit.Writes(here, kubeapi.OperatorUser)
}

// auditPosition skips the spec where the audit log cannot be read.
func auditPosition() audit.Position {
	GinkgoHelper()
	if auditLog == "" {
		Skip("needs the API server's audit log, named in " + envAuditLog)
	}
	position, err := auditLog.End()
	Expect(err).NotTo(HaveOccurred())
	return position
}

// measured shows a figure in the report of the suite.
func measured(what string, value any) { AddReportEntry(what, fmt.Sprint(value)) }
