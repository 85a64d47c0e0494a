package olm

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/test/e2e/audit"
	"seang.org/operator/test/e2e/kubeapi"
	"seang.org/operator/test/e2e/oracle"
)

// rediscluster makes a RedisCluster, small and in memory: one primary and one replica.
func rediscluster(ctx context.Context, in, name string) *v1alpha1.RedisCluster {
	GinkgoHelper()
	object := small(in, name)
	Expect(api.Create(ctx, object)).To(Succeed())
	return object
}

func small(in, name string) *v1alpha1.RedisCluster {
	return &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: name},
		Spec: v1alpha1.RedisClusterSpec{Replicas: 1, MemoryLimit: resource.MustParse("64Mi"), EnablePersistence: new(false)}}
}

func awaitReady(ctx context.Context, cluster *v1alpha1.RedisCluster) {
	GinkgoHelper()
	await(ctx, cluster.DeepCopy(), readyTimeout, "Ready", func(now *v1alpha1.RedisCluster) bool {
		ready := meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionReady)
		return ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == now.Generation
	}, func(now *v1alpha1.RedisCluster) string { return fmt.Sprintf("%+v", now.Status.Conditions) })
}

// containers tell the running Redis processes of a namespace apart.
func containers(ctx context.Context, in string) []string {
	GinkgoHelper()
	ids, err := api.Containers(ctx, client.InNamespace(in))
	Expect(err).NotTo(HaveOccurred())
	return ids
}

// witness watches over RedisClusters while the operator changes.
type witness struct {
	in      string
	before  []string
	from    audit.Position
	oracles []*oracle.Oracle
}

// runs is how many oracles there were, for the names of their keys.
var runs int

// removeClusters deletes RedisClusters while an operator is there to let go of them.
func removeClusters(ctx context.Context, clusters []*v1alpha1.RedisCluster) {
	GinkgoHelper()
	for _, cluster := range clusters {
		Expect(client.IgnoreNotFound(api.Delete(ctx, cluster.DeepCopy()))).To(Succeed())
	}
	for _, cluster := range clusters {
		Expect(api.AwaitGone(ctx, cluster)).To(Succeed())
	}
}

// watch starts a writer at each of the clusters, which are in one namespace, and
// remembers what runs there.
func watch(ctx context.Context, clusters []*v1alpha1.RedisCluster) *witness {
	GinkgoHelper()
	in := clusters[0].Namespace
	w := &witness{in: in, before: containers(ctx, in)}
	for _, cluster := range clusters {
		target, err := oracle.ServiceTarget(ctx, api, client.ObjectKeyFromObject(cluster), naming.PrimaryService(cluster.Name))
		Expect(err).NotTo(HaveOccurred())
		runs++
		w.oracles = append(w.oracles, oracle.Start(ctx, target,
			oracle.Options{Name: fmt.Sprintf("oracle-%d", runs), Plain: 1, Confirming: 1, Pace: 20 * time.Millisecond}))
	}
	w.awaitWrites(ctx)
	for _, o := range w.oracles {
		o.Mark()
	}
	var err error
	w.from, err = auditLog.End()
	Expect(err).NotTo(HaveOccurred())
	return w
}

// awaitWrites waits until each writer was acknowledged a few times more.
func (w *witness) awaitWrites(ctx context.Context) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeoutCause(ctx, noticeTimeout, fmt.Errorf("no writes within %s", noticeTimeout))
	defer cancel()
	for _, o := range w.oracles {
		Expect(o.Await(ctx, 10)).To(Succeed())
	}
}

// verify shows that no container was restarted, no write lost, and that the operator
// wrote nothing but what is expected: resources by name, of children.
func (w *witness) verify(ctx context.Context, expected ...string) {
	GinkgoHelper()
	w.awaitWrites(ctx)
	var longest time.Duration
	var all oracle.Report
	for _, o := range w.oracles {
		longest = max(longest, o.Mark())
		report, err := o.Verify(ctx)
		Expect(err).NotTo(HaveOccurred())
		all.Add(report)
		Expect(o.Discard(ctx)).To(Succeed())
	}
	measured("longest pause of writes", longest.Round(time.Millisecond))
	measured("writes", fmt.Sprintf("%+v", all))
	Expect(all.Err(true)).To(Succeed())
	Expect(containers(ctx, w.in)).To(Equal(w.before), "containers were restarted")
	var unexpected []string
	for _, r := range w.childWrites() {
		if !slices.Contains(expected, r.Resource) {
			unexpected = append(unexpected, r.String())
		}
	}
	Expect(unexpected).To(BeEmpty(), "the operator wrote to children")
}

// childWrites are the operator's writes since the beginning, but for Leases, Events and
// the RedisClusters themselves.
func (w *witness) childWrites() []audit.Request {
	GinkgoHelper()
	requests, err := auditLog.Since(w.from)
	Expect(err).NotTo(HaveOccurred())
	writes, _ := audit.Writes(requests, kubeapi.OperatorUser)
	return slices.DeleteFunc(writes, func(r audit.Request) bool {
		return r.Namespace != w.in || r.Resource == "redisclusters" || strings.HasPrefix(r.Name, naming.LeaderElectionID)
	})
}

// settle waits until the operator that runs now has acted on every cluster: the default
// durability, written out or left out, is a new generation that changes no child.
func settle(ctx context.Context, clusters []*v1alpha1.RedisCluster) {
	GinkgoHelper()
	for _, cluster := range clusters {
		Expect(api.Get(ctx, client.ObjectKeyFromObject(cluster), cluster)).To(Succeed())
		before := cluster.DeepCopy()
		if cluster.Spec.Durability == nil {
			cluster.Spec.Durability = &v1alpha1.DurabilitySpec{Mode: v1alpha1.DurabilityDefault}
		} else {
			cluster.Spec.Durability = nil
		}
		Expect(api.Patch(ctx, cluster, client.MergeFrom(before))).To(Succeed())
	}
	for _, cluster := range clusters {
		awaitReady(ctx, cluster)
	}
}
