package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/certificate"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis"
	"seang.org/operator/internal/testkit/authority"
	"seang.org/operator/test/e2e/oracle"
)

// inForceTimeout is what the product promises from the change of a Secret on.
const inForceTimeout = 60 * time.Second

// binding is how an application reaches the primary that reads its Secret again whenever
// it connects.
func (c rediscluster) binding(ctx context.Context) oracle.Target {
	GinkgoHelper()
	target, err := oracle.Binding(ctx, api, c.key)
	Expect(err).NotTo(HaveOccurred())
	return target
}

// covering are the names of the cluster.
func (c rediscluster) covering() authority.Change {
	return authority.Hosts(oracle.CertificateHosts(c.key)...)
}

// give writes the Secret with the certificate.
func (c rediscluster) give(ctx context.Context, pair certificate.Pair) {
	GinkgoHelper()
	Expect(oracle.GiveCertificate(ctx, api, c.key, pair)).To(Succeed())
}

// awaitServed waits until every member shows the certificate, and returns how long that
// took.
func (c rediscluster) awaitServed(ctx context.Context, pair certificate.Pair) time.Duration {
	GinkgoHelper()
	took, err := oracle.AwaitServed(ctx, api, c.key, pair)
	Expect(err).NotTo(HaveOccurred())
	return took
}

func (c rediscluster) handshake(ctx context.Context, pod *corev1.Pod, config *tls.Config) (*x509.Certificate, error) {
	return oracle.Handshake(ctx, c.key, pod, config)
}

// newcomers connect through the binding all the time, write, and count what failed.
type newcomers struct {
	stop    context.CancelFunc
	running sync.WaitGroup
	done    int
	failed  []error
}

func (c rediscluster) newcomers(ctx context.Context, target oracle.Target) *newcomers {
	ctx, stop := context.WithCancel(ctx)
	n := &newcomers{stop: stop}
	n.running.Go(func() {
		for ctx.Err() == nil {
			if _, err := oracle.Do(ctx, target, "SET", "newcomer", "1"); err == nil {
				n.done++
			} else if ctx.Err() == nil {
				n.failed = append(n.failed, err)
			}
		}
	})
	return n
}

func (n *newcomers) end() {
	GinkgoHelper()
	n.stop()
	n.running.Wait()
	measured("new connections", fmt.Sprintf("%d, %d failed", n.done, len(n.failed)))
	Expect(n.done).To(BeNumerically(">", 100))
	Expect(n.failed).To(BeEmpty())
}

