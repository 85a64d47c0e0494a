package registry

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Repository translates an image reference to where the registry at address
// keeps it: docker.io/library/redis:8.0 → address/docker.io/library/redis:8.0.
// A reference without a tag gets latest, one without a host gets Docker Hub's,
// as everywhere.
func Repository(address, reference string) (name.Reference, error) {
	wanted, err := name.ParseReference(reference)
	if err != nil {
		return nil, fmt.Errorf("image reference %q: %w", reference, err)
	}
	host := wanted.Context().RegistryStr()
	if host == name.DefaultRegistry { // containerd's name for it is the one that users write
		host = "docker.io"
	}
	separator := ":"
	if _, ok := wanted.(name.Digest); ok {
		separator = "@"
	}
	local := fmt.Sprintf("%s/%s/%s%s%s", address, hostPath(host), wanted.Context().RepositoryStr(), separator, wanted.Identifier())
	kept, err := name.ParseReference(local, name.Insecure)
	if err != nil {
		return nil, fmt.Errorf("image reference %q in the registry: %w", reference, err)
	}
	return kept, nil
}

// Push puts the image in a file under a reference into the registry at address.
// The file is a docker-archive, or a directory in OCI layout.
func Push(ctx context.Context, address, reference, file string) error {
	image, err := read(file)
	if err != nil {
		return fmt.Errorf("read image %s from %s: %w", reference, file, err)
	}
	return PushImage(ctx, address, reference, image)
}

// PushImage puts an image under a reference into the registry at address.
func PushImage(ctx context.Context, address, reference string, image v1.Image) error {
	kept, err := Repository(address, reference)
	if err != nil {
		return err
	}
	if err := remote.Write(kept, image, remote.WithContext(ctx)); err != nil {
		return fmt.Errorf("push image %s to the registry at %s: %w", reference, address, err)
	}
	return nil
}

func read(file string) (v1.Image, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("open the image: %w", err)
	}
	if !info.IsDir() {
		image, err := tarball.ImageFromPath(file, nil)
		if err != nil {
			return nil, fmt.Errorf("the file is no docker-archive with one image: %w", err)
		}
		return image, nil
	}
	index, err := layout.ImageIndexFromPath(file)
	if err != nil {
		return nil, fmt.Errorf("the directory is no OCI layout: %w", err)
	}
	return pick(index)
}

// pick returns the image of an index for this machine's platform.
func pick(index v1.ImageIndex) (v1.Image, error) {
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("read the index: %w", err)
	}
	for _, entry := range manifest.Manifests {
		if entry.MediaType.IsIndex() {
			inner, err := index.ImageIndex(entry.Digest)
			if err != nil {
				return nil, fmt.Errorf("read the index %s: %w", entry.Digest, err)
			}
			return pick(inner)
		}
		if entry.Platform == nil || entry.Platform.Architecture == runtime.GOARCH && entry.Platform.OS == "linux" {
			image, err := index.Image(entry.Digest)
			if err != nil {
				return nil, fmt.Errorf("read the image %s: %w", entry.Digest, err)
			}
			return image, nil
		}
	}
	return nil, fmt.Errorf("it has no image for linux/%s", runtime.GOARCH)
}

// BinaryImage makes an image that holds one static program, run by user 65532.
func BinaryImage(program, at string) (v1.Image, error) {
	content, err := os.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("read the program of an image: %w", err)
	}
	var buffer bytes.Buffer
	writer := tar.NewWriter(&buffer)
	header := &tar.Header{Name: at[1:], Mode: 0o755, Size: int64(len(content)), Typeflag: tar.TypeReg}
	err = writer.WriteHeader(header)
	if err == nil {
		_, err = writer.Write(content)
	}
	if err = errors.Join(err, writer.Close()); err != nil {
		return nil, fmt.Errorf("pack %s: %w", program, err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(buffer.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, fmt.Errorf("make a layer of %s: %w", program, err)
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.AppendLayers(base, layer)
	if err != nil {
		return nil, fmt.Errorf("make an image of %s: %w", program, err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("make an image of %s: %w", program, err)
	}
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Config.Entrypoint = []string{at}
	config.Config.User = "65532:65532"
	image, err = mutate.ConfigFile(image, config)
	if err != nil {
		return nil, fmt.Errorf("make an image of %s: %w", program, err)
	}
	return image, nil
}
