package image

import (
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"seang.org/operator/test/images/reference"
)

// catalogDir is where the catalog is in its image, as the label says.
const catalogDir = "configs"

// maxBundleSize bounds the layer of a bundle's image, in bytes: OLM keeps what it unpacks
// in a ConfigMap.
const maxBundleSize = 200_000

// Bundle makes the image of a bundle: its files and labels, and nothing that runs.
func (s Store) Bundle(name, dir string, labels map[string]string) (Built, error) {
	layer, err := directoryLayer(dir, every)
	if err != nil {
		return Built{}, err
	}
	size, err := layer.Size()
	if err != nil {
		return Built{}, fmt.Errorf("measure bundle %s: %w", dir, err)
	}
	if size > maxBundleSize {
		return Built{}, fmt.Errorf("the image of bundle %s has %d bytes, more than %d: leave out of bundle/ what OLM does not need", dir, size, maxBundleSize)
	}
	made, err := assemble(layer, v1.Config{Labels: labels})
	if err != nil {
		return Built{}, fmt.Errorf("make the image of bundle %s: %w", dir, err)
	}
	return s.write(Built{References: []string{name}, File: s.file(name)}, made)
}

// Program makes the image of a static program, and nothing else. It runs as a user
// that no machine has, and has no entry point: who starts it names it.
func (s Store) Program(name, file string) (Built, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return Built{}, fmt.Errorf("read the program: %w", err)
	}
	layer, err := fileLayer(filepath.Join(serverPrograms, filepath.Base(file)), content)
	if err != nil {
		return Built{}, err
	}
	made, err := assemble(layer, v1.Config{User: operatorUser, Env: []string{searchPath}, WorkingDir: "/"})
	if err != nil {
		return Built{}, fmt.Errorf("make the image of program %s: %w", file, err)
	}
	return s.write(Built{References: []string{name}, File: s.file(name)}, made)
}

// Catalog makes the image of a file-based catalog: opm, which serves it, and its files.
func (s Store) Catalog(name, dir string) (Built, error) {
	base, err := tarball.ImageFromPath(reference.OPM.File(s.Dir), nil)
	if err != nil {
		return Built{}, fmt.Errorf("read the image of opm, which is built first: %w", err)
	}
	content := map[string][]byte{}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return Built{}, fmt.Errorf("list the catalog %s: %w", dir, err)
	}
	for _, file := range files {
		read, err := os.ReadFile(file)
		if err != nil {
			return Built{}, fmt.Errorf("read the catalog: %w", err)
		}
		content[filepath.Join(catalogDir, filepath.Base(file))] = read
	}
	layer, err := filesLayer(content)
	if err != nil {
		return Built{}, err
	}
	made, err := mutate.AppendLayers(base, layer)
	if err != nil {
		return Built{}, fmt.Errorf("make the image of catalog %s: %w", dir, err)
	}
	config, err := made.ConfigFile()
	if err != nil {
		return Built{}, fmt.Errorf("make the image of catalog %s: %w", dir, err)
	}
	config = config.DeepCopy()
	config.Config.Cmd = []string{"serve", "/" + catalogDir}
	config.Config.Labels = map[string]string{"operators.operatorframework.io.index.configs.v1": "/" + catalogDir}
	if made, err = mutate.ConfigFile(made, config); err != nil {
		return Built{}, fmt.Errorf("make the image of catalog %s: %w", dir, err)
	}
	return s.write(Built{References: []string{name}, File: s.file(name)}, made)
}

// file is where the image of a reference is kept.
func (s Store) file(name string) string {
	base := []byte(filepath.Base(name))
	for i, c := range base {
		if c == ':' || c == '@' {
			base[i] = '-'
		}
	}
	return filepath.Join(s.Dir, string(base)+".tar")
}
