package build

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestDirNamesTheComponentAndItsVersion(t *testing.T) {
	for name, want := range map[string]string{
		"kubernetes": "kubernetes-v1.", "containerd": "containerd-v2.", "coredns": "coredns-v1.", "pause": "pause-v1-",
		"olm":         "olm-v0.",
		"certmanager": "certmanager-v1.",
	} {
		t.Run(name, func(t *testing.T) {
			components, err := Select(name)
			if err != nil {
				t.Fatal(err)
			}
			dir, err := components[0].Dir()
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(filepath.Base(dir), want) {
				t.Errorf("the directory is %s, want %s…", filepath.Base(dir), want)
			}
		})
	}
	of, err := Select()
	if err != nil || slices.ContainsFunc(of, func(c Component) bool { return c.OnDemand }) || len(of) < 4 {
		t.Errorf("a cluster is made of %v, %v", of, err)
	}
	if _, err := Select("docker"); err == nil {
		t.Error("an unknown component was accepted")
	}
}

func TestDigestChangesWithTheSources(t *testing.T) {
	s := source{Component: Component{Name: "a", Package: "."}, dir: t.TempDir(), version: "v1"}
	digests := map[string]string{}
	for _, content := range []string{"package main", "package main // changed"} {
		if err := os.WriteFile(filepath.Join(s.dir, "main.go"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		digest, err := s.digest()
		if err != nil {
			t.Fatal(err)
		}
		if again, err := s.digest(); err != nil || again != digest {
			t.Errorf("the digest of the same sources is %s and %s, %v", digest, again, err)
		}
		if other, ok := digests[digest]; ok {
			t.Errorf("%q has the digest of %q", content, other)
		}
		digests[digest] = content
	}
}

func TestAFailedBuildLeavesNothingAndSaysWhy(t *testing.T) {
	s := brokenSource(t)
	err := s.build(t.Context(), func(string) {})
	if err == nil || !strings.Contains(err.Error(), "undefined: missing") {
		t.Errorf("the error is %v, want the compiler's message", err)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(s.target), "*"))
	if err != nil {
		t.Fatal(err)
	}
	left = slices.DeleteFunc(left, func(path string) bool { return filepath.Ext(path) == ".lock" })
	if len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

func brokenSource(t *testing.T) source {
	t.Helper()
	dir := t.TempDir()
	for file, content := range map[string]string{
		"go.mod":  "module broken\n\ngo 1.26.0\n",
		"main.go": "package main\n\nfunc main() { missing() }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return source{
		Component: Component{Name: "broken", Package: "."},
		dir:       dir, version: "v1", target: filepath.Join(t.TempDir(), "broken-v1"),
	}
}
