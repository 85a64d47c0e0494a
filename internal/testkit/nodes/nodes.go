// Package nodes stands in for the StatefulSet controller, the volume
// provisioner and the kubelets on an API server that has none: it makes the
// pods of each StatefulSet, and runs a real Redis process for each. What it
// leaves out is shown on the embedded cluster.
package nodes

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/testkit/redisserver"
)

// The stand-in looks at the API server at each event, and while something is under way
// or failed, of which no event tells.
const (
	retryInterval = 20 * time.Millisecond
	idleInterval  = time.Second
)

// Nodes runs the pods of one namespace.
type Nodes struct {
	client    client.WithWatch
	namespace string
	flavour   string
	t         *testing.T

	mu      sync.Mutex
	servers map[types.UID]*redisserver.Server
	// volumes are the directories of volume claims.
	volumes map[types.UID]string
	// remounted is the annotation for which a pod was given its certificate last.
	remounted map[types.UID]string
	// asked is when the process of a pod was asked to end.
	asked map[types.UID]time.Time
}

// Start runs pods in the namespace until the test ends.
func Start(t *testing.T, c client.WithWatch, namespace, flavour string) *Nodes {
	t.Helper()
	redisserver.Binary(t, flavour)
	n := &Nodes{client: c, namespace: namespace, flavour: flavour, t: t, servers: map[types.UID]*redisserver.Server{}, volumes: map[types.UID]string{}, asked: map[types.UID]time.Time{}, remounted: map[types.UID]string{}}
	ctx, cancel := context.WithCancel(t.Context())
	changed := make(chan struct{}, 1)
	var running sync.WaitGroup
	running.Go(func() { n.work(ctx, changed) })
	for _, list := range []client.ObjectList{&appsv1.StatefulSetList{}, &corev1.PodList{}, &corev1.PersistentVolumeClaimList{}} {
		running.Go(func() { n.watch(ctx, list, changed) })
	}
	t.Cleanup(func() { cancel(); running.Wait(); n.killAll() })
	return n
}

func (n *Nodes) work(ctx context.Context, changed <-chan struct{}) {
	for ctx.Err() == nil {
		next := idleInterval
		if !n.pass(ctx) {
			next = retryInterval
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-time.After(next):
		}
	}
}

// watch tells of changes until the context ends.
func (n *Nodes) watch(ctx context.Context, list client.ObjectList, changed chan<- struct{}) {
	for ctx.Err() == nil {
		watcher, err := n.client.Watch(ctx, list, client.InNamespace(n.namespace))
		if err != nil {
			continue
		}
		for range watcher.ResultChan() {
			select {
			case changed <- struct{}{}:
			default: // A look is due already.
			}
		}
	}
}

func (n *Nodes) killAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, server := range n.servers {
		server.Kill()
	}
}

// Server is the Redis process of a pod.
func (n *Nodes) Server(uid types.UID) *redisserver.Server {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.servers[uid]
}

// Restart ends the pod's process as kill -9 does and starts another in the same
// pod, as the kubelet does.
func (n *Nodes) Restart(uid types.UID) {
	server := n.Server(uid)
	server.Kill()
	server.Run(n.t)
}

// pass does one round of what the controllers of Kubernetes would do, and returns
// whether nothing is left to do.
func (n *Nodes) pass(ctx context.Context) bool {
	sets := &appsv1.StatefulSetList{}
	pods := &corev1.PodList{}
	claims := &corev1.PersistentVolumeClaimList{}
	for _, list := range []client.ObjectList{sets, pods, claims} {
		if err := n.client.List(ctx, list, client.InNamespace(n.namespace)); err != nil {
			return false
		}
	}
	alive := map[string]*corev1.Pod{}
	for i := range pods.Items {
		alive[pods.Items[i].Name] = &pods.Items[i]
	}
	done, wanted := n.placePods(ctx, sets, alive)
	for name, pod := range alive {
		switch {
		case !pod.DeletionTimestamp.IsZero():
			done = n.stop(ctx, pod) && done
		case checks(pod):
			done = n.check(ctx, pod) && done
		case !wanted[name] && metav1.GetControllerOf(pod) != nil:
			done = n.client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID}) == nil && done
		case pod.Status.PodIP == "":
			done = n.run(ctx, pod) && done
		default:
			done = n.resize(ctx, pod) && n.remount(ctx, pod) && done
		}
	}
	for i := range claims.Items {
		done = n.keep(ctx, &claims.Items[i], alive) && done
	}
	return done
}

// placePods does for each StatefulSet what its controller does, and returns the pods
// that are to be there.
func (n *Nodes) placePods(ctx context.Context, sets *appsv1.StatefulSetList, alive map[string]*corev1.Pod) (done bool, wanted map[string]bool) {
	done, wanted = true, map[string]bool{}
	for i := range sets.Items {
		set := &sets.Items[i]
		if !set.DeletionTimestamp.IsZero() {
			done = n.orphan(ctx, set, alive, wanted) && done
			continue
		}
		done = n.observed(ctx, set) && done
		for ordinal := range int(ptr.Deref(set.Spec.Replicas, 1)) {
			name := fmt.Sprintf("%s-%d", set.Name, ordinal)
			wanted[name] = true
			if alive[name] == nil {
				done = n.create(ctx, set, name) && done
			} else {
				done = n.adopt(ctx, set, alive[name]) && done
			}
		}
	}
	return done, wanted
}

