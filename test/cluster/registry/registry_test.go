package registry

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func TestRepositoryKeepsTheWholeReference(t *testing.T) {
	const digest = "sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"
	for testName, tc := range map[string]struct{ reference, want string }{
		"a host of one's own":            {"registry.example.com/a/b:v1", "127.0.0.1:5000/registry.example.com/a/b:v1"},
		"Docker Hub by its name":         {"docker.io/library/redis:8.0", "127.0.0.1:5000/docker.io/library/redis:8.0"},
		"Docker Hub by no name":          {"redis:8.0", "127.0.0.1:5000/docker.io/library/redis:8.0"},
		"no tag is latest":               {"localhost/pause", "127.0.0.1:5000/localhost/pause:latest"},
		"a host with a port":             {"example.com:5000/a:v1", "127.0.0.1:5000/example.com_5000/a:v1"},
		"a digest is kept as it is":      {"example.com/a@" + digest, "127.0.0.1:5000/example.com/a@" + digest},
		"no reference is refused":        {"example.com/UPPER:v1", ""},
		"a tag out of place is refused":  {"example.com/a:b:c", ""},
		"an empty reference is refused":  {"", ""},
		"a reference with no repository": {"example.com/", ""},
	} {
		t.Run(testName, func(t *testing.T) {
			got, err := Repository("127.0.0.1:5000", tc.reference)
			if (err != nil) != (tc.want == "") {
				t.Fatalf("error %v", err)
			}
			if err == nil && got.String() != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestServerKeepsImagesOverARestart(t *testing.T) {
	dir := t.TempDir()
	image, err := random.Image(100, 2)
	if err != nil {
		t.Fatal(err)
	}
	index, err := random.Index(100, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	first := serve(t, dir)
	if err := PushImage(t.Context(), first, "example.com/a:v1", image); err != nil {
		t.Fatal(err)
	}
	kept, err := Repository(first, "example.com/index:v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(kept, index); err != nil {
		t.Fatal(err)
	}

	second := serve(t, dir)
	for reference, want := range map[string]interface{ RawManifest() ([]byte, error) }{
		"example.com/a:v1": image, "example.com/index:v1": index,
	} {
		kept, err := Repository(second, reference)
		if err != nil {
			t.Fatal(err)
		}
		got, err := remote.Get(kept)
		if err != nil {
			t.Fatal(err)
		}
		manifest, err := want.RawManifest()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(manifest), string(got.Manifest)); diff != "" {
			t.Errorf("%s after the restart (-want +got):\n%s", reference, diff)
		}
	}
}

func TestServerKeepsTheSameRepositoryOfTwoHostsApart(t *testing.T) {
	address := serve(t, t.TempDir())
	image, err := random.Image(10, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := PushImage(t.Context(), address, "one.example.com/a:v1", image); err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]int{"one.example.com": 200, "two.example.com": 404} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/v2/a/manifests/v1?ns="+host, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("the mirror of %s answers %d, want %d", host, response.StatusCode, want)
		}
	}
}

func TestPushReadsArchivesAndLayouts(t *testing.T) {
	image, err := random.Image(100, 1)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	archive := filepath.Join(dir, "image.tar")
	tag, err := name.NewTag("example.com/whatever:v0")
	if err != nil {
		t.Fatal(err)
	}
	if err := tarball.WriteToFile(archive, tag, image); err != nil {
		t.Fatal(err)
	}
	path, err := layout.Write(filepath.Join(dir, "layout"), empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	if err := path.AppendImage(image); err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(dir, "broken.tar")
	if err := os.WriteFile(broken, []byte("no image"), 0o600); err != nil {
		t.Fatal(err)
	}
	address := serve(t, t.TempDir())
	for testName, tc := range map[string]struct {
		file    string
		wantErr bool
	}{
		"a docker-archive":              {archive, false},
		"an OCI layout":                 {string(path), false},
		"a file that is no image":       {broken, true},
		"a file that does not exist":    {filepath.Join(dir, "absent"), true},
		"a directory that is no layout": {dir, true},
	} {
		t.Run(testName, func(t *testing.T) {
			err := Push(t.Context(), address, "example.com/a:v1", tc.file)
			if (err != nil) != tc.wantErr {
				t.Errorf("error %v, want one: %t", err, tc.wantErr)
			}
		})
	}
}

func serve(t *testing.T, dir string) (address string) {
	t.Helper()
	server, err := NewServer(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	listening := httptest.NewServer(server)
	t.Cleanup(listening.Close)
	return strings.TrimPrefix(listening.URL, "http://")
}
