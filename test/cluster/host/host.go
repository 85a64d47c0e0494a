// Package host checks that the machine can run a cluster, and installs what is
// missing where it may.
package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// requirement is a program and the Debian package that has it.
type requirement struct {
	program string
	pkg     string
}

var requirements = []requirement{
	{program: "runc", pkg: "runc"},
	{program: "nft", pkg: "nftables"},
	{program: "mkfs.xfs", pkg: "xfsprogs"},
	{program: "xfs_growfs", pkg: "xfsprogs"},
	{program: "mount", pkg: "mount"},
}

// cniPlugins are the network plugins that the nodes use.
var cniPlugins = []string{"ptp", "host-local"}

// cniDirs are where Debian and others put network plugins.
var cniDirs = []string{"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"}

const cniPackage = "containernetworking-plugins"

// searchPath is where programs are looked for: an unprivileged user's PATH
// often lacks the sbin directories.
var searchPath = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// CNIDir returns the directory with the network plugins, empty if there is none.
func CNIDir() string {
	for _, dir := range cniDirs {
		if !slices.ContainsFunc(cniPlugins, func(plugin string) bool { return !exists(filepath.Join(dir, plugin)) }) {
			return dir
		}
	}
	return ""
}

// MissingPackages returns the Debian packages whose programs are not there.
func MissingPackages() []string {
	var missing []string
	for _, r := range requirements {
		found := slices.ContainsFunc(searchPath, func(dir string) bool { return exists(filepath.Join(dir, r.program)) })
		if !found && !slices.Contains(missing, r.pkg) {
			missing = append(missing, r.pkg)
		}
	}
	if CNIDir() == "" {
		missing = append(missing, cniPackage)
	}
	return missing
}

// EnsurePackages installs the packages that are missing, when it is root on a
// Debian system. Else its error says which they are and how to install them.
func EnsurePackages(ctx context.Context, out io.Writer) error {
	missing := MissingPackages()
	if len(missing) == 0 {
		return nil
	}
	_, err := exec.LookPath("apt-get")
	if os.Geteuid() != 0 || err != nil {
		return fmt.Errorf("packages are missing: %s; as root run: apt-get install %s", strings.Join(missing, ", "), strings.Join(missing, " "))
	}
	// Tests of several packages run at once, and apt-get refuses to share.
	unlock, err := Lock(ctx, filepath.Join(os.TempDir(), "redis-operator-packages.lock"))
	if err != nil {
		return err
	}
	defer unlock()
	if missing = MissingPackages(); len(missing) == 0 {
		return nil
	}
	_, _ = fmt.Fprintf(out, "installing packages %s\n", strings.Join(missing, " "))
	install := append([]string{"install", "-y", "--no-install-recommends"}, missing...)
	if err := apt(ctx, install...); err == nil {
		return nil
	}
	// The package lists may be absent or old.
	if err := apt(ctx, "update"); err != nil {
		return err
	}
	return apt(ctx, install...)
}

func apt(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "apt-get", args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	output, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("apt-get %s: %w\n%s", strings.Join(args, " "), err, strings.TrimSpace(string(output)))
	}
	return nil
}

// CheckKernel returns an error that names each feature the kernel lacks and
// what to do about it.
func CheckKernel() error {
	if os.Geteuid() != 0 {
		return errors.New("a cluster needs root for its namespaces and mounts: run this command with sudo")
	}
	var errs []error
	filesystems, err := os.ReadFile("/proc/filesystems")
	if err != nil {
		return fmt.Errorf("read the filesystems of the kernel: %w", err)
	}
	for _, name := range []string{"overlay", "xfs"} {
		if !strings.Contains(string(filesystems), "\t"+name+"\n") && exec.Command("modprobe", name).Run() != nil { //nolint:noctx // constants
			errs = append(errs, fmt.Errorf("the kernel has no %s filesystem: load it with `modprobe %s`", name, name))
		}
	}
	for path, feature := range map[string]string{
		"/dev/loop-control":             "loop",
		"/proc/self/ns/net":             "network namespaces (CONFIG_NET_NS)",
		"/sys/fs/cgroup":                "control groups",
		"/proc/sys/net/ipv4/ip_forward": "IPv4",
	} {
		if !exists(path) && exec.Command("modprobe", feature).Run() != nil { //nolint:noctx // constants
			errs = append(errs, fmt.Errorf("the kernel lacks %s: %s does not exist", feature, path))
		}
	}
	return errors.Join(errs...)
}

// SwapOn reports whether the machine swaps.
func SwapOn() bool {
	data, _ := os.ReadFile("/proc/swaps")
	return strings.Count(string(data), "\n") > 1
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
