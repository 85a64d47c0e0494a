package storage

import (
	"context"
	"fmt"
	"log"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// resizeTimeout bounds the growth of one volume.
const resizeTimeout = time.Minute

// resizer grows bound volumes whose claim asks for more than they have.
type resizer struct {
	client  kubernetes.Interface
	claims  corelisters.PersistentVolumeClaimLister
	volumes corelisters.PersistentVolumeLister
	synced  []cache.InformerSynced
	queue   workqueue.TypedRateLimitingInterface[string]
	root    string
}

func newResizer(client kubernetes.Interface, factory informers.SharedInformerFactory, root string) (*resizer, error) {
	claims := factory.Core().V1().PersistentVolumeClaims()
	volumes := factory.Core().V1().PersistentVolumes()
	r := &resizer{
		client:  client,
		claims:  claims.Lister(),
		volumes: volumes.Lister(),
		synced:  []cache.InformerSynced{claims.Informer().HasSynced, volumes.Informer().HasSynced},
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](100*time.Millisecond, 10*time.Second)),
		root: root,
	}
	enqueue := func(object any) {
		if key, err := cache.MetaNamespaceKeyFunc(object); err == nil {
			r.queue.Add(key)
		}
	}
	_, err := claims.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, object any) { enqueue(object) },
	})
	if err != nil {
		return nil, fmt.Errorf("watch persistent volume claims: %w", err)
	}
	return r, nil
}

func (r *resizer) run(ctx context.Context) {
	if !cache.WaitForCacheSync(ctx.Done(), r.synced...) {
		return
	}
	go func() {
		<-ctx.Done()
		r.queue.ShutDown()
	}()
	for {
		key, shutdown := r.queue.Get()
		if shutdown {
			return
		}
		if err := r.sync(ctx, key); err != nil {
			log.Printf("resize claim %s: %v", key, err)
			r.queue.AddRateLimited(key)
		} else {
			r.queue.Forget(key)
		}
		r.queue.Done(key)
	}
}

func (r *resizer) sync(ctx context.Context, key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return fmt.Errorf("key of a claim: %w", err)
	}
	claim, err := r.claims.PersistentVolumeClaims(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find the claim: %w", err)
	}
	wanted := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	has := claim.Status.Capacity[corev1.ResourceStorage]
	if claim.Status.Phase != corev1.ClaimBound || wanted.Cmp(has) <= 0 {
		return nil
	}
	pv, err := r.volumes.Get(claim.Spec.VolumeName)
	if err != nil {
		return fmt.Errorf("find volume %s: %w", claim.Spec.VolumeName, err)
	}
	if !ours(pv) {
		return nil
	}
	return r.grow(ctx, claim.DeepCopy(), pv.DeepCopy())
}

// grow enlarges the filesystem first: a capacity that the API shows is there.
func (r *resizer) grow(ctx context.Context, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) error {
	ctx, cancel := context.WithTimeout(ctx, resizeTimeout)
	defer cancel()
	wanted := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if err := volume(r.root, pv.Name).grow(ctx, wanted.Value()); err != nil {
		return fmt.Errorf("grow volume %s to %s: %w", pv.Name, wanted.String(), err)
	}
	if has := pv.Spec.Capacity[corev1.ResourceStorage]; has.Cmp(wanted) < 0 {
		pv.Spec.Capacity[corev1.ResourceStorage] = wanted
		if _, err := r.client.CoreV1().PersistentVolumes().Update(ctx, pv, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("update the capacity of volume %s: %w", pv.Name, err)
		}
	}
	if claim.Status.Capacity == nil {
		claim.Status.Capacity = corev1.ResourceList{}
	}
	claim.Status.Capacity[corev1.ResourceStorage] = wanted
	claim.Status.Conditions = slices.DeleteFunc(claim.Status.Conditions, func(c corev1.PersistentVolumeClaimCondition) bool {
		return c.Type == corev1.PersistentVolumeClaimResizing || c.Type == corev1.PersistentVolumeClaimFileSystemResizePending
	})
	if _, err := r.client.CoreV1().PersistentVolumeClaims(claim.Namespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update the capacity of the claim: %w", err)
	}
	log.Printf("grew volume %s of claim %s/%s to %s", pv.Name, claim.Namespace, claim.Name, wanted.String())
	return nil
}
