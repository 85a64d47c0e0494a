// Command releases builds every release of catalog/releases.yaml from the history, the
// working tree as the next one, and releases with faults that the tests want; and
// catalogs of them as they were at each release. It prints REFERENCE=FILE of each
// image, as the cluster's load command takes it.
//
//	go run ./test/olm/releases -version 0.4.0 -opm PROGRAM
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// The names of everything that is installed.
const (
	packageName        = "redis-operator"
	defaultChannel     = "stable"
	accountName        = "redis-operator-controller-manager"
	operatorRepository = "registry.seang.org/redis-operator"
	bundleRepository   = "registry.seang.org/redis-operator-bundle"
	catalogRepository  = "registry.seang.org/redis-operator-catalog"
)

// builder makes images, and prints each.
type builder struct {
	scratch, opm string
	out          io.Writer
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	version := flag.String("version", "", "version of the working tree")
	opm := flag.String("opm", "", "the program opm")
	flag.Parse()
	err := build(ctx, *version, *opm, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "releases:", err)
		os.Exit(1)
	}
}

func build(ctx context.Context, version, opm string, out io.Writer) error {
	scratch, err := os.MkdirTemp("", "releases-")
	if err != nil {
		return fmt.Errorf("make a scratch directory: %w", err)
	}
	defer os.RemoveAll(scratch) //nolint:errcheck // nothing refers to it
	b := builder{scratch: scratch, opm: opm, out: out}
	releases, err := readReleases(version)
	if err != nil {
		return err
	}
	if err := b.releases(ctx, releases); err != nil {
		return err
	}
	for i, r := range releases {
		if err := b.catalog(ctx, r.tag(), releases[:i+1]); err != nil {
			return err
		}
	}
	return b.faults(ctx, releases)
}

// releases makes the images of releases, and fails if two have the same program.
func (b builder) releases(ctx context.Context, releases []Release) error {
	programs := map[string]string{}
	for _, r := range releases {
		source, err := b.source(ctx, r)
		if err != nil {
			return err
		}
		line, err := run(ctx, "go", "run", "-C", "test/images", ".", "build", "operator",
			"--source", source, "--version", r.tag(), "--made-from", r.Commit)
		if err != nil {
			return err
		}
		digest, err := programDigest(line, r.tag())
		if err != nil {
			return err
		}
		if other, ok := programs[digest]; ok {
			return fmt.Errorf("releases %s and %s are the same program: %s names the wrong commits", other, r.Version, releasesFile)
		}
		programs[digest] = r.Version
		if _, err := b.out.Write(line); err != nil {
			return fmt.Errorf("print: %w", err)
		}
		if err := b.bundleImage(ctx, r, source); err != nil {
			return err
		}
	}
	return nil
}

func (b builder) bundleImage(ctx context.Context, r Release, source string) error {
	dir, err := b.bundle(ctx, r, source)
	if err != nil || r.noImage {
		return err
	}
	args := []string{"bundle", bundleRepository + ":" + r.tag(), dir}
	for name, value := range labels(r.Channels) {
		args = append(args, "--label", `"`+name+"="+value+`"`)
	}
	return b.image(ctx, args...)
}

// image has an image made by test/images, and prints it.
func (b builder) image(ctx context.Context, args ...string) error {
	line, err := run(ctx, "go", append([]string{"run", "-C", "test/images", "."}, args...)...)
	if err != nil {
		return err
	}
	if _, err := b.out.Write(line); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}
