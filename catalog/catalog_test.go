package catalog

import (
	"encoding/base64"
	"encoding/xml"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	"sigs.k8s.io/yaml"

	"seang.org/operator/test/registry"
)

// blob is any entry of the catalog.
type blob struct {
	Schema, Name, Package, Image string
	// of a package
	DefaultChannel, Description string
	Icon                        struct{ Base64data, Mediatype string }
	// of a channel
	Entries []struct{ Name, Replaces, SkipRange string }
	// of a bundle
	RelatedImages []struct{ Image string }
	Properties    []struct {
		Type  string
		Value map[string]any
	}
}

func read(t *testing.T) (releases Releases, blobs map[string][]blob) {
	t.Helper()
	releases, _, err := Read()
	if err != nil {
		t.Fatal(err)
	}
	blobs = map[string][]blob{}
	for document := range strings.SplitSeq(string(file(t, "redis-operator/catalog.yaml")), "\n---\n") {
		var b blob
		if err := yaml.Unmarshal([]byte(document), &b); err != nil {
			t.Fatal(err)
		}
		blobs[b.Schema] = append(blobs[b.Schema], b)
	}
	return releases, blobs
}

func file(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func csv(version string) string { return "redis-operator.v" + version }

func TestThePackageIsWhatAPersonLooksFor(t *testing.T) {
	_, blobs := read(t)
	if len(blobs["olm.package"]) != 1 {
		t.Fatalf("the catalog has %d packages, want one", len(blobs["olm.package"]))
	}
	p := blobs["olm.package"][0]
	if p.Name != "redis-operator" || len(p.Description) < 100 || p.DefaultChannel != "stable" {
		t.Errorf("the package is %q with the default channel %q and the description %q", p.Name, p.DefaultChannel, p.Description)
	}
	icon, err := base64.StdEncoding.DecodeString(p.Icon.Base64data)
	if err != nil || p.Icon.Mediatype != "image/svg+xml" || xml.Unmarshal(icon, new(struct{})) != nil {
		t.Errorf("the icon is no SVG: %s, %v", p.Icon.Mediatype, err)
	}
}

// A channel has the releases that say so, in their order; each replaces the one before it
// and takes every older one. So there is one head, and a way to it from everywhere.
func TestTheChannelsAreThoseOfTheReleases(t *testing.T) {
	releases, blobs := read(t)
	if len(blobs["olm.channel"]) != 2 {
		t.Errorf("there are %d channels, want candidate and stable", len(blobs["olm.channel"]))
	}
	for _, channel := range blobs["olm.channel"] {
		var want []string
		for _, r := range releases {
			if slices.Contains(r.Channels, channel.Name) {
				want = append(want, csv(r.Version))
			}
		}
		var got []string
		for i, e := range channel.Entries {
			got = append(got, e.Name)
			if i > 0 && e.Replaces != got[i-1] {
				t.Errorf("%s in %s replaces %q, want %s", e.Name, channel.Name, e.Replaces, got[i-1])
			}
			accepts(t, releases, e.Name, e.SkipRange)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s has %v, want %v", channel.Name, got, want)
		}
	}
}

// accepts checks that the release of a name may be reached from every older one.
func accepts(t *testing.T, releases Releases, name, skipRange string) {
	t.Helper()
	for _, r := range releases {
		if csv(r.Version) == name {
			return
		}
		in, err := semver.ParseRange(skipRange)
		if err != nil || !in(semver.MustParse(r.Version)) {
			t.Errorf("%s skips %q, which leaves out %s: %v", name, skipRange, r.Version, err)
		}
	}
}

// children are the resources of what belongs to a RedisCluster.
var children = []string{"configmaps", "networkpolicies", "persistentvolumeclaims", "poddisruptionbudgets", "pods", "secrets", "services", "statefulsets"}

func TestTheNextReleaseIsTheBundle(t *testing.T) {
	releases, next, err := Read()
	if err != nil {
		t.Fatal(err)
	}
	var csv struct{ Spec struct{ Version string } }
	if err := yaml.Unmarshal(file(t, "../bundle/manifests/redis-operator.clusterserviceversion.yaml"), &csv); err != nil {
		t.Fatal(err)
	}
	if csv.Spec.Version != next.Version {
		t.Errorf("the next release is %s, and bundle/ is of %s: run make bundle VERSION=%s", next.Version, csv.Spec.Version, next.Version)
	}
	if !slices.Equal(next.Channels, []string{"candidate"}) || next.Changes == "" {
		t.Errorf("the next release enters %v, want candidate alone; its changes are %q", next.Channels, next.Changes)
	}
	for _, r := range releases.With(next) {
		for _, resource := range r.Writes {
			if !slices.Contains(children, resource) {
				t.Errorf("release %s announces writes to %s, want some of %v", r.Version, resource, children)
			}
		}
	}
}

func TestAnUpgradeWritesWhatTheReleasesOnItsWayAnnounce(t *testing.T) {
	releases := Releases{
		{Version: "0.1.0", Writes: []string{"pods"}}, {Version: "0.2.0", Writes: []string{"services", "configmaps"}},
		{Version: "0.3.0"}, {Version: "0.4.0", Writes: []string{"secrets", "services"}},
	}
	for _, c := range []struct {
		from, to string
		want     []string
	}{
		{"0.1.0", "0.2.0", []string{"configmaps", "services"}},
		{"0.2.0", "0.3.0", nil},
		{"0.1.0", "0.4.0", []string{"configmaps", "secrets", "services"}},
		{"0.3.0", "0.4.0", []string{"secrets", "services"}},
		{"0.4.0", "0.4.1", nil},
	} {
		if got := releases.Writes(c.from, c.to); !slices.Equal(got, c.want) {
			t.Errorf("%s → %s writes %v, want %v", c.from, c.to, got, c.want)
		}
	}
}

func TestReleasesAreInOrderAndProvedOnCandidateFirst(t *testing.T) {
	releases, _ := read(t)
	for i, r := range releases {
		if i > 0 && semver.MustParse(r.Version).LE(semver.MustParse(releases[i-1].Version)) {
			t.Errorf("release %s stands after %s", r.Version, releases[i-1].Version)
		}
		if !slices.Contains(r.Channels, "candidate") {
			t.Errorf("release %s is in %v, and not in candidate", r.Version, r.Channels)
		}
		if len(r.Commit) != 40 || r.Changes == "" {
			t.Errorf("release %s has the commit %q and the changes %q", r.Version, r.Commit, r.Changes)
		}
	}
}

func TestEachReleaseHasItsBundle(t *testing.T) {
	releases, blobs := read(t)
	if len(blobs["olm.bundle"]) != len(releases) {
		t.Fatalf("there are %d bundles of %d releases: run make catalog", len(blobs["olm.bundle"]), len(releases))
	}
	for i, r := range releases {
		b := blobs["olm.bundle"][i]
		if want := registry.Bundle + ":v" + r.Version; b.Name != csv(r.Version) || b.Image != want {
			t.Errorf("bundle %s has the image %s, want %s", b.Name, b.Image, want)
		}
		for _, want := range []string{b.Image, registry.Operator + ":v" + r.Version} {
			if !slices.ContainsFunc(b.RelatedImages, func(i struct{ Image string }) bool { return i.Image == want }) {
				t.Errorf("bundle %s has the related images %v, want %s among them", b.Name, b.RelatedImages, want)
			}
		}
		version := ""
		for _, p := range b.Properties {
			switch p.Type {
			case "olm.package":
				version, _ = p.Value["version"].(string)
			case "olm.bundle.object":
				t.Errorf("bundle %s has its manifests in the catalog: they belong into its image", b.Name)
			}
		}
		if version != r.Version {
			t.Errorf("bundle %s says that it is version %q", b.Name, version)
		}
	}
}
