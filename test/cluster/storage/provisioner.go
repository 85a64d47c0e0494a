// Package storage gives persistent volumes that behave like real ones: each is
// a filesystem of its own of the claimed size, on one node, that can be filled
// up and can grow while it is in use.
package storage

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

// Provisioner is the name by which a StorageClass asks for these volumes.
const Provisioner = "loop.cluster.local"

// Run answers claims until the context ends. root is the directory of volumes.
func Run(ctx context.Context, config *rest.Config, root string) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect to the API server: %w", err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	resizer, err := newResizer(client, factory, root)
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	if err := remount(ctx, factory, root); err != nil {
		return err
	}
	go resizer.run(ctx)

	provision := controller.NewProvisionController(ctx, client, Provisioner, &provisioner{root: root},
		controller.LeaderElection(false),
		controller.ClaimsInformer(factory.Core().V1().PersistentVolumeClaims().Informer()),
		controller.VolumesInformer(factory.Core().V1().PersistentVolumes().Informer()),
		controller.ClassesInformer(factory.Storage().V1().StorageClasses().Informer()),
	)
	factory.Start(ctx.Done())
	provision.Run(ctx)
	return nil
}

// remount mounts again what has been unmounted behind our back.
func remount(ctx context.Context, factory informers.SharedInformerFactory, root string) error {
	factory.WaitForCacheSync(ctx.Done())
	volumes, err := factory.Core().V1().PersistentVolumes().Lister().List(labels.Everything())
	if err != nil {
		return fmt.Errorf("list persistent volumes: %w", err)
	}
	for _, pv := range volumes {
		if !ours(pv) || pv.DeletionTimestamp != nil {
			continue
		}
		if err := volume(root, pv.Name).mount(); err != nil {
			return fmt.Errorf("mount volume %s again: %w", pv.Name, err)
		}
	}
	return nil
}

type provisioner struct {
	root string
}

// Provision implements controller.Provisioner.
func (p *provisioner) Provision(ctx context.Context, options controller.ProvisionOptions) (*corev1.PersistentVolume, controller.ProvisioningState, error) {
	if options.SelectedNodeName == "" {
		return nil, controller.ProvisioningFinished, fmt.Errorf(
			"class %s must have volumeBindingMode WaitForFirstConsumer: a volume is on one node", options.StorageClass.Name)
	}
	request := options.PVC.Spec.Resources.Requests[corev1.ResourceStorage]
	v := volume(p.root, options.PVName)
	if err := v.create(ctx, request.Value()); err != nil {
		return nil, controller.ProvisioningFinished, fmt.Errorf("make volume %s: %w", options.PVName, err)
	}
	filesystem := corev1.PersistentVolumeFilesystem
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: options.PVName},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: request},
			AccessModes:                   options.PVC.Spec.AccessModes,
			PersistentVolumeReclaimPolicy: *options.StorageClass.ReclaimPolicy,
			MountOptions:                  options.StorageClass.MountOptions,
			VolumeMode:                    &filesystem,
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				Local: &corev1.LocalVolumeSource{Path: v.Dir},
			},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: onNode(options.SelectedNodeName)},
		},
	}, controller.ProvisioningFinished, nil
}

func onNode(name string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{
			Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{name},
		}},
	}}}
}

// Delete implements controller.Provisioner.
func (p *provisioner) Delete(_ context.Context, pv *corev1.PersistentVolume) error {
	if err := volume(p.root, pv.Name).remove(); err != nil {
		return fmt.Errorf("delete volume %s: %w", pv.Name, err)
	}
	return nil
}

func ours(pv *corev1.PersistentVolume) bool {
	return pv.Annotations["pv.kubernetes.io/provisioned-by"] == Provisioner
}
