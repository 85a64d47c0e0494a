package image

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"seang.org/operator/test/images/reference"
	"seang.org/operator/test/images/root"
)

// olmUser is that of the published images.
const olmUser = "1001"

// olmPrograms are what an image of OLM has, by path, and the program of each.
var olmPrograms = map[reference.Image]map[string]string{
	reference.OLM: {"usr/bin/olm": "olm", "usr/bin/catalog": "catalog", "usr/bin/cpb": "cpb"},
	reference.OPM: {"usr/bin/opm": "opm", "usr/bin/grpc_health_probe": "grpc-health-probe"},
}

// OLM makes one of the images of the Operator Lifecycle Manager from a directory
// with its programs, if it is not there and up to date. As in the published images
// there are cp, which unpacks bundles, and a /tmp for the cache of catalogs.
func (s Store) OLM(ctx context.Context, image reference.Image, programs string) (Built, error) {
	from, packages, err := s.root(ctx, fromRoots[reference.NotRedis])
	if err != nil {
		return Built{}, err
	}
	// The directory is named after the version, and never changes.
	key := packages + "-" + filepath.Base(programs)
	built := Built{Image: image, References: []string{image.Reference("")}, File: image.File(s.Dir)}
	if madeFrom(built.File, key) {
		return built, nil
	}
	made, err := olmImage(from, image, programs, key)
	if err != nil {
		return Built{}, fmt.Errorf("make image %s: %w", image, err)
	}
	return s.write(built, made)
}

func olmImage(from root.Root, image reference.Image, programs, key string) (v1.Image, error) {
	content := map[string][]byte{}
	for name, program := range olmPrograms[image] {
		read, err := os.ReadFile(filepath.Join(programs, program))
		if err != nil {
			return nil, fmt.Errorf("read a program of OLM: %w", err)
		}
		content[name] = read
	}
	base, err := fromRoots[reference.NotRedis].layer(from)
	if err != nil {
		return nil, err
	}
	layer, err := filesLayer(content)
	if err != nil {
		return nil, err
	}
	made, err := assemble(base, v1.Config{
		User: olmUser, Env: []string{searchPath}, WorkingDir: "/",
		Entrypoint: []string{"/bin/" + string(image)}, Labels: map[string]string{keyLabel: key},
	})
	if err != nil {
		return nil, err
	}
	made, err = mutate.AppendLayers(made, layer)
	if err != nil {
		return nil, fmt.Errorf("append the programs: %w", err)
	}
	return made, nil
}
