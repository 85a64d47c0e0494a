package kubeapi

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CreateNamespace makes a namespace that admits restricted pods only, with a name that
// begins with the prefix.
func (a *API) CreateNamespace(ctx context.Context, prefix string) (*corev1.Namespace, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix,
		Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}
	if err := a.Create(ctx, namespace); err != nil {
		return nil, fmt.Errorf("create a namespace: %w", err)
	}
	return namespace, nil
}

// Containers tell the running processes of pods apart, sorted: the identity of a
// container changes with each restart.
func (a *API) Containers(ctx context.Context, of ...client.ListOption) ([]string, error) {
	pods := &corev1.PodList{}
	if err := a.List(ctx, pods, of...); err != nil {
		return nil, fmt.Errorf("list the containers: %w", err)
	}
	var ids []string
	for _, pod := range pods.Items {
		for _, container := range pod.Status.ContainerStatuses {
			ids = append(ids, pod.Name+" "+container.ContainerID)
		}
	}
	slices.Sort(ids)
	return ids, nil
}
