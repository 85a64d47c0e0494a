package e2e

import (
	"context"
	"errors"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/test/e2e/kubeapi"
)

// damage overwrites every file that a Redis could load its data from.
const damage = `for file in /data/dump.rdb /data/appendonlydir/*.rdb /data/appendonlydir/*.aof; do
	[ ! -e "$file" ] || printf damaged >"$file"
done`

var _ = Describe("Where the files, the disk or the platform of a RedisCluster fail", Ordered, func() {
	c := ofItsOwn("faults", persistentSpec())

	in := func(ctx context.Context, pod *corev1.Pod, script string) string {
		GinkgoHelper()
		var said strings.Builder
		Expect(api.Exec(ctx, pod, nil, &said, "sh", "-c", script)).To(Succeed())
		return said.String()
	}
	// crashDamaged ends a member's Redis, whose files cannot be loaded then.
	crashDamaged := func(ctx context.Context, pod *corev1.Pod) {
		GinkgoHelper()
		in(ctx, pod, damage)
		killRedis(pod)
	}
	expectSetAside := func(ctx context.Context, name string) {
		GinkgoHelper()
		Expect(in(ctx, c.pod(ctx, name), "echo /data/"+naming.DirUnreadable+"/*")).To(
			Or(ContainSubstring("appendonlydir"), ContainSubstring("dump.rdb")))
	}
	// disturb suspends a process of the platform for as long as act takes.
	disturb := func(ctx context.Context, process string, act func()) {
		GinkgoHelper()
		embedded(ctx, "process", "stop", process)
		defer embedded(context.WithoutCancel(ctx), "process", "cont", process)
		act()
	}

	It("rebuilds a replica whose files are damaged, and keeps them", func(ctx SpecContext) {
		o := c.write(ctx)
		replica := c.get(ctx).Status.InSyncReplicas[0]
		began := time.Now()
		crashDamaged(ctx, c.pod(ctx, replica))
		c.awaitReason(ctx, recoveryTimeout, v1alpha1.ReasonDataUnreadable)
		c.awaitReady(ctx, startTimeout)
		measured("damaged → Ready", time.Since(began).Round(time.Millisecond))
		expectSetAside(ctx, replica)
		c.expectEvent(ctx, v1alpha1.ReasonDataUnreadable)
		verify(ctx, o, true)
	}, SpecTimeout(specTimeout))

	It("promotes a replica where the files of the primary are damaged, and rebuilds it", func(ctx SpecContext) {
		var damaged string
		c.failOver(ctx, func(primary *corev1.Pod, _ *traffic, _ func()) {
			damaged = primary.Name
			crashDamaged(ctx, primary)
		})
		expectSetAside(ctx, damaged)
	}, SpecTimeout(specTimeout))

	It("says that a disk is full, and goes on once there is room", func(ctx SpecContext) {
		o := c.write(ctx)
		primary := c.primaryPod(ctx)
		in(ctx, primary, "dd if=/dev/zero of=/data/filler bs=1M 2>/dev/null; true")
		full := c.awaitReason(ctx, recoveryTimeout, v1alpha1.ReasonNotSaving)
		Expect(meta.IsStatusConditionFalse(full.Status.Conditions, v1alpha1.ConditionAvailable)).To(BeTrue(), describe(full))
		c.expectEvent(ctx, v1alpha1.ReasonNotSaving)
		in(ctx, primary, "rm /data/filler")
		c.awaitReady(ctx, recoveryTimeout)
		verify(ctx, o, true)
		Expect(c.get(ctx).Status.Primary).To(Equal(primary.Name))
	}, SpecTimeout(specTimeout))

	It("goes on while the API server hangs, and acts on what happened meanwhile", func(ctx SpecContext) {
		c.failOver(ctx, func(primary *corev1.Pod, o *traffic, _ func()) {
			disturb(ctx, "kube-apiserver", func() {
				awaitWrites(ctx, o)
				killRedis(primary)
			})
		})
	}, SpecTimeout(specTimeout))

	It("fails over without DNS", func(ctx SpecContext) {
		c.failOver(ctx, func(primary *corev1.Pod, o *traffic, moved func()) {
			disturb(ctx, "coredns", func() {
				killRedis(primary)
				moved()
				awaitWrites(ctx, o)
			})
		})
	}, SpecTimeout(specTimeout))

	It("replaces a primary whose node is cut off, and takes it back", func(ctx SpecContext) {
		DeferCleanup(func(ctx SpecContext) { awaitOperator(ctx) }, NodeTimeout(startTimeout))
		c.failOver(ctx, func(primary *corev1.Pod, o *traffic, moved func()) {
			began := time.Now()
			embedded(ctx, "node", "cut", primary.Spec.NodeName)
			defer func() { Expect(api.HealNode(context.WithoutCancel(ctx), primary.Spec.NodeName)).To(Succeed()) }()
			moved()
			awaitWrites(ctx, o)
			measured("node cut → led by another", time.Since(began).Round(time.Millisecond))
		})
	}, SpecTimeout(specTimeout))
})

// embedded disturbs the embedded Kubernetes; elsewhere the spec is skipped.
func embedded(ctx context.Context, arguments ...string) {
	GinkgoHelper()
	err := kubeapi.Embedded(ctx, arguments...)
	if errors.Is(err, kubeapi.ErrNotEmbedded) {
		Skip("needs a platform that can be disturbed: " + err.Error())
	}
	Expect(err).NotTo(HaveOccurred())
}
