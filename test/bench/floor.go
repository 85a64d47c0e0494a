package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis"
	"seang.org/operator/internal/redis/admin"
	"seang.org/operator/test/e2e/oracle"
)

// floorRuns is how often at most a floor is measured.
const floorRuns = 20

// floor is a primary with replicas and a Service that no operator looks after. The
// benchmark moves its primary with the fewest steps that do so at all, without
// proofs and without a record.
type floor struct {
	*subject
	set     *appsv1.StatefulSet
	service *corev1.Service
	pods    []*corev1.Pod
	primary int
	pool    *admin.Pool
	lost    chan admin.Key
	login   admin.Credentials
}

// newFloor makes the same pods as those of the model, with a Service of their own.
func (c *subject) newFloor(ctx context.Context) (*floor, error) {
	original := &appsv1.StatefulSet{}
	if err := c.api.Get(ctx, client.ObjectKey{Namespace: c.key.Namespace, Name: naming.StatefulSet(c.key.Name)}, original); err != nil {
		return nil, fmt.Errorf("read the StatefulSet to copy: %w", err)
	}
	model, err := c.pod(ctx, naming.Pod(c.key.Name, 0))
	if err != nil {
		return nil, err
	}
	login, err := oracle.OperatorTarget(ctx, c.api, c.key, model)
	if err != nil {
		return nil, err
	}
	f := &floor{subject: c, set: bareStatefulSet(original, c.key.Name+"-floor"), lost: make(chan admin.Key, 100),
		login: admin.Credentials{User: login.Username, Password: login.Password}}
	f.pool = admin.NewPool(func(key admin.Key) { f.lost <- key })
	f.service = floorService(f.set)
	if err := errors.Join(c.api.Create(ctx, f.set), c.api.Create(ctx, f.service)); err != nil {
		return nil, fmt.Errorf("create what the floor is measured with: %w", err)
	}
	if err := c.wire(ctx, f.set.Name, login.Password); err != nil {
		return nil, err
	}
	for _, name := range members(f.set.Name) {
		pod, err := c.pod(ctx, name)
		if err != nil {
			return nil, err
		}
		f.pods = append(f.pods, pod)
	}
	return f, nil
}

// floorService selects the first pod of the set.
func floorService(set *appsv1.StatefulSet) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: set.Name, Labels: set.Labels},
		Spec: corev1.ServiceSpec{PublishNotReadyAddresses: true, Selector: map[string]string{naming.LabelPodName: naming.Pod(set.Name, 0)},
			Ports: []corev1.ServicePort{{Port: naming.PortRedis, TargetPort: intstr.FromString(naming.PortNameRedis)}}}}
}

func (f *floor) remove(ctx context.Context) error {
	f.pool.Close()
	if err := f.api.Delete(ctx, f.service); err != nil {
		return fmt.Errorf("delete Service %s: %w", f.service.Name, err)
	}
	return f.deleteWithPods(ctx, f.set, f.set.Spec.Selector.MatchLabels)
}

// start begins to write through the Service.
func (f *floor) start(ctx context.Context, options oracle.Options) (*oracle.Oracle, error) {
	target := f.subject.service
	target.Address = admin.Address(f.service.Spec.ClusterIP, false)
	o := oracle.Start(ctx, target, options)
	return o, awaitWrites(ctx, o)
}

// awaitConnected connects once every process listens, which nothing announces.
func (f *floor) awaitConnected(ctx context.Context) (connected []*admin.Member, err error) {
	late := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, recoveryTimeout, true, func(ctx context.Context) (bool, error) {
		connected, err = f.connect(ctx)
		return err == nil, nil
	})
	if late != nil {
		return nil, errors.Join(late, err)
	}
	return connected, nil
}

// connect returns connections to all pods, the primary's first.
func (f *floor) connect(ctx context.Context) ([]*admin.Member, error) {
	var connected []*admin.Member
	for i := range f.pods {
		pod := f.pods[(f.primary+i)%len(f.pods)]
		member, err := f.pool.Connect(ctx, admin.Target{Key: admin.Key{Namespace: pod.Namespace, Pod: pod.Name, UID: string(pod.UID)},
			Address: admin.Address(pod.Status.PodIP, false), Credentials: f.login})
		if err != nil {
			return nil, fmt.Errorf("connect to pod %s: %w", pod.Name, err)
		}
		connected = append(connected, member)
	}
	return connected, nil
}

// point makes the Service select the primary.
func (f *floor) point(ctx context.Context) error {
	patch := fmt.Appendf(nil, `{"spec":{"selector":{%q:%q}}}`, naming.LabelPodName, f.pods[f.primary].Name)
	if err := f.api.Patch(ctx, f.service.DeepCopy(), client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("point Service %s: %w", f.service.Name, err)
	}
	return nil
}

// follow makes a member follow the primary.
func (f *floor) follow(ctx context.Context, m *admin.Member) error {
	return m.Follow(ctx, f.pods[f.primary].Status.PodIP, false)
}

