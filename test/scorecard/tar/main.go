// Command tar unpacks the bundle in the pods of operator-sdk's scorecard, which starts
// its image with the words of GNU tar: tar xvzf ARCHIVE -C DIRECTORY. It stands in for an
// image that has that and no entry point.
package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) != 5 || os.Args[1] != "xvzf" || os.Args[3] != "-C" {
		fmt.Fprintln(os.Stderr, "usage: tar xvzf ARCHIVE -C DIRECTORY")
		os.Exit(1)
	}
	if err := unpack(os.Args[2], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, "tar:", err)
		os.Exit(1)
	}
}

func unpack(archive, dir string) error {
	file, err := os.Open(filepath.Clean(archive))
	if err != nil {
		return fmt.Errorf("open the archive: %w", err)
	}
	defer file.Close() //nolint:errcheck // Only read.
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return fmt.Errorf("unzip %s: %w", archive, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("open the directory: %w", err)
	}
	defer root.Close() //nolint:errcheck // Only files in it were written.
	for reader := tar.NewReader(unzipped); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", archive, err)
		}
		if err := extract(root, header, reader); err != nil {
			return fmt.Errorf("unpack %s of %s: %w", header.Name, archive, err)
		}
	}
}

func extract(root *os.Root, header *tar.Header, content io.Reader) error {
	name := filepath.Clean(header.Name)
	if header.Typeflag == tar.TypeDir {
		return root.MkdirAll(name, 0o755)
	}
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	text, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	return root.WriteFile(name, text, 0o644)
}
