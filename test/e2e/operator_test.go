package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/test/e2e/kubeapi"
)

// operatorPods are those of the operator's deployment.
func operatorPods(ctx context.Context) []corev1.Pod {
	GinkgoHelper()
	pods, err := api.OperatorPods(ctx)
	Expect(err).NotTo(HaveOccurred())
	return pods
}

// awaitOperator waits until each operator pod of the deployment is available.
func awaitOperator(ctx context.Context) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("the operator is not available within %s", startTimeout))
	defer cancel()
	Expect(api.AwaitOperator(ctx)).To(Succeed())
}

// metricsURLs are where the operator's pods serve metrics.
func metricsURLs(ctx context.Context) []string {
	GinkgoHelper()
	service := &corev1.Service{}
	Expect(api.Get(ctx, client.ObjectKey{Namespace: kubeapi.OperatorNamespace, Name: metricsService}, service)).To(Succeed())
	var urls []string
	for _, pod := range operatorPods(ctx) {
		urls = append(urls, fmt.Sprintf("https://%s:%d/metrics", pod.Status.PodIP, service.Spec.Ports[0].Port))
	}
	return urls
}

var _ = Describe("The operator", Ordered, ContinueOnFailure, func() {
	var c rediscluster

	BeforeAll(func(ctx SpecContext) {
		c = create(ctx, namespace, "operated", spec(1))
		c.awaitReady(ctx, startTimeout)
	}, NodeTimeout(specTimeout))
	AfterAll(func(ctx SpecContext) { c.delete(ctx) }, NodeTimeout(specTimeout))

	It("shows its metrics to those who may read them, and to nobody else", func(ctx SpecContext) {
		urls := metricsURLs(ctx)
		status, _ := scrape(ctx, urls[0], "")
		Expect(status).To(BeElementOf(http.StatusUnauthorized, http.StatusForbidden))

		status, _ = scrape(ctx, urls[0], tokenOf(ctx, "stranger"))
		Expect(status).To(Equal(http.StatusForbidden))

		// Another account than the stranger: the operator remembers a refusal for 30 s.
		token := tokenOf(ctx, "scraper")

		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-scraper-"},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: metricsRole},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "scraper"}}}
		Expect(api.Create(ctx, binding)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(api.Delete(ctx, binding)).To(Succeed()) }, NodeTimeout(time.Minute))
		// The leader alone has the figures of the cluster.
		Eventually(func() (ours []string) {
			for _, url := range metricsURLs(ctx) {
				_, text := scrape(ctx, url, token)
				for line := range strings.Lines(text) {
					if strings.HasPrefix(line, "redis_operator_cluster_") {
						ours = append(ours, line)
					}
				}
			}
			return ours
		}, noticeTimeout, "500ms").Should(ContainElement(ContainSubstring(`name="operated",namespace="` + namespace + `"`)))
	}, SpecTimeout(specTimeout))

	It("writes nothing when it is restarted", func(ctx SpecContext) {
		from := auditPosition()
		before := c.containers(ctx)
		for _, pod := range operatorPods(ctx) {
			Expect(api.Delete(ctx, &pod)).To(Succeed())
			Expect(api.AwaitGone(ctx, &pod)).To(Succeed())
		}
		awaitOperator(ctx)
		Consistently(func() int {
			writes, events := writesSince(from, "")
			return len(writes) + len(events)
		}, "10s", "1s").Should(BeZero(), func() string { return describeWrites(from) })
		// It does look at the cluster: a change is acted upon.
		c.change(ctx, func(r *v1alpha1.RedisCluster) {
			r.Spec.Config = map[string]v1alpha1.ConfigValue{"slowlog-max-len": "64"}
		})
		c.awaitReady(ctx, startTimeout)
		Expect(c.containers(ctx)).To(Equal(before))
		settled := auditPosition()
		Consistently(func() int {
			writes, _ := writesSince(settled, "")
			return len(writes)
		}, "5s", "1s").Should(BeZero(), func() string { return describeWrites(settled) })
	}, SpecTimeout(specTimeout))

	It("acts again soon after its leader is killed", func(ctx SpecContext) {
		old, err := api.Leader(ctx)
		Expect(err).NotTo(HaveOccurred())
		began := time.Now()
		Expect(kubeapi.Kill(old, kubeapi.OperatorProgram)).To(Succeed())
		Expect(api.AwaitLeader(ctx, old.Name)).To(Succeed())
		measured("leader killed → another leads", time.Since(began).Round(time.Millisecond))
		c.failOver(ctx, func(primary *corev1.Pod, _ *traffic, _ func()) { killRedis(primary) })
		awaitOperator(ctx)
	}, SpecTimeout(specTimeout))
})

// scrape reads metrics with a token; without one if it is empty. The endpoint
// has a certificate of its own making.
func scrape(ctx context.Context, url, token string) (status int, text string) {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	Expect(err).NotTo(HaveOccurred())
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close() //nolint:errcheck // Read to its end.
	body, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	return response.StatusCode, string(body)
}

// tokenOf makes a service account, and a token of it.
func tokenOf(ctx context.Context, name string) string {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	Expect(api.Create(ctx, account)).To(Succeed())
	token, err := api.Typed.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return token.Status.Token
}
