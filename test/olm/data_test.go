package olm

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/catalog"
	"seang.org/operator/test/olm/lifecycle"
)

// rediscluster makes a RedisCluster, small and in memory: one primary and one replica.
func rediscluster(ctx context.Context, in, name string) *v1alpha1.RedisCluster {
	GinkgoHelper()
	object := lifecycle.Small(in, name)
	Expect(api.Create(ctx, object)).To(Succeed())
	return object
}

func awaitReady(ctx context.Context, clusters ...*v1alpha1.RedisCluster) {
	GinkgoHelper()
	Expect(api.AwaitReady(ctx, clusters...)).To(Succeed())
}

// settle waits until the operator that runs now has acted on every cluster.
func settle(ctx context.Context, clusters []*v1alpha1.RedisCluster) {
	GinkgoHelper()
	Expect(api.Settle(ctx, clusters)).To(Succeed())
}

func removeClusters(ctx context.Context, clusters []*v1alpha1.RedisCluster) {
	GinkgoHelper()
	Expect(api.RemoveClusters(ctx, clusters)).To(Succeed())
}

// containers tell the running Redis processes of a namespace apart.
func containers(ctx context.Context, in string) []string {
	GinkgoHelper()
	ids, err := api.Containers(ctx, client.InNamespace(in))
	Expect(err).NotTo(HaveOccurred())
	return ids
}

// witness watches over RedisClusters while the operator changes.
type witness struct{ *lifecycle.Witness }

// rounds is how many there were, for the names of their keys.
var rounds int

func watch(ctx context.Context, clusters []*v1alpha1.RedisCluster) witness {
	GinkgoHelper()
	rounds++
	w, err := api.Watch(ctx, auditLog, rounds, clusters)
	Expect(err).NotTo(HaveOccurred())
	return witness{w}
}

func (w witness) awaitWrites(ctx context.Context) {
	GinkgoHelper()
	Expect(w.AwaitWrites(ctx)).To(Succeed())
}

// verify shows that no container was restarted, no write lost, and that the operator
// wrote what is announced: each object of the resources once, and nothing else.
func (w witness) verify(ctx context.Context, announced ...string) {
	GinkgoHelper()
	seen := w.finish(ctx)
	Expect(seen.Unannounced(announced...)).To(BeEmpty(), "the operator wrote to children what %s does not announce", catalog.File)
	Expect(seen.Unwritten(announced...)).To(BeEmpty(), "%s announces writes that there were none of", catalog.File)
}

// verifyUpgrade holds the releases on the way to what they announce.
func (w witness) verifyUpgrade(ctx context.Context, from, to string) {
	GinkgoHelper()
	w.verify(ctx, releases().Writes(from, to)...)
}

// finish shows that no container was restarted and no write lost.
func (w witness) finish(ctx context.Context) lifecycle.Seen {
	GinkgoHelper()
	seen, err := w.Finish(ctx)
	Expect(err).NotTo(HaveOccurred())
	measured("longest pause of writes", seen.Pause.Round(time.Millisecond))
	measured("writes", fmt.Sprintf("%+v", seen.Writes))
	measured("writes to children", len(seen.Children))
	Expect(seen.Writes.Err(true)).To(Succeed())
	Expect(seen.Restarted).To(BeEmpty(), "containers were restarted")
	return seen
}
