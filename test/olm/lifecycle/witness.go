package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/test/e2e/audit"
	"seang.org/operator/test/e2e/kubeapi"
	"seang.org/operator/test/e2e/oracle"
)

// Small is a RedisCluster of one primary and one replica, in memory.
func Small(in, name string) *v1alpha1.RedisCluster {
	return &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: name},
		Spec: v1alpha1.RedisClusterSpec{Replicas: 1, MemoryLimit: resource.MustParse("64Mi"), EnablePersistence: new(false)}}
}

// AwaitReady waits until the current spec of each cluster is in force.
func (o *OLM) AwaitReady(ctx context.Context, clusters ...*v1alpha1.RedisCluster) error {
	for _, cluster := range clusters {
		_, err := kubeapi.AwaitGoal(ctx, o.API, cluster.DeepCopy(), kubeapi.Goal[*v1alpha1.RedisCluster]{What: "Ready", Within: ReadyTimeout,
			Done: func(now *v1alpha1.RedisCluster) bool {
				return kubeapi.IsReady(now) && now.Generation >= cluster.Generation
			},
			Show: func(now *v1alpha1.RedisCluster) string { return fmt.Sprintf("%+v", now.Status.Conditions) }})
		if err != nil {
			return err
		}
	}
	return nil
}

// Settle waits until the operator that runs now has acted on every cluster: the default
// durability, written out or left out, is a new generation that changes no child.
func (o *OLM) Settle(ctx context.Context, clusters []*v1alpha1.RedisCluster) error {
	for _, cluster := range clusters {
		if err := o.Get(ctx, client.ObjectKeyFromObject(cluster), cluster); err != nil {
			return fmt.Errorf("read RedisCluster %s: %w", cluster.Name, err)
		}
		before := cluster.DeepCopy()
		if cluster.Spec.Durability == nil {
			cluster.Spec.Durability = &v1alpha1.DurabilitySpec{Mode: v1alpha1.DurabilityDefault}
		} else {
			cluster.Spec.Durability = nil
		}
		if err := o.Patch(ctx, cluster, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("change RedisCluster %s: %w", cluster.Name, err)
		}
	}
	return o.AwaitReady(ctx, clusters...)
}

// RemoveClusters deletes RedisClusters while an operator is there to let go of them.
func (o *OLM) RemoveClusters(ctx context.Context, clusters []*v1alpha1.RedisCluster) error {
	for _, cluster := range clusters {
		if err := o.Delete(ctx, cluster.DeepCopy()); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete RedisCluster %s: %w", cluster.Name, err)
		}
	}
	for _, cluster := range clusters {
		if err := o.AwaitGone(ctx, cluster); err != nil {
			return err
		}
	}
	return nil
}

// Witness watches over RedisClusters of one namespace while the operator changes: each has
// writers.
type Witness struct {
	olm     *OLM
	log     audit.Log
	in      string
	before  []string
	from    audit.Position
	oracles []*oracle.Oracle
}

// Seen is what became of them.
type Seen struct {
	Writes oracle.Report
	// Pause is the longest in which one cluster took no write.
	Pause time.Duration
	// Restarted are the containers that were there and are not any more.
	Restarted []string
	// Children are the operator's writes to what belongs to the RedisClusters.
	Children []audit.Request
}

// Watch starts the writers, and remembers what runs. Round tells the keys of one Witness
// from those of another.
func (o *OLM) Watch(ctx context.Context, log audit.Log, round int, clusters []*v1alpha1.RedisCluster) (*Witness, error) {
	w := &Witness{olm: o, log: log, in: clusters[0].Namespace}
	var err error
	if w.before, err = o.Containers(ctx, client.InNamespace(w.in)); err != nil {
		return nil, err
	}
	for i, cluster := range clusters {
		target, err := oracle.ServiceTarget(ctx, o, client.ObjectKeyFromObject(cluster), naming.PrimaryService(cluster.Name))
		if err != nil {
			return nil, err
		}
		w.oracles = append(w.oracles, oracle.Start(ctx, target,
			oracle.Options{Name: fmt.Sprintf("oracle-%d-%d", round, i), Plain: 1, Confirming: 1, Pace: 20 * time.Millisecond}))
	}
	if err := w.AwaitWrites(ctx); err != nil {
		return nil, err
	}
	for _, each := range w.oracles {
		each.Mark()
	}
	w.from, err = log.End()
	return w, err
}

// AwaitWrites waits until each writer was acknowledged a few times more.
func (w *Witness) AwaitWrites(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, NoticeTimeout, fmt.Errorf("no writes within %s", NoticeTimeout))
	defer cancel()
	for _, each := range w.oracles {
		if err := each.Await(ctx, 10); err != nil {
			return err
		}
	}
	return nil
}

// Finish ends the writers and says what became of everything.
func (w *Witness) Finish(ctx context.Context) (Seen, error) {
	var seen Seen
	if err := w.AwaitWrites(ctx); err != nil {
		return seen, err
	}
	for _, each := range w.oracles {
		seen.Pause = max(seen.Pause, each.Mark())
		report, err := each.Verify(ctx)
		if err = errors.Join(err, each.Discard(ctx)); err != nil {
			return seen, err
		}
		seen.Writes.Add(report)
	}
	after, err := w.olm.Containers(ctx, client.InNamespace(w.in))
	if err != nil {
		return seen, err
	}
	for _, container := range w.before {
		if !slices.Contains(after, container) {
			seen.Restarted = append(seen.Restarted, container)
		}
	}
	seen.Children, err = w.childWrites()
	return seen, err
}

// childWrites are the operator's writes since the beginning, but for Leases, Events and the
// RedisClusters themselves.
func (w *Witness) childWrites() ([]audit.Request, error) {
	requests, err := w.log.Since(w.from)
	if err != nil {
		return nil, err
	}
	writes, _ := audit.Writes(requests, kubeapi.OperatorUser)
	return slices.DeleteFunc(writes, func(r audit.Request) bool {
		return r.Namespace != w.in || r.Resource == "redisclusters" || strings.HasPrefix(r.Name, naming.LeaderElectionID)
	}), nil
}

// Unannounced are the writes to children but for one to each object of the resources that
// are announced.
func (s Seen) Unannounced(announced ...string) []audit.Request {
	once := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(s.Children), func(r audit.Request) bool {
		object := r.Resource + " " + r.Name
		first := !once[object]
		once[object] = true
		return first && slices.Contains(announced, r.Resource)
	})
}

// Unwritten are the resources that are announced to be written, and were not.
func (s Seen) Unwritten(announced ...string) []string {
	return slices.DeleteFunc(slices.Clone(announced), func(resource string) bool {
		return slices.ContainsFunc(s.Children, func(r audit.Request) bool { return r.Resource == resource })
	})
}
