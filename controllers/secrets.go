package controllers

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/kube"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/admin"
	"seang.org/operator/internal/redis/conf"
	"seang.org/operator/internal/resources"
)

// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;create;patch

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

// reconcileSecrets keeps the Secret of the system users and that of the
// applications. Passwords are generated once and kept.
func (r *RedisClusterReconciler) reconcileSecrets(ctx context.Context, s *scope) error {
	system, err := r.secret(ctx, s, naming.SystemSecret(s.cluster.Name))
	if err != nil {
		return err
	}
	app, err := r.secret(ctx, s, naming.AppSecret(s.cluster.Name))
	if err != nil {
		return err
	}
	password := string(app.Data[naming.KeyPassword])
	if auth := s.cluster.Spec.Auth; auth != nil && auth.SecretName != "" {
		given, err := r.givenPassword(ctx, s, auth)
		if err != nil {
			return err
		}
		if given != "" {
			password = given
		}
	}
	if s.rejected != nil && password == "" {
		// Nothing runs yet, and what would run could not be used.
		return errRejected
	}
	known := s.memory.passwords
	users := conf.Passwords{
		Operator:    keep(system.Data[naming.KeyOperatorPassword], known.Operator),
		Replication: keep(system.Data[naming.KeyReplicationPassword], known.Replication),
		Default:     keep([]byte(password), known.Default),
	}
	s.memory.passwords = users
	s.credentials = admin.Credentials{User: naming.UserOperator, Password: users.Operator}
	if err := r.applySecret(ctx, s, resources.SystemSecret(s.input(), map[string][]byte{
		naming.KeyOperatorPassword:    []byte(users.Operator),
		naming.KeyReplicationPassword: []byte(users.Replication),
		naming.KeyACL:                 []byte(conf.RenderACL(users)),
		naming.KeyReplicationConf:     []byte(conf.ReplicationInclude(naming.UserReplication, users.Replication)),
	}), naming.SystemSecret(s.cluster.Name)); err != nil {
		return err
	}
	return r.applySecret(ctx, s, resources.AppSecret(s.input(), naming.UserDefault, users.Default), naming.AppSecret(s.cluster.Name))
}

// secret reads one of our Secrets; an absent one is empty.
func (r *RedisClusterReconciler) secret(ctx context.Context, s *scope, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: s.cluster.Namespace, Name: name}
	if err := r.secrets.Get(ctx, key, secret); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read Secret %s: %w", key, err)
	}
	return secret, nil
}

func (r *RedisClusterReconciler) applySecret(ctx context.Context, s *scope, wanted kube.Configuration, name string) error {
	changed, err := s.apply.ApplyTo(ctx, wanted, &corev1.Secret{}, r.secrets)
	if changed != "" {
		r.secrets.forget(client.ObjectKey{Namespace: s.cluster.Namespace, Name: name})
		logChange(ctx, wanted, changed)
	}
	return err
}

// reconcileNothing looks at the members of a paused cluster and changes nothing.
func (r *RedisClusterReconciler) reconcileNothing(ctx context.Context, s *scope) error {
	system, err := r.secret(ctx, s, naming.SystemSecret(s.cluster.Name))
	if err != nil {
		return err
	}
	password := string(system.Data[naming.KeyOperatorPassword])
	if password == "" {
		password = s.memory.passwords.Operator
	}
	s.credentials = admin.Credentials{User: naming.UserOperator, Password: password}
	return r.observe(ctx, s)
}

// givenPassword is the password of the user's own Secret, or empty with the
// spec rejected if it cannot be used: the password in force stays.
func (r *RedisClusterReconciler) givenPassword(ctx context.Context, s *scope, auth *v1alpha1.AuthSpec) (string, error) {
	secret, err := r.secret(ctx, s, auth.SecretName)
	if err != nil {
		return "", err
	}
	password := secret.Data[naming.KeyPassword]
	switch problem := conf.CheckPassword(password); {
	case secret.Name == "":
		s.reject(v1alpha1.ReasonInvalidSecret, fmt.Sprintf("the Secret %q of auth.secretName does not exist: create it with the key %q", auth.SecretName, naming.KeyPassword))
	case problem != nil:
		s.reject(v1alpha1.ReasonInvalidSecret, fmt.Sprintf("the key %q of the Secret %q cannot be used: %s", naming.KeyPassword, auth.SecretName, problem))
	default:
		return string(password), nil
	}
	return "", nil
}

// keep returns the password; the one in memory if the Secret was deleted; a new
// one of 128 random bits if there never was one.
func keep(password []byte, known string) string {
	switch {
	case len(password) > 0:
		return string(password)
	case known != "":
		return known
	}
	return rand.Text()
}

// reconcilePassword brings a changed password of the application into force on
// every running member.
func (r *RedisClusterReconciler) reconcilePassword(ctx context.Context, s *scope) error {
	hash := conf.Hash(s.memory.passwords.Default)
	for i := range s.facts.Members {
		m := &s.facts.Members[i]
		if m.Info == nil {
			continue
		}
		memory := s.memory.pod(m.PodUID)
		if memory.passwordHash == hash {
			continue
		}
		member, err := r.member(ctx, s, m.Pod)
		if err == nil {
			err = member.SetPassword(ctx, naming.UserDefault, hash)
		}
		if err != nil {
			return r.tolerateCommand(ctx, "set the application's password on "+m.Pod, err)
		}
		memory.passwordHash = hash
	}
	return nil
}
