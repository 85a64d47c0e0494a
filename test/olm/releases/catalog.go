package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"seang.org/operator/test/registry"
)

// Where the catalog comes from, and where it is rendered to.
const (
	packageFile = "catalog/package.yaml"
	iconFile    = "config/manifests/icon.svg"
	catalogDir  = "catalog/redis-operator"
	catalogFile = catalogDir + "/catalog.yaml"
)

// blob is an entry of a file-based catalog.
type blob map[string]any

// channel is a channel of a file-based catalog.
type channel struct {
	Schema  string  `json:"schema"`
	Package string  `json:"package"`
	Name    string  `json:"name"`
	Entries []entry `json:"entries"`
}

// entry is a release in a channel, and which others it upgrades.
type entry struct {
	Name      string `json:"name"`
	Replaces  string `json:"replaces,omitempty"`
	SkipRange string `json:"skipRange,omitempty"`
}

// channels are those of releases: each upgrades the one before it in its channel, and
// every earlier one at once.
func channels(releases []Release) []channel {
	var all []channel
	for _, name := range []string{"candidate", "stable"} {
		c := channel{Schema: "olm.channel", Package: packageName, Name: name}
		for _, r := range releases {
			if !slices.Contains(r.Channels, name) {
				continue
			}
			e := entry{Name: r.csvName()}
			if len(c.Entries) > 0 || r.Version != releases[0].Version {
				e.SkipRange = fmt.Sprintf(">=%s <%s", releases[0].Version, r.Version)
			}
			if n := len(c.Entries); n > 0 {
				e.Replaces = c.Entries[n-1].Name
			}
			c.Entries = append(c.Entries, e)
		}
		if len(c.Entries) > 0 {
			all = append(all, c)
		}
	}
	return all
}

// describePackage is what the catalog says of the package.
func describePackage() (blob, error) {
	text, err := os.ReadFile(packageFile)
	if err != nil {
		return nil, fmt.Errorf("read what the catalog says of the package: %w", err)
	}
	var described blob
	if err := yaml.UnmarshalStrict(text, &described); err != nil {
		return nil, fmt.Errorf("read %s: %w", packageFile, err)
	}
	icon, err := os.ReadFile(iconFile)
	if err != nil {
		return nil, fmt.Errorf("read the icon: %w", err)
	}
	described["icon"] = map[string]any{"base64data": base64.StdEncoding.EncodeToString(icon), "mediatype": "image/svg+xml"}
	return described, nil
}

// renderBundle is the blob of a release's bundle, whose directory is made. OLM gets the
// manifests from the bundle's image; what consoles show is in the catalog. opm moves it
// there for a bundle with an image only, so it renders twice.
func (b builder) renderBundle(ctx context.Context, r Release) (blob, error) {
	whole, err := b.opmRender(ctx, filepath.Join(b.scratch, "bundle-"+r.tag()))
	if err != nil {
		return nil, err
	}
	image := registry.Bundle + ":" + r.tag()
	whole["image"] = image
	related, _ := whole["relatedImages"].([]any)
	whole["relatedImages"] = append(related, map[string]any{"name": "", "image": image}) // for those who mirror
	text, err := json.Marshal(whole)
	if err != nil {
		return nil, fmt.Errorf("write the bundle of release %s: %w", r.Version, err)
	}
	dir := filepath.Join(b.scratch, "rendered-"+r.tag())
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "bundle.json"), text, 0o644)); err != nil {
		return nil, fmt.Errorf("write the bundle of release %s: %w", r.Version, err)
	}
	return b.opmRender(ctx, dir, "--migrate-level", "bundle-object-to-csv-metadata")
}

func (b builder) opmRender(ctx context.Context, dir string, options ...string) (blob, error) {
	rendered, err := run(ctx, b.opm, append([]string{"render", dir, "--output", "json"}, options...)...)
	if err != nil {
		return nil, err
	}
	var made blob
	if err := json.Unmarshal(rendered, &made); err != nil {
		return nil, fmt.Errorf("read what opm rendered of %s: %w", dir, err)
	}
	return made, nil
}

// releasedBundles are the blobs of the bundles in the catalog of the repository, by name.
func releasedBundles() (map[string]blob, error) {
	text, err := os.ReadFile(catalogFile)
	if err != nil {
		return nil, fmt.Errorf("read the catalog, which make catalog writes: %w", err)
	}
	found := map[string]blob{}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var read blob
		if err := yaml.Unmarshal([]byte(document), &read); err != nil {
			return nil, fmt.Errorf("read %s: %w", catalogFile, err)
		}
		if name, ok := read["name"].(string); ok && read["schema"] == "olm.bundle" {
			found[name] = read
		}
	}
	return found, nil
}

// renderCatalog is the text of a catalog of releases whose bundles are given.
func renderCatalog(releases []Release, bundles map[string]blob) ([]byte, error) {
	described, err := describePackage()
	if err != nil {
		return nil, err
	}
	blobs := []any{described}
	for _, c := range channels(releases) {
		blobs = append(blobs, c)
	}
	for _, r := range releases {
		found, ok := bundles[r.csvName()]
		if !ok {
			return nil, fmt.Errorf("%s has no bundle %s: run make catalog", catalogFile, r.csvName())
		}
		blobs = append(blobs, found)
	}
	var texts [][]byte
	for _, each := range blobs {
		text, err := yaml.Marshal(each)
		if err != nil {
			return nil, fmt.Errorf("render the catalog: %w", err)
		}
		texts = append(texts, text)
	}
	return bytes.Join(texts, []byte("---\n")), nil
}

// writeCatalog puts a catalog into a directory of its own, and validates it.
func (b builder) writeCatalog(ctx context.Context, dir string, text []byte) error {
	err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, filepath.Base(catalogFile)), text, 0o644))
	if err != nil {
		return fmt.Errorf("write the catalog: %w", err)
	}
	_, err = run(ctx, b.opm, "validate", dir)
	return err
}

// catalog makes the image of a catalog of some releases.
func (b builder) catalog(ctx context.Context, tag string, releases []Release, bundles map[string]blob) error {
	text, err := renderCatalog(releases, bundles)
	if err != nil {
		return err
	}
	dir := filepath.Join(b.scratch, "catalog-"+tag)
	if err := b.writeCatalog(ctx, dir, text); err != nil {
		return err
	}
	return b.image(ctx, "catalog", registry.Catalog+":"+tag, dir)
}
