package e2e

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/test/e2e/oracle"
)

var _ = Describe("The passwords of a RedisCluster", Label("long"), Ordered, func() {
	var (
		c    rediscluster
		used *oracle.Applications
		// replaced are the passwords that were seen.
		replaced []string
	)

	BeforeAll(func(ctx SpecContext) {
		Expect(api.Create(ctx, secretOf(namespace, oracle.GivenSecret, goodPassword))).To(Succeed())
		s := spec(2)
		s.Auth = oracle.RotatingAuth()
		c = create(ctx, namespace, "rotating", s)
		c.awaitReady(ctx, startTimeout)
		var programs []oracle.Application
		for _, library := range []string{"go-redis", "rueidis"} {
			for _, user := range []string{naming.UserDefault, oracle.GeneratedUser, oracle.GivenUser} {
				programs = append(programs, oracle.Application{Library: library, User: user, Pace: 12 * time.Millisecond})
			}
		}
		at, err := oracle.Services(ctx, api, c.key)
		Expect(err).NotTo(HaveOccurred())
		used, err = oracle.Use(context.WithoutCancel(ctx), api, c.key, at, programs)
		Expect(err).NotTo(HaveOccurred())
	}, NodeTimeout(specTimeout))
	AfterAll(func(ctx SpecContext) { c.delete(ctx) }, NodeTimeout(specTimeout))

	DescribeTable("change while applications work", func(ctx SpecContext, credential oracle.Credential) {
		containers := c.containers(ctx)
		r, err := oracle.Rotate(ctx, api, c.key, credential)
		Expect(err).NotTo(HaveOccurred())
		replaced = append(replaced, r.Old, r.New)
		measured(credential.User+": new password in force on every member, old one refused", fmt.Sprint(r.InForce.Round(time.Millisecond), ", ", r.Over.Round(time.Millisecond)))
		Expect(r.InForce).To(BeNumerically("<", time.Minute))
		Expect(c.containers(ctx)).To(Equal(containers))
		c.awaitReady(ctx, recoveryTimeout)
	},
		Entry("of the default user", SpecTimeout(specTimeout), oracle.Credential{User: naming.UserDefault}),
		Entry("of a user whose password is generated", SpecTimeout(specTimeout), oracle.Credential{User: oracle.GeneratedUser}),
		Entry("of a user whose password is in a Secret of the user's own", SpecTimeout(specTimeout), oracle.Credential{User: oracle.GivenUser, Secret: oracle.GivenSecret}),
		Entry("of the operator", SpecTimeout(specTimeout), oracle.Credential{User: naming.UserOperator}),
		Entry("of the replication", SpecTimeout(specTimeout), oracle.Credential{User: naming.UserReplication}),
	)

	It("let no command of an application fail", func(ctx SpecContext) {
		commands := 0
		for _, usage := range used.Stop() {
			Expect(usage.Failed).To(BeZero(), "%+v", usage)
			Expect(usage.Commands).To(BeNumerically(">", 100), "%+v", usage)
			commands += usage.Commands
		}
		measured("commands of applications, none of which failed", commands)
		Expect(c.eventReasons(ctx)).To(ContainElement("PasswordChanged"))
		expectNoSecrets(ctx, c, replaced...)
	}, SpecTimeout(specTimeout))

	It("let a user go whose rules are removed", func(ctx SpecContext) {
		conn, err := oracle.Dial(ctx, userAt(ctx, c, oracle.GeneratedUser))
		Expect(err).NotTo(HaveOccurred())
		defer conn.Close()
		c.change(ctx, func(r *v1alpha1.RedisCluster) { r.Spec.Auth.Users = r.Spec.Auth.Users[1:] })
		Eventually(func() error { _, err := conn.Do(ctx, "GET", "app:x"); return err }, noticeTimeout, "100ms").Should(HaveOccurred())
		c.awaitReady(ctx, recoveryTimeout)
	}, SpecTimeout(specTimeout))
})

// userAt is how an application reaches the primary as a user.
func userAt(ctx context.Context, c rediscluster, user string) oracle.Target {
	GinkgoHelper()
	target := c.primary(ctx)
	target.Username, target.Password = user, string(c.secret(ctx, naming.UserSecret(c.key.Name, user))[naming.KeyPassword])
	return target
}
