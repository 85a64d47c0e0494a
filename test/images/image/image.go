// Package image writes the container images of the tests, each a docker-archive
// file, without any container tool or registry.
package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"seang.org/operator/test/images/reference"
	"seang.org/operator/test/images/root"
)

// layoutVersion changes whenever images do for other reasons than new packages.
const layoutVersion = 1

// keyLabel has what an image was made from, to see whether it is up to date.
const keyLabel = "seang.org/made-from"

// Built is an image in a file.
type Built struct {
	Image reference.Image
	// References are its names. The first is the one that users write and that
	// the file has.
	References []string
	File       string
}

// Store keeps image files in a directory.
type Store struct {
	Dir   string
	Roots root.Store
}

// CacheDir is where image files are kept unless told otherwise.
func CacheDir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache directory: %w", err)
	}
	return filepath.Join(cache, "redis-operator", "images"), nil
}

// Server makes a test image that is made from a root directory, if it is not
// there and up to date, and the root directory before it.
func (s Store) Server(ctx context.Context, image reference.Image) (Built, error) {
	parts, ok := fromRoots[image]
	if !ok {
		return Built{}, fmt.Errorf("image %s is not made from a root directory", image)
	}
	from, key, err := s.root(ctx, parts)
	if err != nil {
		return Built{}, err
	}
	built := Built{Image: image, References: references(image, from), File: image.File(s.Dir)}
	if madeFrom(built.File, key) {
		return built, nil
	}
	made, err := parts.image(from, key)
	if err != nil {
		return Built{}, fmt.Errorf("make image %s: %w", image, err)
	}
	return s.write(built, made)
}

// root makes the root directory of an image, and names its content.
func (s Store) root(ctx context.Context, parts fromRoot) (from root.Root, key string, err error) {
	recipes, err := root.Select(parts.recipe)
	if err != nil {
		return root.Root{}, "", err
	}
	roots, err := s.Roots.Make(ctx, false, recipes...)
	if err != nil {
		return root.Root{}, "", err
	}
	key, err = parts.key(roots[0])
	return roots[0], key, err
}

// madeFrom tells whether the image in a file was made from key.
func madeFrom(file, key string) bool {
	image, err := tarball.ImageFromPath(file, nil)
	if err != nil {
		return false
	}
	config, err := image.ConfigFile()
	return err == nil && config.Config.Labels[keyLabel] == key
}

// write puts an image into its file, whole or not at all.
func (s Store) write(built Built, image v1.Image) (Built, error) {
	// One tag only: more would be in random order.
	tag, err := name.NewTag(built.References[0])
	if err != nil {
		return Built{}, fmt.Errorf("image reference %q: %w", built.References[0], err)
	}
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return Built{}, fmt.Errorf("make the directory of images: %w", err)
	}
	file, err := os.CreateTemp(s.Dir, ".new-")
	if err != nil {
		return Built{}, fmt.Errorf("make a scratch file: %w", err)
	}
	err = errors.Join(tarball.Write(tag, image, file), file.Chmod(0o644), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), built.File)
	}
	if err != nil {
		return Built{}, errors.Join(fmt.Errorf("write image %s to %s: %w", built.Image, built.File, err), os.Remove(file.Name()))
	}
	return built, nil
}

func assemble(layer v1.Layer, config v1.Config) (v1.Image, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.AppendLayers(image, layer)
	if err != nil {
		return nil, fmt.Errorf("append the layer: %w", err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", runtime.GOARCH
	file.Created = v1.Time{Time: epoch}
	file.Config = config
	image, err = mutate.ConfigFile(image, file)
	if err != nil {
		return nil, fmt.Errorf("set the configuration: %w", err)
	}
	return image, nil
}

// forArchitecture says of an image for which architecture its program is.
func forArchitecture(image v1.Image, arch string) (v1.Image, error) {
	file, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	file = file.DeepCopy()
	file.Architecture = arch
	return mutate.ConfigFile(image, file)
}
