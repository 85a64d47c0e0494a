package controllers

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/certificate"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/conf"
	"seang.org/operator/internal/redis/plan"
	"seang.org/operator/internal/resources"
)

// clientDirective is the value of tls-auth-clients.
var clientDirective = map[v1alpha1.ClientAuth]string{
	"":                          "no",
	v1alpha1.ClientAuthNone:     "no",
	v1alpha1.ClientAuthOptional: "optional",
	v1alpha1.ClientAuthRequired: "yes",
}

// reconcileCertificate decides what members serve: the certificate of the user or of
// cert-manager, once it can be used and in the steps in which it can be changed; until
// then what they have. It is kept in a Secret of our own, which the pods mount.
func (r *RedisClusterReconciler) reconcileCertificate(ctx context.Context, s *scope) error {
	if err := r.readCertificate(ctx, s); err != nil {
		return err
	}
	spec := s.cluster.Spec.TLS
	if spec != nil && spec.IssuerRef.Name != "" {
		s.memory.withdrawn = false
	} else if err := r.withdraw(ctx, s); err != nil {
		return err
	}
	if spec != nil {
		given, err := r.givenCertificate(ctx, s, spec)
		if err != nil {
			return err
		}
		if !given.Empty() {
			s.changeTLS(given, clientDirective[spec.ClientAuth])
		}
	}
	s.noteExpired()
	switch {
	case !s.tls.Pair.Empty():
		_, err := r.applySecret(ctx, s, resources.TLSSecret(s.input(), s.tls.Files()))
		return err
	case spec != nil:
		return r.withoutCertificate(ctx, s)
	}
	return nil
}

// changeTLS does the next step from what members have to what is given.
func (s *scope) changeTLS(given certificate.Pair, clients string) {
	next := given
	if !given.Equal(s.tls.Pair) {
		deployed, told := s.memory.deployed == s.tls.Hash(), s.told()
		next = certificate.Next(s.tls.Pair, given, deployed, told)
		if !deployed || told || !next.Equal(s.tls.Pair) {
			s.wait(waitForMembers("the certificate is being changed"))
		}
	}
	s.useTLS(conf.TLS{Pair: next, Clients: clients})
}

// told says that applications had the time to learn whom to trust since every member has
// what it has, or that it serves them no longer.
func (s *scope) told() bool {
	until := s.memory.deployedAt.Add(s.overlap())
	if leaf := s.tls.Pair.Leaf(); leaf == nil || !until.Before(leaf.NotAfter) {
		return true
	}
	s.lookAgainWithin(until.Sub(s.now))
	return !s.now.Before(until)
}

// noteExpired says that members serve a certificate that has expired.
func (s *scope) noteExpired() {
	if leaf := s.tls.Pair.Leaf(); leaf != nil && s.now.After(leaf.NotAfter) {
		s.wait(plan.Wait{Reason: v1alpha1.ReasonCertificateExpired, Stuck: true, Message: fmt.Sprintf(
			"the certificate expired at %s, and clients refuse it: renew it", leaf.NotAfter.UTC().Format(time.RFC3339))})
	}
}

// readCertificate reads what members have, as far as they have any.
func (r *RedisClusterReconciler) readCertificate(ctx context.Context, s *scope) error {
	if s.cluster.Spec.TLS == nil && s.memory.withoutTLS {
		return nil
	}
	secret, err := r.secret(ctx, s, naming.TLSSecret(s.cluster.Name))
	if err != nil {
		return err
	}
	have, whole := conf.ParseTLS(secret.Data)
	if !whole || !metav1.IsControlledBy(secret, s.cluster) {
		have = s.memory.tls // Somebody deleted or changed it.
	}
	s.useTLS(have)
	s.memory.withoutTLS = s.cluster.Spec.TLS == nil && secret.Name == "" && have.Pair.Empty()
	return nil
}

