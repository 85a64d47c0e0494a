package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"seang.org/operator/catalog"
)

// Release is one that is made; without a commit it is the working tree.
type Release struct {
	catalog.Release

	// Variants of the working tree's, for tests.
	breakIt func(*bundle)
	// noImage leaves the bundle's image out of the registry.
	noImage bool
}

func (r Release) tag() string     { return "v" + r.Version }
func (r Release) csvName() string { return packageName + "." + r.tag() }

// readReleases returns those that are out, and the next one.
func readReleases() (out []Release, next Release, err error) {
	described, last, err := catalog.Read()
	for _, r := range described {
		out = append(out, Release{Release: r})
	}
	return out, Release{Release: last}, err
}

// source is a directory with the release's sources: of its commit in the history, or
// the working tree.
func (b builder) source(ctx context.Context, r Release) (string, error) {
	if r.Commit == "" {
		return os.Getwd()
	}
	dir := filepath.Join(b.scratch, "source-"+r.tag())
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make a directory for release %s: %w", r.Version, err)
	}
	var archive, said bytes.Buffer
	git := exec.CommandContext(ctx, "git", "archive", r.Commit)
	git.Stdout, git.Stderr = &archive, &said
	if err := git.Run(); err != nil {
		return "", fmt.Errorf("read commit %s of release %s from the history: %w: %s", r.Commit, r.Version, err, said.String())
	}
	tar := exec.CommandContext(ctx, "tar", "-x", "-C", dir)
	tar.Stdin = &archive
	if out, err := tar.CombinedOutput(); err != nil {
		return "", fmt.Errorf("unpack the sources of release %s: %w: %s", r.Version, err, out)
	}
	return dir, nil
}

// run is a program's output.
func run(ctx context.Context, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", filepath.Base(program), strings.Join(args, " "), err, strings.TrimSpace(said.String()))
	}
	return out.Bytes(), nil
}
