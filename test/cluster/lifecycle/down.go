package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"seang.org/operator/test/cluster/cgroup"
	"seang.org/operator/test/cluster/host"
	"seang.org/operator/test/cluster/layout"
	"seang.org/operator/test/cluster/network"
	"seang.org/operator/test/cluster/storage"
)

// removeTimeout bounds how long the kernel has to release what a killed process
// has held.
const removeTimeout = 30 * time.Second

// What is outside of the cluster's directories: paths that the network library
// and the kubelet do not let us choose.
const (
	cniResults    = "/var/lib/cni/results"
	containerLogs = "/var/log/containers"
	devicePlugins = "/var/lib/kubelet/device-plugins"
)

// Down removes the cluster, whatever state it is in.
func (c *Cluster) Down(ctx context.Context) error {
	unlock, err := lock(ctx, c.Layout)
	if err != nil {
		return err
	}
	defer unlock()
	if err := c.remove(ctx); err != nil {
		return err
	}
	if others, err := layout.List(); err == nil && len(others) == 0 {
		if err := host.RestoreKernelSettings(kernelSettingsFile()); err != nil {
			return err
		}
	}
	if err := os.Remove(c.Layout.LockFile()); err != nil {
		return fmt.Errorf("remove the lock: %w", err)
	}
	_ = os.Remove(layout.RuntimeRoot()) // unless another cluster uses it
	_ = os.Remove(filepath.Dir(c.Layout.DataDir()))
	return nil
}

// remove goes from what uses to what is used: processes, mounts, loop devices,
// namespaces, control groups, files.
func (c *Cluster) remove(ctx context.Context) error {
	l := c.Layout
	ctx, cancel := context.WithTimeoutCause(ctx, removeTimeout, errors.New("the kernel does not release it"))
	defer cancel()
	if err := c.group.KillAll(ctx); err != nil {
		return err
	}
	steps := []func() error{
		func() error { return unmountBelow(l.RuntimeDir(), l.DataDir()) },
		func() error { return storage.DetachLoops(l.DataDir()) },
		func() error { return network.Remove(l) },
		func() error { return removeOutside(l) },
		func() error { return cgroup.Remove(l.Cgroup()) },
		// The saved state goes last: until then `down` finds the data directory.
		func() error { return removeTree(l.DataDir()) },
		func() error { return removeTree(l.RuntimeDir()) },
	}
	for _, step := range steps {
		if err := retry(ctx, step); err != nil {
			return err
		}
	}
	return nil
}

// retry repeats a step while the kernel is busy: a killed process, for one,
// stays in its control group until it is reaped.
func retry(ctx context.Context, step func() error) error {
	for {
		err := step()
		if err == nil || !errors.Is(err, syscall.EBUSY) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(20 * time.Millisecond): // the kernel tells in no other way
		}
	}
}

func unmountBelow(dirs ...string) error {
	mounts, err := Mounts(dirs...)
	if err != nil {
		return err
	}
	slices.Reverse(mounts) // a later mount may be on an earlier one
	for _, mount := range mounts {
		if err := syscall.Unmount(mount, syscall.MNT_DETACH); err != nil && !errors.Is(err, syscall.EINVAL) {
			return fmt.Errorf("unmount %s: %w", mount, err)
		}
	}
	return nil
}

// Mounts returns the mount points in or below directories, in order of mounting.
func Mounts(dirs ...string) ([]string, error) {
	data, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, fmt.Errorf("read the mounts: %w", err)
	}
	var found []string
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		mount := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\134`, `\`).Replace(fields[1])
		if slices.ContainsFunc(dirs, func(dir string) bool { return within(mount, dir) }) {
			found = append(found, mount)
		}
	}
	return found, nil
}

func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, dir+string(filepath.Separator))
}

// removeOutside removes the files that processes have made in shared places.
func removeOutside(l layout.Layout) error {
	for _, path := range Outside(l) {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove %s: %w", path, err)
		}
	}
	// Kubelets of all clusters take turns at this one socket.
	if socket := filepath.Join(devicePlugins, "kubelet.sock"); dead(socket) {
		if err := os.Remove(socket); err != nil {
			return fmt.Errorf("remove %s: %w", socket, err)
		}
	}
	// They are there before the first cluster only where Kubernetes is installed.
	for _, dir := range []string{cniResults, filepath.Dir(cniResults), containerLogs, devicePlugins, filepath.Dir(devicePlugins)} {
		_ = os.Remove(dir) // only if it is empty
	}
	return nil
}

// dead reports whether a socket is there that no process listens on.
func dead(socket string) bool {
	connection, err := net.Dial("unix", socket) //nolint:noctx // it does not block
	if err == nil {
		_ = connection.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// Outside returns the cluster's files in shared directories.
func Outside(l layout.Layout) []string {
	found, _ := filepath.Glob(filepath.Join(cniResults, l.NamespacePrefix()+"*"))
	links, _ := filepath.Glob(filepath.Join(containerLogs, "*.log"))
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && within(target, l.DataDir()) {
			found = append(found, link)
		}
	}
	return found
}

func removeTree(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove %s: %w", dir, err)
	}
	return nil
}
