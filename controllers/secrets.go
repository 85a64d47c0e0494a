package controllers

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/internal/kube"
)

// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;create;patch;delete

// secretTTL is how long a Secret that was read is believed. Secrets are never
// listed or watched.
const secretTTL = 30 * time.Second

// secretReader reads Secrets by name, at most once in secretTTL each.
type secretReader struct {
	client.Reader
	clock clock.PassiveClock
	mu    sync.Mutex
	read  map[types.NamespacedName]secretRead
}

type secretRead struct {
	secret *corev1.Secret // nil if there is none
	at     time.Time
}

// Get is client.Reader's, for Secrets.
func (r *secretReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	r.mu.Lock()
	kept, known := r.read[key]
	r.mu.Unlock()
	if !known || kept.secret == nil || r.clock.Since(kept.at) >= secretTTL {
		secret := &corev1.Secret{}
		err := r.Reader.Get(ctx, key, secret)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err != nil {
			secret = nil
		}
		kept = secretRead{secret: secret, at: r.clock.Now()}
		r.mu.Lock()
		r.read[key] = kept
		r.mu.Unlock()
	}
	if kept.secret == nil {
		return apierrors.NewNotFound(corev1.Resource("secrets"), key.Name)
	}
	kept.secret.DeepCopyInto(object.(*corev1.Secret))
	return nil
}

// forget makes the next Get read again.
func (r *secretReader) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.read, key)
}

// secret reads one Secret of the namespace; an absent one is empty.
func (r *RedisClusterReconciler) secret(ctx context.Context, s *scope, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: s.cluster.Namespace, Name: name}
	if err := r.secrets.Get(ctx, key, secret); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read Secret %s: %w", key, err)
	}
	return secret, nil
}

// applySecret writes one of our Secrets, and says whether it was not as wanted. What was
// read may be old: if another wrote it since, it is read again.
func (r *RedisClusterReconciler) applySecret(ctx context.Context, s *scope, wanted kube.Configuration) (bool, error) {
	changed, err := s.apply.ApplyTo(ctx, wanted, &corev1.Secret{}, r.secrets)
	if changed != "" {
		r.secrets.forget(client.ObjectKey{Namespace: s.cluster.Namespace, Name: *wanted.GetName()})
		logChange(ctx, wanted, changed)
	}
	return changed != "", err
}

// deleteSecret deletes one of our Secrets, if it is there.
func (r *RedisClusterReconciler) deleteSecret(ctx context.Context, s *scope, name string) error {
	secret, err := r.secret(ctx, s, name)
	if err != nil || !metav1.IsControlledBy(secret, s.cluster) {
		return err
	}
	r.secrets.forget(client.ObjectKeyFromObject(secret))
	if err := r.Delete(ctx, secret, client.Preconditions{UID: &secret.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete Secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	return nil
}
