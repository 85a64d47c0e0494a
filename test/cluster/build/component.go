// Package build makes the programs of a cluster from their Go modules, each
// once, and keeps them in the user's cache directory.
package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"seang.org/operator/test/cluster/layout"
)

// Component is a Go module that makes one or more programs.
type Component struct {
	// Name is that of its directory in test/cluster/build.
	Name string
	// Module is the dependency whose version is the component's, empty for
	// a program of our own.
	Module string
	// Package is what is built: "." or "tool", the tools of the go.mod.
	Package string
	// Tags are build tags, separated by commas.
	Tags string
	// VersionVariables are set to the version by the linker.
	VersionVariables []string
	// Links are names for the component's single program.
	Links []string
	// OnDemand components are no part of a cluster: they are built by name only.
	OnDemand bool
}

// Components are all there are, the one that takes longest first.
var Components = []Component{
	{
		Name:    "kubernetes",
		Module:  "k8s.io/kubernetes",
		Package: ".",
		VersionVariables: []string{
			"k8s.io/component-base/version.gitVersion",
			"k8s.io/client-go/pkg/version.gitVersion",
		},
		Links: []string{
			"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl", "etcd",
		},
	},
	{
		Name:             "containerd",
		Module:           "github.com/containerd/containerd/v2",
		Package:          "tool",
		Tags:             "no_btrfs,no_zfs,no_devmapper", // those need C libraries
		VersionVariables: []string{"github.com/containerd/containerd/v2/version.Version"},
	},
	{Name: "coredns", Module: "github.com/coredns/coredns", Package: "."},
	{Name: "pause", Package: "."},
	{
		Name:    "olm",
		Module:  "github.com/operator-framework/operator-lifecycle-manager",
		Package: "tool",
		Tags:    "json1,containers_image_openpgp,exclude_graphdriver_btrfs", // as its own makefile; the others need C libraries
		VersionVariables: []string{
			"github.com/operator-framework/operator-lifecycle-manager/pkg/version.OLMVersion",
		},
		OnDemand: true,
	},
	{Name: "certmanager", Module: "github.com/cert-manager/cert-manager", Package: ".", OnDemand: true},
}

// OfCluster returns the components that a cluster is made of.
func OfCluster() []Component {
	return slices.DeleteFunc(slices.Clone(Components), func(c Component) bool { return c.OnDemand })
}

// Select returns the named components, those of a cluster if no name is given.
func Select(names ...string) ([]Component, error) {
	if len(names) == 0 {
		return OfCluster(), nil
	}
	var selected []Component
	for _, name := range names {
		i := slices.IndexFunc(Components, func(c Component) bool { return c.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("component %q is unknown: use kubernetes, containerd, coredns, pause, olm or certmanager", name)
		}
		selected = append(selected, Components[i])
	}
	return selected, nil
}

// source is a component with where it comes from and where it goes.
type source struct {
	Component
	dir     string
	version string
	target  string
}

func (c Component) locate() (source, error) {
	root, err := sourceRoot()
	if err != nil {
		return source{}, err
	}
	s := source{Component: c, dir: filepath.Join(root, c.Name)}
	if s.version, err = c.pinnedVersion(s.dir); err != nil {
		return source{}, err
	}
	digest, err := s.digest()
	if err != nil {
		return source{}, err
	}
	cache, err := layout.CacheDir()
	if err != nil {
		return source{}, err
	}
	s.target = filepath.Join(cache, fmt.Sprintf("%s-%s-%s", c.Name, s.version, digest))
	return s, nil
}

// sourceRoot finds test/cluster/build from the working directory upwards.
func sourceRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the working directory: %w", err)
	}
	for ; ; dir = filepath.Dir(dir) {
		for _, below := range []string{"build", "test/cluster/build"} {
			if _, err := os.Stat(filepath.Join(dir, below, "kubernetes", "go.mod")); err == nil {
				return filepath.Join(dir, below), nil
			}
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("the sources of the components are not here: run this in the project's repository")
		}
	}
}

func (c Component) pinnedVersion(dir string) (string, error) {
	if c.Module == "" {
		return "v1", nil
	}
	file := filepath.Join(dir, "go.mod")
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read the version of %s: %w", c.Name, err)
	}
	mod, err := modfile.Parse(file, data, nil)
	if err != nil {
		return "", fmt.Errorf("read the version of %s: %w", c.Name, err)
	}
	for _, require := range mod.Require {
		if require.Mod.Path == c.Module {
			return require.Mod.Version, nil
		}
	}
	return "", fmt.Errorf("%s requires no %s", file, c.Module)
}

// digest covers all that decides what the programs become, but the Go release.
func (s source) digest() (string, error) {
	hash := sha256.New()
	_, _ = fmt.Fprintln(hash, s.buildArgs(""), s.Links)
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return "", fmt.Errorf("read the sources of %s: %w", s.Name, err)
	}
	for _, entry := range entries {
		if !entry.Type().IsRegular() {
			continue
		}
		file, err := os.Open(filepath.Join(s.dir, entry.Name()))
		if err != nil {
			return "", fmt.Errorf("read the sources of %s: %w", s.Name, err)
		}
		_, _ = fmt.Fprintln(hash, entry.Name())
		_, err = io.Copy(hash, file)
		if err = errors.Join(err, file.Close()); err != nil {
			return "", fmt.Errorf("read the sources of %s: %w", s.Name, err)
		}
	}
	return hex.EncodeToString(hash.Sum(nil))[:8], nil
}

func (s source) buildArgs(out string) []string {
	flags := []string{"-s", "-w"}
	for _, variable := range s.VersionVariables {
		flags = append(flags, "-X", variable+"="+s.version)
	}
	return []string{
		"build", "-v", "-trimpath", "-buildvcs=false", "-tags", s.Tags,
		"-ldflags", strings.Join(flags, " "), "-o", out + string(filepath.Separator), s.Package,
	}
}

// Dir returns where a component's programs are, or will be.
func (c Component) Dir() (string, error) {
	s, err := c.locate()
	if err != nil {
		return "", err
	}
	return s.target, nil
}

// Ensure builds the components that are not up to date.
func Ensure(ctx context.Context, components []Component, out io.Writer) error {
	var stale []source
	for _, c := range components {
		s, err := c.locate()
		if err != nil {
			return err
		}
		if _, err := os.Stat(s.target); err != nil {
			stale = append(stale, s)
		}
	}
	if len(stale) == 0 {
		return nil
	}
	return buildAll(ctx, stale, out)
}
