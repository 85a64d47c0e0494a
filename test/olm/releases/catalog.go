package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// channel is a channel of a file-based catalog.
type channel struct {
	Schema  string  `json:"schema"`
	Package string  `json:"package"`
	Name    string  `json:"name"`
	Entries []entry `json:"entries"`
}

// entry is a release in a channel, and which others it upgrades.
type entry struct {
	Name      string   `json:"name"`
	Replaces  string   `json:"replaces,omitempty"`
	SkipRange string   `json:"skipRange,omitempty"`
	Skips     []string `json:"skips,omitempty"`
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

// catalog makes the image of a catalog of some releases, whose bundles are made.
func (b builder) catalog(ctx context.Context, tag string, releases []Release) error {
	blobs := []any{map[string]any{"schema": "olm.package", "name": packageName, "defaultChannel": defaultChannel, "description": "Runs Redis."}}
	for _, c := range channels(releases) {
		blobs = append(blobs, c)
	}
	for _, r := range releases {
		rendered, err := run(ctx, b.opm, "render", filepath.Join(b.scratch, "bundle-"+r.tag()), "--output", "json")
		if err != nil {
			return err
		}
		var blob map[string]any
		if err := json.Unmarshal(rendered, &blob); err != nil {
			return fmt.Errorf("read what opm rendered of release %s: %w", r.Version, err)
		}
		blob["image"] = bundleRepository + ":" + r.tag()
		blob["properties"] = withoutObjects(blob["properties"])
		blobs = append(blobs, blob)
	}
	dir := filepath.Join(b.scratch, "catalog-"+tag)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make catalog %s: %w", tag, err)
	}
	var text []byte
	for _, blob := range blobs {
		encoded, err := json.Marshal(blob)
		if err != nil {
			return fmt.Errorf("make catalog %s: %w", tag, err)
		}
		text = append(append(text, encoded...), '\n')
	}
	if err := os.WriteFile(filepath.Join(dir, "catalog.json"), text, 0o644); err != nil {
		return fmt.Errorf("make catalog %s: %w", tag, err)
	}
	if _, err := run(ctx, b.opm, "validate", dir); err != nil {
		return err
	}
	return b.image(ctx, "catalog", catalogRepository+":"+tag, dir)
}

// withoutObjects leaves the manifests out: OLM gets them from the bundle's image.
func withoutObjects(properties any) any {
	list, ok := properties.([]any)
	if !ok {
		return properties
	}
	return slices.DeleteFunc(list, func(p any) bool {
		property, ok := p.(map[string]any)
		return ok && property["type"] == "olm.bundle.object"
	})
}
