package controllers

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/certificate"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/plan"
	"seang.org/operator/internal/resources"
)

// issueInterval is how often cert-manager is asked whether it has issued: its objects are
// not watched, since their kind may not be there.
const issueInterval = 2 * time.Second

// issuance is what is known of the Certificate that cert-manager was asked for.
type issuance struct {
	at time.Time
	// generation of the RedisCluster that it was asked for.
	generation int64
	problem    *plan.Wait // nil where it is issued
}

// +kubebuilder:rbac:groups=cert-manager.io,resources=certificates,verbs=get;create;patch;delete

// issuedCertificate is what cert-manager issued; empty if it has not, or if that cannot
// be used: that is then in the status.
func (r *RedisClusterReconciler) issuedCertificate(ctx context.Context, s *scope, spec *v1alpha1.TLSSpec) (certificate.Pair, error) {
	if err := r.askIssuer(ctx, s, spec); err != nil || s.memory.issued.problem != nil {
		return certificate.Pair{}, err
	}
	secret, err := r.secret(ctx, s, naming.IssuedSecret(s.cluster.Name))
	if err != nil || secret.Name == "" {
		s.lookAgainWithin(issueInterval)
		return certificate.Pair{}, err
	}
	return s.judge(secret, spec), nil
}

// askIssuer keeps the Certificate and says what it waits for. What was found is believed
// for a while.
func (r *RedisClusterReconciler) askIssuer(ctx context.Context, s *scope, spec *v1alpha1.TLSSpec) error {
	known := &s.memory.issued
	ttl := issueInterval
	if known.problem == nil {
		ttl = secretTTL
	}
	if known.at.IsZero() || s.now.Sub(known.at) >= ttl || known.generation != s.cluster.Generation {
		problem, err := r.applyCertificate(ctx, s, spec)
		if err != nil {
			return err
		}
		*known = issuance{at: s.now, generation: s.cluster.Generation, problem: problem}
	}
	switch {
	case known.problem == nil:
	case known.problem.Reason == v1alpha1.ReasonCertManagerMissing:
		s.reject(known.problem.Reason, known.problem.Message)
	default:
		s.wait(*known.problem)
		s.lookAgainWithin(issueInterval)
	}
	return nil
}

// applyCertificate writes the Certificate and reads whether it was issued.
func (r *RedisClusterReconciler) applyCertificate(ctx context.Context, s *scope, spec *v1alpha1.TLSSpec) (*plan.Wait, error) {
	have := newCertificate()
	wanted := resources.Certificate(s.input(), spec.IssuerRef, s.certificateHosts())
	changed, err := s.apply.ApplyTo(ctx, wanted, have, r.Live)
	switch {
	case meta.IsNoMatchError(err):
		return &plan.Wait{Reason: v1alpha1.ReasonCertManagerMissing,
			Message: "tls.issuerRef needs cert-manager, whose kind Certificate this Kubernetes does not know: install it, or use tls.secretName"}, nil
	case err != nil:
		return nil, err
	}
	logChange(ctx, wanted, changed)
	if ready, message := issued(have); changed != "" || !ready {
		return &plan.Wait{Reason: v1alpha1.ReasonCertificateNotIssued, Message: fmt.Sprintf("cert-manager has not issued the Certificate %s: %s", naming.Certificate(s.cluster.Name), message)}, nil
	}
	return nil, nil
}

// certificateHosts are the names that cert-manager is asked for: those of the Services in
// each form, and all pods.
func (s *scope) certificateHosts() []string {
	name, namespace := s.cluster.Name, s.cluster.Namespace
	hosts := []string{"*." + naming.NodesService(name) + "." + namespace + ".svc", "*." + naming.NodesService(name) + "." + namespace + ".svc." + defaultDomain}
	for _, service := range []string{naming.PrimaryService(name), naming.ReplicasService(name)} {
		inNamespace := service + "." + namespace
		hosts = append(hosts, service, inNamespace, inNamespace+".svc", inNamespace+".svc."+defaultDomain)
	}
	return hosts
}

// defaultDomain is the cluster domain that most Kubernetes have. It is a name more in the
// certificate, and one of no use elsewhere.
const defaultDomain = "cluster.local"

func newCertificate() *unstructured.Unstructured {
	c := &unstructured.Unstructured{}
	c.SetGroupVersionKind(schema.GroupVersionKind{Group: resources.CertificateGroup, Version: resources.CertificateVersion, Kind: resources.CertificateKind})
	return c
}

// issued says whether the Certificate is, and what cert-manager says of it.
func issued(c *unstructured.Unstructured) (ready bool, message string) {
	conditions, _, _ := unstructured.NestedSlice(c.Object, "status", "conditions")
	message = "it has not said anything yet"
	for _, entry := range conditions {
		condition, _ := entry.(map[string]any)
		if condition["type"] == "Ready" {
			message, _ = condition["message"].(string)
			ready = condition["status"] == "True"
		}
	}
	return ready, message
}

// withdraw deletes the Certificate where the spec names no issuer any more.
func (r *RedisClusterReconciler) withdraw(ctx context.Context, s *scope) error {
	if s.memory.withdrawn {
		return nil
	}
	c := newCertificate()
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: s.cluster.Namespace, Name: naming.Certificate(s.cluster.Name)}, c)
	if err == nil && metav1.IsControlledBy(c, s.cluster) {
		uid := c.GetUID()
		logf.FromContext(ctx).Info("deleting the Certificate", "reason", "spec.tls names no issuer")
		err = r.Delete(ctx, c, client.Preconditions{UID: &uid})
	}
	// Whoever installed the operator without this right wants no cert-manager.
	if err != nil && !meta.IsNoMatchError(err) && !apierrors.IsForbidden(err) && client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete the Certificate %s of cert-manager: %w", naming.Certificate(s.cluster.Name), err)
	}
	s.memory.withdrawn, s.memory.issued = true, issuance{}
	return nil
}
