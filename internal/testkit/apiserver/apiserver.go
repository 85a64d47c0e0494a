// Package apiserver runs a real API server, with the CRDs of this repository,
// for the tests of one package. There are no controllers and no nodes: objects
// are admitted, defaulted and stored, and nothing acts on them.
//
//	func TestMain(m *testing.M) { os.Exit(apiserver.Run(m)) }
//
//	func TestSomething(t *testing.T) {
//		server := apiserver.Get(t)
//		namespace := server.Namespace(t)
//		…
//	}
package apiserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"seang.org/operator/api/v1alpha1"
)

// startTimeout is how long etcd or the API server may take to start, and to
// stop, on a busy machine.
const startTimeout = 2 * time.Minute

// Server is a running API server. Its user is an administrator.
type Server struct {
	// Config reaches the server.
	Config *rest.Config
	// Client speaks the kinds of Kubernetes and of this repository.
	Client client.WithWatch
	// Scheme is that of the client.
	Scheme *runtime.Scheme

	environment *envtest.Environment
}

// shared starts on the first use, so that a run of other tests does not wait for it.
var shared struct {
	once   sync.Once
	server *Server
	err    error
}

// Run runs the tests of a package and stops the server if one was started.
// It returns the exit code.
func Run(m *testing.M) int {
	code := m.Run()
	if shared.server == nil {
		return code
	}
	if err := shared.server.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

// Get returns the package's server and starts it if it does not run. The test
// is skipped with -short, and fails if there is no server to start.
func Get(t *testing.T) *Server {
	t.Helper()
	if testing.Short() {
		t.Skip("needs an API server; left out by -short")
	}
	shared.once.Do(func() { shared.server, shared.err = Start(t.Context()) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server
}

// Namespace makes a namespace for one test. It is not removed: without
// controllers it never would be, and the server ends with the tests.
func (s *Server) Namespace(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := s.Client.Create(t.Context(), namespace); err != nil {
		t.Fatalf("create a namespace: %v", err)
	}
	return namespace.Name
}

// serviceAddresses are enough for the Services of thousands of RedisClusters;
// envtest has room for 254. Services may have both families.
const serviceAddresses = "10.0.0.0/16,fd00::/112"

// Start starts a server for a program that is no test. Its working directory
// must be within the repository, for the CRDs.
func Start(ctx context.Context) (*Server, error) {
	programs, err := programsDir()
	if err != nil {
		return nil, err
	}
	root, err := repositoryRoot()
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	utilruntime.Must(clientscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	environment := &envtest.Environment{
		BinaryAssetsDirectory:    programs,
		CRDDirectoryPaths:        []string{filepath.Join(root, "config", "crd", "bases")},
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: startTimeout,
		ControlPlaneStopTimeout:  startTimeout,
		UseExistingCluster:       new(false),
		Scheme:                   scheme,
	}
	environment.ControlPlane.GetAPIServer().Configure().Set("service-cluster-ip-range", serviceAddresses)
	config, err := environment.Start()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the API server of %s: %w", programs, err), environment.Stop())
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a client: %w", err), environment.Stop())
	}
	server := &Server{Config: config, Client: c, Scheme: scheme, environment: environment}
	if err := server.waitForNamespaces(ctx); err != nil {
		return nil, errors.Join(err, environment.Stop())
	}
	return server, nil
}

// Stop ends the server and removes what it stored.
func (s *Server) Stop() error {
	if err := s.environment.Stop(); err != nil {
		return fmt.Errorf("stop the API server: %w", err)
	}
	return nil
}

// waitForNamespaces waits until objects can be stored: the server makes its own
// namespaces a moment after it says that it is ready.
func (s *Server) waitForNamespaces(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	list := &corev1.NamespaceList{}
	watcher, err := s.Client.Watch(ctx, list)
	if err != nil {
		return fmt.Errorf("watch namespaces: %w", err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		if namespace, ok := event.Object.(*corev1.Namespace); ok && namespace.Name == metav1.NamespaceDefault {
			return nil
		}
	}
	return fmt.Errorf("namespace %s did not appear within %s", metav1.NamespaceDefault, startTimeout)
}
