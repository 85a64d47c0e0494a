package controllers_test

import (
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/resources"
	"seang.org/operator/internal/testkit/apiserver"
	"seang.org/operator/internal/testkit/authority"
	"seang.org/operator/internal/testkit/nodes"
)

var certificateGVK = schema.GroupVersionKind{Group: resources.CertificateGroup, Version: resources.CertificateVersion, Kind: resources.CertificateKind}

// certificateKind is the kind Certificate without its schema, which the embedded cluster
// has.
func certificateKind() *unstructured.Unstructured {
	crd := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: "certificates." + resources.CertificateGroup},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: resources.CertificateGroup, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "certificates", Singular: "certificate", Kind: resources.CertificateKind, ListKind: "CertificateList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: resources.CertificateVersion, Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}}}},
		},
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	if err != nil {
		panic(err)
	}
	return &unstructured.Unstructured{Object: content}
}

// serveCertificates makes the API server know Certificates.
func serveCertificates(t *testing.T, server *apiserver.Server) {
	t.Helper()
	if err := server.Client.Create(t.Context(), certificateKind()); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(certificateGVK)
	for deadline := time.Now().Add(30 * time.Second); server.Client.List(t.Context(), list) != nil; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the API server does not serve Certificates")
		}
	}
}

// issue stands in for cert-manager in a namespace until the test ends.
func issue(t *testing.T, server *apiserver.Server, namespace string) {
	t.Helper()
	ca := authority.New(t, "ca")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for t.Context().Err() == nil {
			issueOne(t, server.Client, namespace, ca)
			time.Sleep(20 * time.Millisecond)
		}
	}()
	t.Cleanup(func() { <-done })
}

func issueOne(t *testing.T, c client.Client, namespace string, ca *authority.Authority) {
	certificate := &unstructured.Unstructured{}
	certificate.SetGroupVersionKind(certificateGVK)
	if c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "cache"}, certificate) != nil || certificate.Object["status"] != nil {
		return
	}
	hosts, _, _ := unstructured.NestedStringSlice(certificate.Object, "spec", "dnsNames")
	secret := certificateSecret(namespace, naming.IssuedSecret("cache"), ca.Issue(authority.Hosts(hosts...)))
	if err := c.Create(t.Context(), secret); client.IgnoreAlreadyExists(err) != nil {
		return
	}
	certificate.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True", "message": "issued"}}}
	_ = c.Status().Update(t.Context(), certificate) // Tried again where it changed meanwhile.
}

func TestAnIssuerIsAskedAndWaitedFor(t *testing.T) {
	server := apiserver.Get(t)
	namespace := server.Namespace(t)
	s := &tlsStory{T: t, server: server, cluster: cluster(namespace, 1, false), nodes: nodes.Start(t, server.Client, namespace, "redis-8.0")}
	s.stop = operate(t, server, namespace)
	s.cluster.Spec.TLS = &v1alpha1.TLSSpec{IssuerRef: v1alpha1.IssuerRef{Name: "never"}}
	if err := server.Client.Create(t.Context(), s.cluster); err != nil {
		t.Fatal(err)
	}
	says := func(kind, reason, words string) {
		t.Helper()
		await(t, server.Client, s.cluster, reason, func() bool {
			found := meta.FindStatusCondition(s.cluster.Status.Conditions, kind)
			return found != nil && found.Reason == reason && strings.Contains(found.Message, words)
		})
	}
	says(v1alpha1.ConditionSpecAccepted, v1alpha1.ReasonCertManagerMissing, "install it")
	serveCertificates(t, server)
	s.another()
	says(v1alpha1.ConditionReady, v1alpha1.ReasonCertificateNotIssued, "has not issued the Certificate cache: it has not said anything yet")
	issue(t, server, namespace)
	s.ready("issued")
	if s.cluster.Status.Phase != v1alpha1.PhaseReady {
		t.Errorf("phase %s", s.cluster.Status.Phase)
	}
	s.spec("without TLS", func(spec *v1alpha1.RedisClusterSpec) { spec.TLS = nil })
	left := &unstructured.UnstructuredList{}
	left.SetGroupVersionKind(certificateGVK)
	if err := server.Client.List(t.Context(), left, client.InNamespace(namespace)); err != nil || len(left.Items) != 0 {
		t.Errorf("%d Certificates are left, %v", len(left.Items), err)
	}
}
