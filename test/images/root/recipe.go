// Package root makes root directories of real Redis and Valkey servers, laid
// out as the official images are, and whole: with every library they need. The
// programs run in an image as well as on a machine with an older C library.
package root

import (
	"fmt"
	"slices"
)

// Flavour is the family of a server, which names its programs.
type Flavour string

// The flavours that the operator runs.
const (
	Redis  Flavour = "redis"
	Valkey Flavour = "valkey"
)

// Recipe is what to make a root directory of.
type Recipe struct {
	// Name is the flavour and the series of versions: redis-8.0.
	Name    string
	Flavour Flavour
	// Suite is the code name of a Debian release.
	Suite string
}

// Recipes are all root directories, sorted by name.
func Recipes() []Recipe {
	return []Recipe{
		{Name: "redis-7.0", Flavour: Redis, Suite: "bookworm"},
		{Name: "redis-8.0", Flavour: Redis, Suite: "trixie"},
		{Name: "valkey-8.1", Flavour: Valkey, Suite: "trixie"},
	}
}

// Select returns the recipes of names, all without any.
func Select(names ...string) ([]Recipe, error) {
	all := Recipes()
	if len(names) == 0 {
		return all, nil
	}
	var selected []Recipe
	for _, name := range names {
		at := slices.IndexFunc(all, func(r Recipe) bool { return r.Name == name })
		if at < 0 {
			return nil, fmt.Errorf("no root directory is named %q: one of redis-7.0, redis-8.0, valkey-8.1", name)
		}
		selected = append(selected, all[at])
	}
	return selected, nil
}

// servers are the packages with the server and its client.
func (r Recipe) servers() []string {
	return []string{string(r.Flavour) + "-server", string(r.Flavour) + "-tools"}
}

// shell are the packages with what scripts and people in a container use.
func (r Recipe) shell() []string { return []string{"coreutils", "dash", "grep", "sed"} }

// parts are the files wanted of packages of which the rest is not, by package:
// a program, or all below a directory. Without the locale a server refuses to
// start where LANG names it.
func (r Recipe) parts() map[string]string {
	return map[string]string{"util-linux": "usr/bin/flock", "libc-bin": "usr/lib/locale/C.utf8/"}
}

func (r Recipe) packages() []string {
	packages := append(r.servers(), r.shell()...)
	for name := range r.parts() {
		packages = append(packages, name)
	}
	slices.Sort(packages)
	return packages
}
