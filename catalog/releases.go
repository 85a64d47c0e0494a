// Package catalog has the releases of the operator, those of the catalog and the next one.
package catalog

import (
	_ "embed"
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"
)

// File has the releases, below the root of the repository.
const File = "catalog/releases.yaml"

//go:embed releases.yaml
var text []byte

// Release is an entry of the file.
type Release struct {
	Version string `json:"version"`
	// Commit that it was built from; the next release has none yet.
	Commit   string   `json:"commit,omitempty"`
	Channels []string `json:"channels"`
	Changes  string   `json:"changes"`
	// Writes are the resources of children that an upgrade from the release before
	// writes: each object of them that it changes, once.
	Writes []string `json:"writes,omitempty"`
}

// Releases are in their order, the oldest first.
type Releases []Release

// Read returns the releases that are out, and the next one: what the working tree becomes.
func Read() (out Releases, next Release, err error) {
	var all Releases
	if err := yaml.UnmarshalStrict(text, &all); err != nil {
		return nil, next, fmt.Errorf("read %s: %w", File, err)
	}
	last := len(all) - 1
	if last < 0 || slices.IndexFunc(all, func(r Release) bool { return r.Commit == "" }) != last {
		return nil, next, fmt.Errorf("%s must end with the next release, which alone has no commit: add its version", File)
	}
	return all[:last:last], all[last], nil
}

// With is all of them, and one more at the end.
func (r Releases) With(next Release) Releases { return append(slices.Clone(r), next) }

// Writes are the resources of children that an upgrade writes: what each release on the
// way announces, also those that are skipped.
func (r Releases) Writes(from, to string) []string {
	var all []string
	after := false
	for _, release := range r {
		if after {
			all = append(all, release.Writes...)
		}
		if release.Version == to {
			break
		}
		after = after || release.Version == from
	}
	slices.Sort(all)
	return slices.Compact(all)
}