// observed notes in the status that the StatefulSet was seen.
func (n *Nodes) observed(ctx context.Context, set *appsv1.StatefulSet) bool {
	if set.Status.ObservedGeneration == set.Generation {
		return true
	}
	set.Status.ObservedGeneration = set.Generation
	return n.client.Status().Update(ctx, set) == nil
}

func (n *Nodes) create(ctx context.Context, set *appsv1.StatefulSet, name string) bool {
	for _, template := range set.Spec.VolumeClaimTemplates {
		claim := template.DeepCopy()
		claim.Name, claim.Namespace = template.Name+"-"+name, n.namespace
		if err := n.client.Create(ctx, claim); err != nil && !apierrors.IsAlreadyExists(err) {
			return false
		}
	}
	return n.client.Create(ctx, Pod(set, name)) == nil
}

// Pod is what the StatefulSet controller makes of a template; it is on a node.
func Pod(set *appsv1.StatefulSet, name string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy()}
	pod.Name, pod.Namespace = name, set.Namespace
	pod.Labels[naming.LabelPodName] = name
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
	pod.Spec.NodeName = "node"
	for _, template := range set.Spec.VolumeClaimTemplates {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: template.Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: template.Name + "-" + name}}})
	}
	return pod
}

// Running is what the kubelet reports of a pod whose process has started.
func Running(pod *corev1.Pod, ip string) corev1.PodStatus {
	return corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: naming.ContainerRedis, Ready: true, ContainerID: "test://" + string(pod.UID), Resources: wantedResources(pod),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}}},
	}
}

func wantedResources(pod *corev1.Pod) *corev1.ResourceRequirements {
	for _, container := range pod.Spec.Containers {
		if container.Name == naming.ContainerRedis {
			return container.Resources.DeepCopy()
		}
	}
	return nil
}

// resize gives a running container what its pod asks for since.
func (n *Nodes) resize(ctx context.Context, pod *corev1.Pod) bool {
	container := &pod.Status.ContainerStatuses[0]
	if equality.Semantic.DeepEqual(container.Resources, wantedResources(pod)) {
		return true
	}
	container.Resources = wantedResources(pod)
	return client.IgnoreNotFound(n.client.Status().Update(ctx, pod)) == nil
}

// run starts the pod's process with the files that the pod mounts.
func (n *Nodes) run(ctx context.Context, pod *corev1.Pod) bool {
	cluster, _ := naming.ClusterOf(pod.Name)
	config, secret := &corev1.ConfigMap{}, &corev1.Secret{}
	key := client.ObjectKey{Namespace: n.namespace, Name: naming.ConfigMap(cluster)}
	if n.client.Get(ctx, key, config) != nil {
		return false
	}
	key.Name = naming.SystemSecret(cluster)
	if n.client.Get(ctx, key, secret) != nil {
		return false
	}
	certificate, ok := n.certificate(ctx, pod)
	if !ok {
		return false
	}
	server := n.Server(pod.UID)
	if server == nil {
		volume, ok := n.volume(ctx, pod)
		if !ok {
			return false
		}
		server = redisserver.StartFiles(n.t, n.flavour, redisserver.Files{
			Conf: config.Data[naming.KeyRedisConf], ACL: string(secret.Data[naming.KeyACL]), Replication: string(secret.Data[naming.KeyReplicationConf]),
			TLS: certificate}, volume...)
		n.mu.Lock()
		n.servers[pod.UID] = server
		n.mu.Unlock()
	}
	pod.Status = Running(pod, server.IP)
	return n.client.Status().Update(ctx, pod) == nil
}

// volume is the data directory of a pod that has a volume claim: one for each claim.
func (n *Nodes) volume(ctx context.Context, pod *corev1.Pod) ([]redisserver.Option, bool) {
	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim == nil {
			continue
		}
		claim := &corev1.PersistentVolumeClaim{}
		key := client.ObjectKey{Namespace: n.namespace, Name: volume.PersistentVolumeClaim.ClaimName}
		if n.client.Get(ctx, key, claim) != nil || !claim.DeletionTimestamp.IsZero() {
			return nil, false
		}
		if n.volumes[claim.UID] == "" {
			n.volumes[claim.UID] = n.t.TempDir()
		}
		return []redisserver.Option{redisserver.OnVolumeAt(n.volumes[claim.UID])}, true
	}
	return nil, true
}

// endTimeout is how long a process may take to end before it is killed.
const endTimeout = 5 * time.Second

// stop asks the pod's process to end, without the delay of preStop, and lets the pod go
// once it has.
func (n *Nodes) stop(ctx context.Context, pod *corev1.Pod) bool {
	if server := n.Server(pod.UID); server != nil && !n.ended(pod.UID, server) {
		return false
	}
	return n.client.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID}) == nil
}

func (n *Nodes) ended(uid types.UID, server *redisserver.Server) bool {
	select {
	case <-server.Exited():
		return true
	default:
	}
	switch asked := n.asked[uid]; {
	case asked.IsZero():
		n.asked[uid] = time.Now()
		server.Signal(syscall.SIGTERM)
	case time.Since(asked) > endTimeout:
		server.Kill()
	}
	return false
}
