package image

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"seang.org/operator/test/images/reference"
	"seang.org/operator/test/images/root"
)

// newTestStore keeps images in a directory of the test, and root directories in the
// cache: only they need the network.
func newTestStore(t *testing.T) Store {
	t.Helper()
	if testing.Short() {
		t.Skip("needs real servers, which apt downloads")
	}
	roots, err := root.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return Store{Dir: t.TempDir(), Roots: root.Store{Dir: roots}}
}

func load(t *testing.T, file string) v1.Image {
	t.Helper()
	image, err := tarball.ImageFromPath(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func build(t *testing.T, store Store, image reference.Image) Built {
	t.Helper()
	built, err := store.Server(t.Context(), image)
	if err != nil {
		t.Fatal(err)
	}
	return built
}

// files are the headers of an image's files, by their path without slashes
// around it; visit sees each, with its content.
func files(t *testing.T, image v1.Image, visit func(*tar.Header, io.Reader)) map[string]*tar.Header {
	t.Helper()
	content := mutate.Extract(image)
	defer func() { _ = content.Close() }() // only read
	headers := map[string]*tar.Header{}
	for archive := tar.NewReader(content); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return headers
		}
		if err != nil {
			t.Fatal(err)
		}
		headers[strings.Trim(header.Name, "/")] = header
		if visit != nil {
			visit(header, archive)
		}
	}
}

func TestServerImagesLookOfficial(t *testing.T) {
	tests := map[reference.Image]struct {
		wantTag     string
		wantCommand string
		wantLinks   map[string]string
	}{
		reference.Redis70:  {wantTag: "docker.io/library/redis:7.0", wantCommand: "redis-server", wantLinks: map[string]string{"redis-check-aof": "redis-server"}},
		reference.Redis80:  {wantTag: "docker.io/library/redis:8.0", wantCommand: "redis-server", wantLinks: map[string]string{"redis-check-rdb": "redis-server"}},
		reference.Valkey81: {wantTag: "docker.io/valkey/valkey:8.1", wantCommand: "valkey-server", wantLinks: map[string]string{"redis-server": "valkey-server", "redis-cli": "valkey-cli"}},
	}
	store := newTestStore(t)
	for name, test := range tests {
		t.Run(string(name), func(t *testing.T) {
			built := build(t, store, name)
			if built.References[0] != test.wantTag || !strings.HasPrefix(built.References[1], test.wantTag+".") {
				t.Errorf("references = %v, want %s and the exact version", built.References, test.wantTag)
			}
			manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(built.File) })
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(built.References[:1], manifest[0].RepoTags); diff != "" {
				t.Errorf("tags in the file differ (-want +got):\n%s", diff)
			}
			image := load(t, built.File)
			config, err := image.ConfigFile()
			if err != nil {
				t.Fatal(err)
			}
			got := v1.Config{User: config.Config.User, WorkingDir: config.Config.WorkingDir, Cmd: config.Config.Cmd, Volumes: config.Config.Volumes, Entrypoint: config.Config.Entrypoint}
			want := v1.Config{User: "999:999", WorkingDir: "/data", Cmd: []string{test.wantCommand}, Volumes: map[string]struct{}{"/data": {}}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("configuration differs (-want +got):\n%s", diff)
			}
			checkFiles(t, files(t, image, nil), test.wantCommand, test.wantLinks)
		})
	}
}

