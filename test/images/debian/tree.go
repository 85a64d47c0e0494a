package debian

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
)

// Tree is the files of packages, in memory, by their path without a leading
// slash. /bin, /lib and the like are merged into /usr, as on every Debian since
// bookworm, whose packages still use the old paths.
type Tree map[string]File

// File is a regular file or a symbolic link.
type File struct {
	Mode fs.FileMode
	// Link is where a symbolic link points to, else empty.
	Link string
	Data []byte
	// Package is the name of the package it comes from.
	Package string
}

// Unpack returns the files of all packages.
func Unpack(ctx context.Context, packages []Package) (Tree, error) {
	tree := Tree{}
	for _, p := range packages {
		archive, err := run(ctx, nil, "dpkg-deb", "--fsys-tarfile", p.File)
		if err == nil {
			err = tree.add(p.Name, tar.NewReader(bytes.NewReader(archive)))
		}
		if err != nil {
			return nil, fmt.Errorf("unpack %s %s: %w", p.Name, p.Version, err)
		}
	}
	return tree, nil
}

func (t Tree) add(name string, archive *tar.Reader) error {
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		file := File{Mode: header.FileInfo().Mode(), Package: name}
		switch header.Typeflag {
		case tar.TypeReg:
			if file.Data, err = io.ReadAll(archive); err != nil {
				return err
			}
		case tar.TypeSymlink:
			file.Link = header.Linkname
		case tar.TypeLink:
			file = t[Merged(header.Linkname)]
		default:
			continue
		}
		t[Merged(header.Name)] = file
	}
}

// Merged is a path in a tree: without leading slash, and below usr.
func Merged(name string) string {
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	switch top, _, _ := strings.Cut(name, "/"); top {
	case "bin", "sbin", "lib", "lib32", "lib64", "libx32":
		return "usr/" + name
	}
	return name
}

// maxLinks is the kernel's bound on symbolic links in one path.
const maxLinks = 40

// Regular follows symbolic links to a regular file.
func (t Tree) Regular(name string) (File, bool) {
	at := Merged(name)
	for range maxLinks {
		file, ok := t[at]
		switch {
		case !ok:
			return File{}, false
		case file.Link == "":
			return file, true
		case path.IsAbs(file.Link):
			at = Merged(file.Link)
		default:
			at = Merged(path.Join(path.Dir(at), file.Link))
		}
	}
	return File{}, false
}