var _ = Describe("TLS", Label("long"), Ordered, func() {
	var (
		c             rediscluster
		first, second *authority.Authority
		given         certificate.Pair
	)
	turn := func(ctx context.Context, spec *v1alpha1.TLSSpec) {
		GinkgoHelper()
		c.change(ctx, func(r *v1alpha1.RedisCluster) { r.Spec.TLS = spec })
		c.awaitReady(ctx, rollTimeout)
	}
	// whole shows that no write of clients that follow their Secret was lost, while something is
	// done.
	whole := func(ctx context.Context, do func()) {
		GinkgoHelper()
		o := c.writeTo(ctx, c.binding(ctx))
		began := time.Now()
		do()
		measured("done in", time.Since(began).Round(time.Millisecond))
		verify(ctx, o, true)
	}
	// unharmed shows that no command failed and no connection broke.
	unharmed := func(ctx context.Context, do func()) {
		GinkgoHelper()
		target := c.binding(ctx)
		runs++
		o, fresh := oracle.Start(ctx, target, oracle.Options{Name: fmt.Sprintf("oracle-%d", runs), Plain: 2, Confirming: 2, Pace: 2 * time.Millisecond}), c.newcomers(ctx, target)
		do()
		fresh.end()
		report, err := o.Verify(ctx)
		Expect(err).NotTo(HaveOccurred())
		measured("writes", fmt.Sprintf("%+v", report))
		Expect(report.Err(true)).To(Succeed())
		Expect(report.Unanswered).To(BeZero(), "commands that failed")
		Expect(report.Refused).To(BeEmpty())
	}

	BeforeAll(func(ctx SpecContext) {
		first, second = authority.New(GinkgoTB(), "first"), authority.New(GinkgoTB(), "second")
		s := spec(2)
		s.Auth = &v1alpha1.AuthSpec{OverlapSeconds: new(int32(oracle.RotationOverlap))}
		c = create(ctx, namespace, "secured", s)
		c.awaitReady(ctx, startTimeout)
	}, NodeTimeout(specTimeout))

	It("is turned on without the loss of a write, with both ports and then one", func(ctx SpecContext) {
		given = first.Issue(c.covering())
		c.give(ctx, given)
		whole(ctx, func() {
			turn(ctx, &v1alpha1.TLSSpec{SecretName: "secured-given", Plaintext: v1alpha1.PlaintextAllowed})
		})
		c.awaitServed(ctx, given)
		unharmed(ctx, func() { turn(ctx, &v1alpha1.TLSSpec{SecretName: "secured-given"}) })
	}, SpecTimeout(2*rollTimeout))

	It("gets a renewed certificate, and one of another CA, without a failed command", func(ctx SpecContext) {
		at, err := oracle.Services(ctx, api, c.key)
		Expect(err).NotTo(HaveOccurred())
		used, err := oracle.Use(ctx, api, c.key, at, []oracle.Application{
			{Library: "go-redis", User: naming.UserDefault, Pace: 5 * time.Millisecond}, {Library: "rueidis", User: naming.UserDefault, Pace: 5 * time.Millisecond}})
		Expect(err).NotTo(HaveOccurred())
		defer func() {
			for _, usage := range used.Stop() {
				measured("application", fmt.Sprintf("%+v", usage))
				Expect(usage.Failed).To(BeZero(), "%+v", usage)
			}
		}()
		for what, pair := range map[string]certificate.Pair{"renewed": first.Issue(c.covering()), "another CA": second.Issue(c.covering())} {
			unharmed(ctx, func() {
				c.give(ctx, pair)
				measured(what+": in force after", c.awaitServed(ctx, pair).Round(time.Millisecond))
				c.awaitReady(ctx, inForceTimeout)
			})
			given = pair
		}
	}, SpecTimeout(specTimeout))

	It("refuses clients without TLS, those that trust another CA, and certificates that are not good", func(ctx SpecContext) {
		turn(ctx, &v1alpha1.TLSSpec{SecretName: "secured-given", ClientAuth: v1alpha1.ClientAuthOptional})
		// The last to be given says who is trusted.
		own, other := second, first
		if string(given.CA) == string(first.PEM()) {
			own, other = first, second
		}
		past := authority.Between(time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour))
		for _, pod := range c.pods(ctx) {
			_, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(pod.Status.PodIP, fmt.Sprint(redis.Port)))
			Expect(err).To(MatchError(ContainSubstring("refused")), "a client without TLS")
			_, err = c.handshake(ctx, &pod, &tls.Config{RootCAs: certificate.Pair{CA: other.PEM()}.Roots()})
			Expect(err).To(MatchError(ContainSubstring("unknown authority")))
			_, err = c.handshake(ctx, &pod, &tls.Config{RootCAs: given.Roots(), MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10})
			Expect(err).To(HaveOccurred(), "TLS 1.1")
			for what, pair := range map[string]certificate.Pair{"has expired": own.Issue(past), "is another CA's": other.Issue()} {
				_, err = c.handshake(ctx, &pod, withOwn(given, pair))
				Expect(err).To(HaveOccurred(), "a client's certificate that "+what)
			}
			for _, config := range []*tls.Config{withOwn(given, own.Issue()), {RootCAs: given.Roots()}} {
				_, err = c.handshake(ctx, &pod, config)
				Expect(err).NotTo(HaveOccurred())
			}
		}
	}, SpecTimeout(specTimeout))

	It("keeps its certificate when the Secret is broken, and survives the loss of its primary then", func(ctx SpecContext) {
		c.give(ctx, certificate.Pair{Certificate: given.Certificate, Key: first.Issue().Key, CA: given.CA})
		c.await(ctx, inForceTimeout, "refused", func(now *v1alpha1.RedisCluster) bool {
			return conditionIs(now, v1alpha1.ConditionSpecAccepted, metav1.ConditionFalse, v1alpha1.ReasonInvalidCertificate)
		})
		// It is sent after the status.
		Eventually(func() []string { return c.eventReasons(ctx) }, "10s", "100ms").Should(ContainElement(v1alpha1.ReasonInvalidCertificate))
		epoch := c.get(ctx).Status.Record.Epoch
		killRedis(c.primaryPod(ctx))
		c.awaitFailover(ctx, epoch)
		c.give(ctx, given)
		c.awaitReady(ctx, startTimeout)
		c.awaitServed(ctx, given)
		expectNoSecrets(ctx, c)
	}, SpecTimeout(specTimeout))

	It("is turned off without the loss of a write", func(ctx SpecContext) {
		unharmed(ctx, func() {
			turn(ctx, &v1alpha1.TLSSpec{SecretName: "secured-given", Plaintext: v1alpha1.PlaintextAllowed})
		})
		whole(ctx, func() { turn(ctx, nil) })
		Expect(oracle.Do(ctx, c.primary(ctx), "PING")).To(Equal("PONG"))
	}, SpecTimeout(2*rollTimeout))
})

// withOwn is how a client connects that shows a certificate.
func withOwn(trusted, own certificate.Pair) *tls.Config {
	pair, err := tls.X509KeyPair(own.Certificate, own.Key)
	Expect(err).NotTo(HaveOccurred())
	return &tls.Config{RootCAs: trusted.Roots(), GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }}
}
