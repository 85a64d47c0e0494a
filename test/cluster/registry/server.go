// Package registry is the image registry of a cluster: containerd's mirror of
// every registry there is, which it keeps apart by their host names.
package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"seang.org/operator/test/cluster/layout"
)

// Server is a registry that keeps its content in a directory.
//
// go-containerregistry keeps blobs on disk but manifests in memory only, so
// those are written to files and put in again at the next start.
type Server struct {
	dir     string
	backend http.Handler
}

// stored is a manifest in a file.
type stored struct {
	// Path is that of the request that put it.
	Path        string `json:"path"`
	ContentType string `json:"contentType"`
	Body        []byte `json:"body"`
}

// NewServer returns the registry of a directory, with what is there already.
func NewServer(ctx context.Context, dir string) (*Server, error) {
	blobs := filepath.Join(dir, "blobs")
	if err := os.MkdirAll(blobs, 0o755); err != nil {
		return nil, fmt.Errorf("make the registry's directory: %w", err)
	}
	s := &Server{dir: dir, backend: registry.New(
		registry.WithBlobHandler(registry.NewDiskBlobHandler(blobs)),
		registry.Logger(log.New(os.Stderr, "", log.LstdFlags)),
	)}
	return s, s.restore(ctx)
}

func (s *Server) manifestDir() string { return filepath.Join(s.dir, "manifests") }

func (s *Server) restore(ctx context.Context) error {
	files, err := filepath.Glob(filepath.Join(s.manifestDir(), "*.json"))
	if err != nil {
		return fmt.Errorf("list the manifests in %s: %w", s.manifestDir(), err)
	}
	var manifests []stored
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read manifest %s: %w", file, err)
		}
		var m stored
		if err := json.Unmarshal(data, &m); err != nil {
			return fmt.Errorf("parse manifest %s: %w", file, err)
		}
		manifests = append(manifests, m)
	}
	// An index is refused before the images that it lists.
	slices.SortStableFunc(manifests, func(a, b stored) int { return rank(a) - rank(b) })
	for _, m := range manifests {
		request := httptest.NewRequestWithContext(ctx, http.MethodPut, m.Path, bytes.NewReader(m.Body))
		request.Header.Set("Content-Type", m.ContentType)
		response := httptest.NewRecorder()
		s.backend.ServeHTTP(response, request)
		if response.Code != http.StatusCreated {
			return fmt.Errorf("restore manifest %s: %s", m.Path, response.Body)
		}
	}
	return nil
}

func rank(m stored) int {
	if types.MediaType(m.ContentType).IsIndex() {
		return 1
	}
	return 0
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	qualify(r)
	if r.Method != http.MethodPut || path.Base(path.Dir(r.URL.Path)) != "manifests" {
		s.backend.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := s.store(stored{Path: r.URL.Path, ContentType: r.Header.Get("Content-Type"), Body: body}); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	s.backend.ServeHTTP(w, r)
}

// qualify puts the host that a mirror request is meant for, which containerd
// sends as a parameter, in front of the repository. Without it, the same
// repository of two hosts would be one.
func qualify(r *http.Request) {
	host := r.URL.Query().Get("ns")
	rest, ok := strings.CutPrefix(r.URL.Path, "/v2/")
	if host == "" || !ok || rest == "" {
		return
	}
	r.URL.Path = "/v2/" + hostPath(host) + "/" + rest
}

// hostPath makes a host a part of a repository, which has no colons.
func hostPath(host string) string { return strings.ReplaceAll(host, ":", "_") }

func (s *Server) store(m stored) error {
	data, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode manifest %s: %w", m.Path, err)
	}
	name := strings.NewReplacer("/", "_", ":", "-").Replace(strings.Trim(m.Path, "/")) + ".json"
	return layout.WriteFile(filepath.Join(s.manifestDir(), name), data, 0o644)
}

// Serve answers on all listeners until the context ends.
func (s *Server) Serve(ctx context.Context, listeners ...net.Listener) error {
	server := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, len(listeners))
	for _, listener := range listeners {
		go func() { failed <- server.Serve(listener) }()
	}
	select {
	case err := <-failed:
		return fmt.Errorf("serve images: %w", err)
	case <-ctx.Done():
	}
	if err := server.Close(); err != nil && !errors.Is(err, fs.ErrClosed) {
		return fmt.Errorf("close the registry: %w", err)
	}
	return nil
}