func checkFiles(t *testing.T, headers map[string]*tar.Header, command string, links map[string]string) {
	t.Helper()
	if h := headers["data"]; h == nil || h.Uid != 999 || h.Gid != 999 || h.Mode != 0o755 {
		t.Errorf("/data = %+v, want 999:999 and mode 0755", h)
	}
	if h := headers["tmp"]; h == nil || h.Mode != 0o1777 {
		t.Errorf("/tmp = %+v, want mode 1777", h)
	}
	if h := headers["usr/local/bin/"+command]; h == nil || h.Typeflag != tar.TypeReg || h.Mode != 0o755 {
		t.Errorf("%s = %+v, want a program in /usr/local/bin", command, h)
	}
	for link, target := range links {
		if h := headers["usr/local/bin/"+link]; h == nil || h.Linkname != target {
			t.Errorf("%s = %+v, want a link to %s", link, h, target)
		}
	}
	for _, program := range []string{"sh", "mv", "mkdir", "ls", "cat", "sync", "df", "flock"} {
		if headers["usr/bin/"+program] == nil {
			t.Errorf("there is no %s", program)
		}
	}
	for name, h := range headers {
		if name != "data" && (h.Uid != 0 || h.Gid != 0) {
			t.Errorf("/%s belongs to %d:%d, want root", name, h.Uid, h.Gid)
		}
		if !h.ModTime.Equal(epoch) {
			t.Errorf("/%s is of %s, want the epoch", name, h.ModTime)
		}
	}
}

func TestOtherImagesHaveNoServer(t *testing.T) {
	store := newTestStore(t)
	for name, wantClient := range map[reference.Image]bool{reference.NotRedis: false, reference.Client: true} {
		t.Run(string(name), func(t *testing.T) {
			headers := files(t, load(t, build(t, store, name).File), nil)
			if headers["usr/local/bin/redis-server"] != nil {
				t.Error("there is a redis-server")
			}
			if headers["usr/bin/sh"] == nil {
				t.Error("there is no shell")
			}
			if got := headers["usr/local/bin/redis-cli"] != nil; got != wantClient {
				t.Errorf("redis-cli is there: %t, want %t", got, wantClient)
			}
		})
	}
}

func TestBuildingAgainGivesTheSameFile(t *testing.T) {
	first, second := newTestStore(t), newTestStore(t)
	for name := range fromRoots {
		t.Run(string(name), func(t *testing.T) {
			a, err := os.ReadFile(build(t, first, name).File)
			if err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(build(t, second, name).File)
			if err != nil {
				t.Fatal(err)
			}
			if string(a) != string(b) {
				t.Error("the two files differ")
			}
		})
	}
}

func TestImageUpToDateIsLeftAlone(t *testing.T) {
	store := newTestStore(t)
	before, err := os.Stat(build(t, store, reference.Redis80).File)
	if err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(build(t, store, reference.Redis80).File)
	if err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(before, after) {
		t.Error("the image was written again")
	}
}

func TestOperatorImage(t *testing.T) {
	source := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":  "module operator.test\n\ngo 1.26\n",
		"main.go": "package main\n\nvar version = \"unset\"\n\nfunc main() { println(version) }\n",
	} {
		if err := os.WriteFile(filepath.Join(source, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var digests []v1.Hash
	for range 2 {
		built, err := Store{Dir: t.TempDir()}.Operator(t.Context(), OperatorSource{Dir: source, Version: "v0.0.1-test"})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{reference.OperatorReference("v0.0.1-test")}, built.References); diff != "" {
			t.Errorf("references differ (-want +got):\n%s", diff)
		}
		image := load(t, built.File)
		digest, err := image.Digest()
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, digest)
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if config.Config.User != "65532:65532" || len(config.RootFS.DiffIDs) != 1 || cmp.Diff([]string{"/manager"}, config.Config.Entrypoint) != "" {
			t.Errorf("configuration = %+v, want /manager as 65532 in one layer", config)
		}
		var program []byte
		headers := files(t, image, func(_ *tar.Header, content io.Reader) { program, err = io.ReadAll(content) })
		if err != nil || len(headers) != 1 || headers["manager"] == nil {
			t.Fatalf("files = %v, %v, want only manager", headers, err)
		}
		if !strings.Contains(string(program), "v0.0.1-test") {
			t.Error("the program does not know its version")
		}
		if strings.Contains(string(program), source) {
			t.Error("the program names the directory that it was compiled in")
		}
	}
	if digests[0] != digests[1] {
		t.Errorf("digests = %v, want the same twice", digests)
	}
}
