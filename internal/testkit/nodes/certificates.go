package nodes

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/internal/naming"
)

// certificate is the content of the Secret that a pod mounts to serve TLS, nil where it
// mounts none; false where it is not there.
func (n *Nodes) certificate(ctx context.Context, pod *corev1.Pod) (map[string][]byte, bool) {
	for _, volume := range pod.Spec.Volumes {
		if volume.Name != naming.VolumeTLS {
			continue
		}
		secret := &corev1.Secret{}
		err := n.client.Get(ctx, client.ObjectKey{Namespace: n.namespace, Name: volume.Secret.SecretName}, secret)
		return secret.Data, err == nil
	}
	return nil, true
}

// remount brings the certificate to a pod whose annotation changed, which makes a kubelet
// look at once.
func (n *Nodes) remount(ctx context.Context, pod *corev1.Pod) bool {
	asked := pod.Annotations[naming.AnnotationTLS]
	n.mu.Lock()
	defer n.mu.Unlock()
	if asked == n.remounted[pod.UID] {
		return true
	}
	files, ok := n.certificate(ctx, pod)
	if !ok || n.servers[pod.UID].Mount(files) != nil {
		return false
	}
	n.remounted[pod.UID] = asked
	return true
}
