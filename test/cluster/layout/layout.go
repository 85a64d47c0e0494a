// Package layout says where everything of an embedded cluster is: its
// directories, its addresses and the names of its parts. It decides nothing and
// touches nothing, so that every other package agrees on these.
package layout

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

// DefaultName is the name of the cluster when none is given.
const DefaultName = "default"

// DefaultNodes is the number of nodes of a new cluster when none is given.
const DefaultNodes = 3

// MaxNodes is bounded by the /24 of the node network and its first address, 11.
const MaxNodes = 100

// runtimeRoot holds sockets, pid files and namespaces, all gone after a reboot.
// It is short because the path of a shim's socket may have 42 bytes at most.
const runtimeRoot = "/run/redis-operator"

var validName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,14}[a-z0-9])?$`)

// Layout describes one cluster.
type Layout struct {
	// Name tells clusters on one machine apart: a DNS label of 1 to 16 characters.
	Name string `json:"name"`
	// Nodes is the number of nodes, 1 to MaxNodes.
	Nodes int `json:"nodes"`
	// Cache is the directory of built components and, below run/, of bulk data.
	Cache string `json:"cache"`
}

// New returns the layout of the named cluster, from its saved state where it
// exists. nodes 0 keeps the number of an existing cluster.
func New(name string, nodes int) (Layout, error) {
	if !validName.MatchString(name) {
		return Layout{}, fmt.Errorf("cluster name %q: use 1 to 16 lower-case letters, digits and dashes", name)
	}
	if nodes < 0 || nodes > MaxNodes {
		return Layout{}, fmt.Errorf("%d nodes: use 1 to %d", nodes, MaxNodes)
	}
	l, err := load(name)
	if err != nil {
		return Layout{}, err
	}
	if nodes == 0 {
		return l, nil
	}
	if l.Exists() && nodes < l.Nodes {
		return Layout{}, fmt.Errorf("cluster %s has %d nodes and cannot shrink to %d: take it down first", name, l.Nodes, nodes)
	}
	l.Nodes = nodes
	return l, nil
}

func load(name string) (Layout, error) {
	cache, err := CacheDir()
	if err != nil {
		return Layout{}, err
	}
	l := Layout{Name: name, Nodes: DefaultNodes, Cache: cache}
	data, err := os.ReadFile(l.stateFile())
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return Layout{}, fmt.Errorf("read the state of cluster %s: %w", name, err)
	}
	if err := json.Unmarshal(data, &l); err != nil {
		return Layout{}, fmt.Errorf("parse the state of cluster %s in %s: %w", name, l.stateFile(), err)
	}
	return l, nil
}

// List returns the names of the clusters that exist on this machine.
func List() ([]string, error) {
	files, err := filepath.Glob(filepath.Join(runtimeRoot, "*", "cluster.json"))
	if err != nil {
		return nil, fmt.Errorf("list the clusters in %s: %w", runtimeRoot, err)
	}
	names := make([]string, 0, len(files))
	for _, file := range files {
		names = append(names, filepath.Base(filepath.Dir(file)))
	}
	return names, nil
}

// CacheDir returns the user's cache directory of this project.
func CacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache directory (set XDG_CACHE_HOME): %w", err)
	}
	return filepath.Join(dir, "redis-operator"), nil
}

// Exists reports whether `up` has begun to make this cluster.
func (l Layout) Exists() bool {
	_, err := os.Stat(l.stateFile())
	return err == nil
}

// Save records the layout, so that a later call finds the same cluster.
func (l Layout) Save() error {
	data, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("encode the state of cluster %s: %w", l.Name, err)
	}
	return WriteFile(l.stateFile(), data, 0o600)
}

// WriteFile replaces a file in one step, with its directory if that is missing.
func WriteFile(path string, data []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("make the directory of %s: %w", path, err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() { _ = os.Remove(tmp.Name()) }()
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Chmod(mode), tmp.Close())
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
