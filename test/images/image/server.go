package image

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"seang.org/operator/test/images/reference"
	"seang.org/operator/test/images/root"
)

// serverPrograms is where the official images have the server's programs, and PATH
// finds them.
const (
	serverPrograms = "usr/local/bin"
	searchPath     = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// fromRoot is what an image takes from a root directory.
type fromRoot struct {
	recipe string
	// keep tells whether the image has one of the server's programs.
	keep   func(program string) bool
	config func(root.Root) v1.Config
}

func every(string) bool { return true }
func none(string) bool  { return false }
func clients(program string) bool {
	return strings.HasSuffix(program, "-cli") || strings.HasSuffix(program, "-benchmark")
}

var fromRoots = map[reference.Image]fromRoot{
	reference.Redis70:  {recipe: "redis-7.0", keep: every, config: serverConfig},
	reference.Redis80:  {recipe: "redis-8.0", keep: every, config: serverConfig},
	reference.Valkey81: {recipe: "valkey-8.1", keep: every, config: serverConfig},
	reference.NotRedis: {recipe: "redis-8.0", keep: none, config: toolConfig},
	reference.Client:   {recipe: "redis-8.0", keep: clients, config: toolConfig},
}

// serverConfig is as in the official images, except that it starts as the
// server's user: theirs starts as root and steps down in an entry point script.
func serverConfig(from root.Root) v1.Config {
	return v1.Config{
		User:         fmt.Sprintf("%d:%d", root.UserID, root.GroupID),
		Env:          []string{searchPath, strings.ToUpper(string(from.Flavour)) + "_VERSION=" + from.Version},
		Cmd:          []string{string(from.Flavour) + "-server"},
		WorkingDir:   "/data",
		Volumes:      map[string]struct{}{"/data": {}},
		ExposedPorts: map[string]struct{}{"6379/tcp": {}},
	}
}

func toolConfig(root.Root) v1.Config {
	return v1.Config{
		User:       fmt.Sprintf("%d:%d", root.UserID, root.GroupID),
		Env:        []string{searchPath},
		Cmd:        []string{"sleep", "infinity"},
		WorkingDir: "/",
	}
}

func (f fromRoot) key(from root.Root) (string, error) {
	content, err := json.Marshal(from.Versions)
	if err != nil {
		return "", fmt.Errorf("name the content of %s: %w", from.Name, err)
	}
	return fmt.Sprintf("%d-%x", layoutVersion, sha256.Sum256(content)), nil
}

// layer has the root directory, of the server's programs those that the image keeps.
func (f fromRoot) layer(from root.Root) (v1.Layer, error) {
	return directoryLayer(from.FS(), func(name string) bool {
		return path.Dir(name) != serverPrograms || f.keep(path.Base(name))
	})
}

func (f fromRoot) image(from root.Root, key string) (v1.Image, error) {
	layer, err := f.layer(from)
	if err != nil {
		return nil, err
	}
	config := f.config(from)
	config.Labels = map[string]string{keyLabel: key, "org.opencontainers.image.version": from.Version}
	return assemble(layer, config)
}

// references are the image's own and, for a server, that of its exact version.
func references(image reference.Image, from root.Root) []string {
	short := image.Reference("")
	if image == reference.NotRedis || image == reference.Client {
		return []string{short}
	}
	repository, _, _ := strings.Cut(short, ":")
	return []string{short, repository + ":" + from.Version}
}