// crash kills the primary's process, promotes the most advanced of the others once
// the connection breaks, and makes all whole again.
func (f *floor) crash(ctx context.Context, o *oracle.Oracle) (recovery, error) {
	if err := f.proxies.awaitRest(ctx); err != nil {
		return recovery{}, err
	}
	connected, err := f.connect(ctx)
	if err != nil {
		return recovery{}, err
	}
	dead := f.pods[f.primary]
	killed, err := f.killUnderLoad(ctx, o, dead)
	if err != nil {
		return recovery{}, err
	}
	if err := f.awaitLoss(ctx, dead.Name); err != nil {
		return recovery{}, err
	}
	promoted, err := f.promote(ctx, connected[1:])
	if err != nil {
		return recovery{}, err
	}
	if err := f.point(ctx); err != nil {
		return recovery{}, err
	}
	writable, err := o.FirstSince(ctx, killed)
	if err != nil {
		return recovery{}, err
	}
	took := recovery{at: killed, promoted: promoted.Sub(killed), writable: writable.Sub(killed)}
	return took, f.restore(ctx, dead)
}

// awaitLoss waits until the connection to a pod breaks.
func (f *floor) awaitLoss(ctx context.Context, pod string) error {
	for {
		select {
		case key := <-f.lost:
			if key.Pod == pod {
				return nil
			}
		case <-ctx.Done():
			return fmt.Errorf("wait for the end of %s: %w", pod, context.Cause(ctx))
		}
	}
}

// promote makes the most advanced of the two replicas the primary, and the other
// follow it.
func (f *floor) promote(ctx context.Context, rest []*admin.Member) (time.Time, error) {
	best, most := 0, int64(-1)
	for i, m := range rest {
		info, err := m.Info(ctx)
		if err != nil {
			return time.Time{}, err
		}
		if info.Offset > most {
			best, most = i, info.Offset
		}
	}
	if err := rest[best].Promote(ctx); err != nil {
		return time.Time{}, err
	}
	at := f.clock.Now()
	f.primary = (f.primary + 1 + best) % len(f.pods)
	for i, m := range rest {
		if i != best {
			if err := f.follow(ctx, m); err != nil {
				return at, err
			}
		}
	}
	return at, nil
}

// restore replaces the pod that was killed and waits until all are in sync.
func (f *floor) restore(ctx context.Context, dead *corev1.Pod) error {
	if err := f.replace(ctx, dead); err != nil {
		return err
	}
	pod, err := f.pod(ctx, dead.Name)
	if err != nil {
		return err
	}
	f.pods[slices.Index(f.pods, dead)] = pod
	connected, err := f.awaitConnected(ctx)
	if err != nil {
		return err
	}
	for _, m := range connected[1:] {
		if err := f.follow(ctx, m); err != nil {
			return err
		}
	}
	return f.awaitLinks(ctx, connected[1:])
}

// awaitLinks waits until the replicas follow their primary. Redis does not announce it.
func (f *floor) awaitLinks(ctx context.Context, replicas []*admin.Member) error {
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, recoveryTimeout, true, func(ctx context.Context) (bool, error) {
		for _, m := range replicas {
			if info, err := m.Info(ctx); err != nil || info.Role != redis.RoleReplica || !info.LinkUp {
				return false, err
			}
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("wait until the replicas follow: %w", err)
	}
	return nil
}

// handOver moves the primary to the next pod, in the order of safety rule 6, and
// returns the longest time in which no write was acknowledged.
func (f *floor) handOver(ctx context.Context, o *oracle.Oracle) (time.Duration, error) {
	if err := f.proxies.awaitRest(ctx); err != nil {
		return 0, err
	}
	connected, err := f.connect(ctx)
	if err != nil {
		return 0, err
	}
	if err := f.awaitLinks(ctx, connected[1:]); err != nil {
		return 0, err
	}
	o.Mark()
	if err := awaitWrites(ctx, o); err != nil {
		return 0, err
	}
	from, to := connected[0], connected[1]
	if err := f.demote(ctx, from, to); err != nil {
		return 0, err
	}
	if err := to.Promote(ctx); err != nil {
		return 0, err
	}
	f.primary = (f.primary + 1) % len(f.pods)
	if err := f.follow(ctx, from); err != nil {
		return 0, err
	}
	if err := f.point(ctx); err != nil {
		return 0, err
	}
	if err := from.KillNormalClients(ctx); err != nil {
		return 0, err
	}
	if err := f.follow(ctx, connected[2]); err != nil {
		return 0, err
	}
	// Where a proxy follows late, the writer gets READONLY and connects again.
	if err := awaitWrites(ctx, o); err != nil {
		return 0, err
	}
	return o.Mark(), nil
}

// demote pauses the primary and makes it follow its successor once that has all of
// its writes.
func (f *floor) demote(ctx context.Context, from, to *admin.Member) error {
	if err := from.PauseWrites(ctx, time.Second); err != nil {
		return err
	}
	demoted, err := from.DemoteAndRead(ctx)
	if err != nil {
		return err
	}
	if err := from.Unpause(ctx); err != nil {
		return err
	}
	for {
		info, err := to.Info(ctx)
		if err != nil || info.Offset >= demoted.Offset {
			return err
		}
	}
}
