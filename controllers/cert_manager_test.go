package controllers_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/certificate"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/testkit/apiserver"
	"seang.org/operator/internal/testkit/nodes"
)

// envCertManager names the program of test/cluster/build/certmanager.
const envCertManager = "CERT_MANAGER"

// certManager runs cert-manager's own controllers on a server until the test ends.
func certManager(t *testing.T, server *apiserver.Server) {
	t.Helper()
	program := os.Getenv(envCertManager)
	if program == "" {
		t.Skipf("needs cert-manager, named in %s: run make test-cert-manager", envCertManager)
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/cert-manager/cert-manager")
	list.Dir = "../test/cluster/build/certmanager"
	dir, err := list.Output()
	if err != nil {
		t.Fatalf("find the module of cert-manager: %v", err)
	}
	crds := filepath.Join(string(bytes.TrimSpace(dir)), "deploy", "crds")
	if _, err := envtest.InstallCRDs(server.Config, envtest.CRDInstallOptions{Paths: []string{crds}, ErrorIfPathMissing: true}); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), program, "--kubeconfig", kubeconfig(t, server.Config))
	var log bytes.Buffer
	command.Stdout, command.Stderr = &log, &log
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Wait()
		if t.Failed() {
			t.Logf("cert-manager:\n%s", log.String())
		}
	})
}

func kubeconfig(t *testing.T, config *rest.Config) string {
	t.Helper()
	text := clientcmdapi.NewConfig()
	text.Clusters["test"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	text.AuthInfos["test"] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken}
	text.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	text.CurrentContext = "test"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*text, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestCertManagerIssuesAndRenews is with cert-manager's own controllers: an issuer that
// never issues, one that does, and a renewal.
func TestCertManagerIssuesAndRenews(t *testing.T) {
	if testing.Short() || os.Getenv(envCertManager) == "" {
		t.Skipf("needs cert-manager, named in %s: run make test-cert-manager", envCertManager)
	}
	server, err := apiserver.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	certManager(t, server)
	namespace := server.Namespace(t)
	issuer := func(name, spec string) {
		t.Helper()
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON([]byte(`{"apiVersion":"cert-manager.io/v1","kind":"` + spec)); err != nil {
			t.Fatal(err)
		}
		object.SetNamespace(namespace)
		object.SetName(name)
		if err := server.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	issuer("self-signed", `Issuer","spec":{"selfSigned":{}}}`)
	issuer("ca", `Certificate","spec":{"isCA":true,"commonName":"ca","secretName":"ca","issuerRef":{"name":"self-signed"}}}`)
	issuer("ca", `Issuer","spec":{"ca":{"secretName":"ca"}}}`)
	issuer("never", `Issuer","spec":{"ca":{"secretName":"not-there"}}}`)

	s := &tlsStory{T: t, server: server, cluster: cluster(namespace, 1, false), nodes: nodes.Start(t, server.Client, namespace, "redis-8.0")}
	s.cluster.Spec.TLS = &v1alpha1.TLSSpec{IssuerRef: v1alpha1.IssuerRef{Name: "never"}, ClientAuth: v1alpha1.ClientAuthRequired}
	s.stop = operate(t, server, namespace)
	if err := server.Client.Create(t.Context(), s.cluster); err != nil {
		t.Fatal(err)
	}
	await(t, server.Client, s.cluster, "an issuer that never issues", func() bool {
		ready := meta.FindStatusCondition(s.cluster.Status.Conditions, v1alpha1.ConditionReady)
		return ready != nil && ready.Reason == v1alpha1.ReasonCertificateNotIssued && ready.Message != ""
	})
	t.Log(meta.FindStatusCondition(s.cluster.Status.Conditions, v1alpha1.ConditionReady).Message)
	s.spec("one that issues", func(spec *v1alpha1.RedisClusterSpec) { spec.TLS.IssuerRef.Name = "ca" })
	first := certificate.FromSecret(s.secret(naming.IssuedSecret("cache")))
	s.each(s.serves(first))

	began := time.Now()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: naming.IssuedSecret("cache")}}
	if err := server.Client.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	var renewed certificate.Pair
	await(t, server.Client, s.cluster, "a renewed certificate", func() bool {
		found := &corev1.Secret{}
		if server.Client.Get(t.Context(), client.ObjectKeyFromObject(secret), found) != nil {
			return false
		}
		renewed = certificate.FromSecret(found.Data)
		return !renewed.Empty() && !renewed.Leaf().Equal(first.Leaf()) && s.deployed(renewed)
	})
	s.soon(s.serves(renewed))
	t.Logf("in force after %s", time.Since(began))
}
