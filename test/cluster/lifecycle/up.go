// Package lifecycle brings clusters up and down and tells their state.
package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"seang.org/operator/test/cluster/build"
	"seang.org/operator/test/cluster/controlplane"
	"seang.org/operator/test/cluster/host"
	"seang.org/operator/test/cluster/layout"
	"seang.org/operator/test/cluster/network"
	"seang.org/operator/test/cluster/node"
	"seang.org/operator/test/cluster/pki"
	"seang.org/operator/test/cluster/process"
	"seang.org/operator/test/cluster/registry"
)

// Cluster is a cluster with what is needed to start its processes.
type Cluster struct {
	Layout layout.Layout
	group  *process.Group
}

// New returns the cluster of a layout, which may not exist yet.
func New(l layout.Layout) (*Cluster, error) {
	var dirs []string
	for _, component := range build.OfCluster() {
		dir, err := component.Dir()
		if err != nil {
			return nil, err
		}
		dirs = append(dirs, dir)
	}
	return &Cluster{Layout: l, group: process.NewGroup(l, dirs...)}, nil
}

// Processes are the long-running programs of the cluster.
func (c *Cluster) Processes() *process.Group { return c.group }

// Up makes whatever is missing of the cluster and waits until all of it works.
func (c *Cluster) Up(ctx context.Context, out io.Writer) error {
	l := c.Layout
	if err := host.CheckKernel(); err != nil {
		return err
	}
	unlock, err := lock(ctx, l)
	if err != nil {
		return err
	}
	defer unlock()
	if err := host.EnsurePackages(ctx, out); err != nil {
		return err
	}
	if err := build.Ensure(ctx, build.OfCluster(), out); err != nil {
		return err
	}
	if !l.Exists() {
		// Of an earlier boot: its processes are gone, its data is of no use.
		if err := c.remove(ctx); err != nil {
			return err
		}
	}
	if err := c.prepare(); err != nil {
		return err
	}
	return c.start(ctx)
}

// prepare makes everything that is no process.
func (c *Cluster) prepare() error {
	l := c.Layout
	if err := l.Save(); err != nil {
		return err
	}
	if err := host.SaveKernelSettings(kernelSettingsFile()); err != nil {
		return err
	}
	if err := c.group.InstallSelf(); err != nil {
		return err
	}
	if err := pki.Ensure(l); err != nil {
		return err
	}
	for _, n := range l.AllNodes() {
		if err := node.Prepare(n); err != nil {
			return err
		}
	}
	return network.Ensure(l)
}

// start starts the processes: those that need nothing at once, the others as
// soon as the API server answers.
func (c *Cluster) start(ctx context.Context) error {
	plan, err := c.plan()
	if err != nil {
		return err
	}
	first, firstCtx := errgroup.WithContext(ctx)
	first.Go(func() error { return c.ensure(firstCtx, plan.apiServer...) })
	first.Go(func() error {
		if err := c.ensure(firstCtx, plan.registry); err != nil {
			return err
		}
		return c.pushPause(firstCtx)
	})
	for _, spec := range plan.runtimes {
		first.Go(func() error { return c.ensure(firstCtx, spec) })
	}
	if err := first.Wait(); err != nil {
		return err
	}
	second, secondCtx := errgroup.WithContext(ctx)
	for _, spec := range plan.clients {
		second.Go(func() error { return c.ensure(secondCtx, spec) })
	}
	second.Go(func() error { return controlplane.Apply(secondCtx, plan.client) })
	return second.Wait()
}

// Restart ends a process in order and starts it again.
func (c *Cluster) Restart(ctx context.Context, name string) error {
	plan, err := c.plan()
	if err != nil {
		return err
	}
	if err := c.group.InstallSelf(); err != nil {
		return err
	}
	for _, spec := range plan.all() {
		if spec.Name != name {
			continue
		}
		if err := c.group.Stop(ctx, name); err != nil {
			return err
		}
		return c.group.Ensure(ctx, spec)
	}
	return fmt.Errorf("process %s is unknown: `status` lists those there are", name)
}

// plan is every process of the cluster, by what it needs to start.
type plan struct {
	client kubernetes.Interface
	// apiServer and what it needs, in order.
	apiServer []process.Spec
	registry  process.Spec
	// runtimes are the nodes' container runtimes.
	runtimes []process.Spec
	// clients need the API server.
	clients []process.Spec
}

