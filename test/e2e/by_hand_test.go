package e2e

import (
	"context"
	"slices"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/plan"
	"seang.org/operator/test/e2e/kubeapi"
	"seang.org/operator/test/e2e/oracle"
)

var _ = Describe("A RedisCluster that a person commands by hand", Ordered, func() {
	c := ofItsOwn("by-hand", persistentSpec())

	replica := func(ctx context.Context) *corev1.Pod {
		GinkgoHelper()
		return c.pod(ctx, c.get(ctx).Status.InSyncReplicas[0])
	}
	// command does what a person can who has the operator's password.
	command := func(ctx context.Context, pod *corev1.Pod, words ...string) {
		GinkgoHelper()
		Expect(oracle.Do(ctx, c.operatorAt(ctx, *pod), words...)).To(Equal("OK"))
	}

	It("keeps its primary where the one that is asked for is not in sync, and where all is asked at once", func(ctx SpecContext) {
		o := c.write(ctx)
		before, hung := c.get(ctx), replica(ctx)
		Expect(kubeapi.Signal(hung, "redis-server", syscall.SIGSTOP)).To(Succeed())
		DeferCleanup(func() { _ = kubeapi.Signal(hung, "redis-server", syscall.SIGCONT) }) // It may go on already.
		c.await(ctx, recoveryTimeout, hung.Name+" out of sync", func(now *v1alpha1.RedisCluster) bool {
			return !slices.Contains(now.Status.InSyncReplicas, hung.Name)
		})
		c.change(ctx, func(r *v1alpha1.RedisCluster) {
			metav1.SetMetaDataAnnotation(&r.ObjectMeta, naming.AnnotationSwitchoverTo, hung.Name)
			metav1.SetMetaDataAnnotation(&r.ObjectMeta, naming.AnnotationAcceptDataLoss, "no-such-process")
		})
		c.await(ctx, noticeTimeout, "asked no more", func(now *v1alpha1.RedisCluster) bool {
			return now.Annotations[naming.AnnotationSwitchoverTo]+now.Annotations[naming.AnnotationAcceptDataLoss] == ""
		})
		c.expectEvent(ctx, "SwitchoverRefused")
		c.expectEvent(ctx, "AcceptDataLossRefused")
		Expect(kubeapi.Signal(hung, "redis-server", syscall.SIGCONT)).To(Succeed())
		now := c.awaitReady(ctx, recoveryTimeout)
		Expect(now.Status.Primary).To(Equal(before.Status.Primary))
		Expect(now.Status.Record.Epoch).To(Equal(before.Status.Record.Epoch))
		verify(ctx, o, true)
	}, SpecTimeout(specTimeout))

	It("takes no second primary, and keeps aside what was written there", func(ctx SpecContext) {
		o := c.write(ctx)
		before, second := c.get(ctx), replica(ctx)
		target := c.primary(ctx)
		target.Address = c.operatorAt(ctx, *second).Address
		began := time.Now()
		command(ctx, second, "REPLICAOF", "NO", "ONE")
		Expect(oracle.Do(ctx, target, "SET", "by-hand", "yes")).To(Equal("OK"))
		Eventually(func() []string { return c.eventReasons(ctx) }, recoveryTimeout, "200ms").Should(ContainElement("DataKeptAside"))
		now := c.awaitReady(ctx, recoveryTimeout)
		measured("second primary → Ready", time.Since(began).Round(time.Millisecond))
		Expect(now.Status.Primary).To(Equal(before.Status.Primary))
		Expect(now.Status.Record.Epoch).To(Equal(before.Status.Record.Epoch))
		Expect(oracle.Do(ctx, c.primary(ctx), "EXISTS", "by-hand")).To(Equal("0"))
		Expect(api.Exec(ctx, second, nil, nil, "sh", "-c", "grep -q by-hand /data/"+naming.FileAside)).To(Succeed())
		report, err := o.Verify(ctx)
		Expect(err).NotTo(HaveOccurred())
		measured("writes", report)
		Expect(report.Err(true)).To(Succeed())
	}, SpecTimeout(specTimeout))

	It("breaks a ring of replicas that follow each other", func(ctx SpecContext) {
		o := c.write(ctx)
		primary, follower := c.primaryPod(ctx), replica(ctx)
		began := time.Now()
		command(ctx, primary, "REPLICAOF", follower.Status.PodIP, "6379")
		awaitWrites(ctx, o)
		c.awaitReady(ctx, recoveryTimeout)
		measured("ring → Ready", time.Since(began).Round(time.Millisecond))
		verify(ctx, o, false)
	}, SpecTimeout(specTimeout))

	It("reads no more from a replica that hangs, and replaces it", Label("long"), func(ctx SpecContext) {
		o := c.write(ctx)
		before, hung := c.get(ctx), replica(ctx)
		began := time.Now()
		Expect(kubeapi.Signal(hung, "redis-server", syscall.SIGSTOP)).To(Succeed())
		Eventually(func() map[string]string { return c.pod(ctx, hung.Name).Labels }, recoveryTimeout, "200ms").ShouldNot(HaveKey(naming.LabelRole))
		measured("hung → out of the Service", time.Since(began).Round(time.Millisecond))
		Eventually(func() bool { now, there := c.pods(ctx)[hung.Name]; return there && now.UID != hung.UID }, plan.ReplicaHangLimit+recoveryTimeout, "200ms").Should(BeTrue())
		c.expectEvent(ctx, "ProcessHung")
		now := c.awaitReady(ctx, startTimeout)
		measured("hung → Ready", time.Since(began).Round(time.Millisecond))
		Expect(now.Status.Primary).To(Equal(before.Status.Primary))
		Expect(now.Status.Record.Epoch).To(Equal(before.Status.Record.Epoch))
		verify(ctx, o, true)
	}, SpecTimeout(2*specTimeout))
})