// useTLS makes the connections of this pass those to members that have it.
func (s *scope) useTLS(have conf.TLS) {
	s.tls, s.memory.tls, s.proof = have, have, nil
	if !have.Pair.Empty() {
		// It was judged before it became ours: there is no error.
		s.proof, _ = have.Pair.Client(s.now)
	}
}

// prove says how the process of a pod is to prove who it is; nil for one without TLS.
func (s *scope) prove(pod *corev1.Pod) *tls.Config {
	if !mountsCertificate(&pod.Spec) || s.proof == nil {
		return nil
	}
	return s.proof(naming.PodHost(s.cluster.Name, s.cluster.Namespace, pod.Name))
}

// withoutCertificate goes on with what runs without TLS. What does not run yet must not
// begin to, and what runs with it cannot be reached.
func (r *RedisClusterReconciler) withoutCertificate(ctx context.Context, s *scope) error {
	set := &appsv1.StatefulSet{}
	err := r.Get(ctx, client.ObjectKey{Namespace: s.cluster.Namespace, Name: naming.StatefulSet(s.cluster.Name)}, set)
	if apierrors.IsNotFound(err) || mountsCertificate(&set.Spec.Template.Spec) {
		return errRejected
	}
	if err != nil {
		return fmt.Errorf("read StatefulSet %s: %w", naming.StatefulSet(s.cluster.Name), err)
	}
	return nil
}

// givenCertificate is that of the user or of cert-manager; empty if it cannot be used:
// that is then in the status.
func (r *RedisClusterReconciler) givenCertificate(ctx context.Context, s *scope, spec *v1alpha1.TLSSpec) (certificate.Pair, error) {
	if spec.IssuerRef.Name != "" {
		return r.issuedCertificate(ctx, s, spec)
	}
	secret, err := r.secret(ctx, s, spec.SecretName)
	if err != nil {
		return certificate.Pair{}, err
	}
	if secret.Name == "" {
		s.reject(v1alpha1.ReasonInvalidCertificate, fmt.Sprintf("the Secret %q of tls.secretName does not exist: create it with the keys %s, %s and %s",
			spec.SecretName, certificate.KeyCertificate, certificate.KeyKey, certificate.KeyCA))
		return certificate.Pair{}, nil
	}
	return s.judge(secret, spec), nil
}

// judge returns the certificate of a Secret if it can be used.
func (s *scope) judge(secret *corev1.Secret, spec *v1alpha1.TLSSpec) certificate.Pair {
	pair := certificate.FromSecret(secret.Data)
	problem := pair.Check(certificate.Use{Hosts: s.hosts(), Client: clientDirective[spec.ClientAuth] != "no", Now: s.now})
	if problem != nil {
		s.reject(v1alpha1.ReasonInvalidCertificate, fmt.Sprintf("the Secret %q cannot be used: %s", secret.Name, problem))
		return certificate.Pair{}
	}
	return pair
}

// hosts are the names by which members are reached.
func (s *scope) hosts() []string {
	name, namespace := s.cluster.Name, s.cluster.Namespace
	hosts := []string{naming.PrimaryHost(name, namespace), naming.ReplicasHost(name, namespace)}
	for ordinal := range s.wanted() {
		hosts = append(hosts, naming.PodHost(name, namespace, naming.Pod(name, ordinal)))
	}
	return hosts
}

// reconcileNoCertificate deletes our copy once nothing mounts it any more.
func (r *RedisClusterReconciler) reconcileNoCertificate(ctx context.Context, s *scope) error {
	if s.cluster.Spec.TLS != nil || s.tls.Pair.Empty() || s.mountsTLS() || s.anySecured() || !s.templateInForce() {
		return nil
	}
	if err := r.deleteSecret(ctx, s, naming.TLSSecret(s.cluster.Name)); err != nil {
		return err
	}
	logf.FromContext(ctx).Info("certificate deleted", "reason", "spec.tls was removed")
	s.useTLS(conf.TLS{})
	return nil
}