func (p plan) all() []process.Spec {
	return slices.Concat(p.apiServer, []process.Spec{p.registry}, p.runtimes, p.clients)
}

func (c *Cluster) plan() (plan, error) {
	l := c.Layout
	apiPort, err := controlplane.OpenPort(l, controlplane.Forwarder)
	if err != nil {
		return plan{}, err
	}
	registryPort, err := controlplane.OpenPort(l, controlplane.Registry)
	if err != nil {
		return plan{}, err
	}
	if err := pki.WriteKubeconfig(l, pki.Admin, "https://"+apiPort.Address(), l.Kubeconfig()); err != nil {
		return plan{}, err
	}
	client, err := c.Client()
	if err != nil {
		return plan{}, err
	}
	p := plan{
		client: client,
		apiServer: []process.Spec{
			controlplane.EtcdSpec(l), controlplane.ForwarderSpec(l, apiPort), controlplane.APIServerSpec(l, client),
		},
		registry: controlplane.RegistrySpec(l, registryPort),
		clients: []process.Spec{
			controlplane.ControllerManagerSpec(l), controlplane.SchedulerSpec(l), controlplane.CoreDNSSpec(l),
			controlplane.StorageSpec(l), controlplane.ProxySpec(l),
		},
	}
	for _, n := range l.AllNodes() {
		p.runtimes = append(p.runtimes, node.ContainerdSpec(n))
		p.clients = append(p.clients, node.KubeletSpec(l, n, client), node.ProxySpec(l, n))
	}
	return p, nil
}

func (c *Cluster) ensure(ctx context.Context, specs ...process.Spec) error {
	for _, spec := range specs {
		if err := c.group.Ensure(ctx, spec); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) pushPause(ctx context.Context) error {
	address, err := c.RegistryAddress()
	if err != nil {
		return err
	}
	components, err := build.Select("pause")
	if err != nil {
		return err
	}
	dir, err := components[0].Dir()
	if err != nil {
		return err
	}
	image, err := registry.BinaryImage(filepath.Join(dir, "pause"), "/pause")
	if err != nil {
		return err
	}
	return registry.PushImage(ctx, address, layout.PauseImage, image)
}

// Client returns a client for the administrator.
func (c *Cluster) Client() (kubernetes.Interface, error) {
	config, err := c.Config()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of cluster %s: %w", c.Layout.Name, err)
	}
	return client, nil
}

// Config returns the administrator's access to the API server.
func (c *Cluster) Config() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.Layout.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of cluster %s (is it up?): %w", c.Layout.Name, err)
	}
	config.QPS = -1
	return config, nil
}

// Load pushes an image from a file into the cluster's registry.
func (c *Cluster) Load(ctx context.Context, reference, file string) error {
	address, err := c.RegistryAddress()
	if err != nil {
		return err
	}
	return registry.Push(ctx, address, reference, file)
}

// RegistryAddress is where the registry answers on the host's loopback, and on
// that of the control plane's namespace.
func (c *Cluster) RegistryAddress() (string, error) {
	if !c.Layout.Exists() {
		return "", fmt.Errorf("cluster %s is not up", c.Layout.Name)
	}
	port, err := controlplane.OpenPort(c.Layout, controlplane.Registry)
	if err != nil {
		return "", err
	}
	return port.Address(), nil
}

func kernelSettingsFile() string {
	return filepath.Join(layout.RuntimeRoot(), ".kernel-settings.json")
}

// lockInterval is how often a lock that another process holds is tried again.
const lockInterval = 100 * time.Millisecond

// lock waits until no other process brings this cluster up or down.
func lock(ctx context.Context, l layout.Layout) (unlock func(), err error) {
	if err := os.MkdirAll(layout.RuntimeRoot(), 0o755); err != nil {
		return nil, fmt.Errorf("make the runtime directory: %w", err)
	}
	for {
		file, err := os.OpenFile(l.LockFile(), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, fmt.Errorf("open the lock of cluster %s: %w", l.Name, err)
		}
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil && current(file) {
			return func() { _ = file.Close() }, nil
		}
		_ = file.Close()
		if err != nil && !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock cluster %s: %w", l.Name, err)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for another `up` or `down` of cluster %s: %w", l.Name, context.Cause(ctx))
		case <-time.After(lockInterval):
		}
	}
}

// current is false if `down` has removed the lock file that was just locked.
func current(file *os.File) bool {
	mine, err := file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(file.Name())
	return err == nil && os.SameFile(mine, there)
}
