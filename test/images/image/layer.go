package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"seang.org/operator/test/images/root"
)

// epoch is the time of every file and image, so that building again gives the
// same digest.
var epoch = time.Unix(0, 0).UTC()

// owned are the paths that are not root's, or not of the mode they have on disk.
var owned = map[string]tar.Header{
	"data":    {Uid: root.UserID, Gid: root.GroupID, Mode: 0o755},
	"tmp":     {Mode: 0o1777},
	"var/tmp": {Mode: 0o1777},
}

// directoryLayer is a layer with the files of a directory that keep accepts, by
// their path without a leading slash.
func directoryLayer(dir string, keep func(name string) bool) (v1.Layer, error) {
	var content bytes.Buffer
	archive := tar.NewWriter(&content)
	// WalkDir is in lexical order.
	err := filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || file == dir {
			return err
		}
		name, err := filepath.Rel(dir, file)
		if err != nil || !keep(name) {
			return err
		}
		return add(archive, name, file, entry)
	})
	if err == nil {
		err = archive.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("pack %s: %w", dir, err)
	}
	return layer(content.Bytes())
}

func add(archive *tar.Writer, name, file string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	header := &tar.Header{Name: name, Mode: int64(info.Mode().Perm()), ModTime: epoch, Format: tar.FormatPAX}
	if special, ok := owned[name]; ok {
		header.Uid, header.Gid, header.Mode = special.Uid, special.Gid, special.Mode
	}
	var content []byte
	switch info.Mode().Type() {
	case fs.ModeDir:
		header.Typeflag, header.Name = tar.TypeDir, name+"/"
	case fs.ModeSymlink:
		header.Typeflag, header.Mode = tar.TypeSymlink, 0o777
		if header.Linkname, err = os.Readlink(file); err != nil {
			return err
		}
	case 0:
		header.Typeflag = tar.TypeReg
		if content, err = os.ReadFile(file); err != nil {
			return err
		}
		header.Size = int64(len(content))
	default:
		return fmt.Errorf("%s is a %s", name, info.Mode().Type())
	}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err = archive.Write(content)
	return err
}

// fileLayer is a layer with one program.
func fileLayer(name string, content []byte) (v1.Layer, error) {
	return filesLayer(map[string][]byte{name: content})
}

// filesLayer is a layer with files that all may read and run, by name.
func filesLayer(files map[string][]byte) (v1.Layer, error) {
	var packed bytes.Buffer
	archive := tar.NewWriter(&packed)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		header := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(files[name])), ModTime: epoch, Format: tar.FormatPAX}
		err := archive.WriteHeader(header)
		if err == nil {
			_, err = archive.Write(files[name])
		}
		if err != nil {
			return nil, fmt.Errorf("pack /%s: %w", name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return nil, fmt.Errorf("pack files: %w", err)
	}
	return layer(packed.Bytes())
}

func layer(content []byte) (v1.Layer, error) {
	made, err := tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
		tarball.WithCompressionLevel(gzip.BestSpeed), tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, fmt.Errorf("make a layer: %w", err)
	}
	return made, nil
}
