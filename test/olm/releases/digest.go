package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

// buildID is what the linker calls its output by, also where nothing else differs.
var buildID = regexp.MustCompile(`[\w-]{20}/[\w-]{20}/[\w-]{20}/[\w-]{20}`)

// programDigest tells the programs of operator images apart, as REFERENCE=FILE names
// them. The version that each was given when it was linked does not count.
func programDigest(line []byte, version string) (string, error) {
	_, name, ok := strings.Cut(strings.TrimSpace(string(line)), "=")
	if !ok {
		return "", fmt.Errorf("%q is no REFERENCE=FILE", line)
	}
	file, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("read the image: %w", err)
	}
	defer file.Close() //nolint:errcheck // Only read.
	layer, err := find(tar.NewReader(file), ".tar.gz")
	if err != nil {
		return "", fmt.Errorf("find the layer in %s: %w", name, err)
	}
	unpacked, err := gzip.NewReader(layer)
	if err != nil {
		return "", fmt.Errorf("unpack the layer in %s: %w", name, err)
	}
	program, err := find(tar.NewReader(unpacked), "manager")
	if err != nil {
		return "", fmt.Errorf("find the program in %s: %w", name, err)
	}
	content, err := io.ReadAll(program)
	if err != nil {
		return "", fmt.Errorf("read the program in %s: %w", name, err)
	}
	content = buildID.ReplaceAll(content, nil)
	content = bytes.ReplaceAll(content, []byte(version), []byte(strings.Repeat("0", len(version))))
	return fmt.Sprintf("%x", sha256.Sum256(content)), nil
}

// find returns the first file of an archive whose name ends so.
func find(archive *tar.Reader, suffix string) (io.Reader, error) {
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("there is no *%s", suffix)
		}
		if err != nil {
			return nil, err
		}
		if strings.HasSuffix(header.Name, suffix) {
			return archive, nil
		}
	}
}
