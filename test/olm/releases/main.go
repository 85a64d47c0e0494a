// Command releases makes what catalog/releases.yaml says: each release is built from its
// commit in the history.
//
//	go run ./test/olm/releases -opm PROGRAM render
//	go run ./test/olm/releases -opm PROGRAM -version 0.4.0 next
//	go run ./test/olm/releases -opm PROGRAM -version 0.4.0 all
//
// render writes the catalog of the releases to catalog/redis-operator. The others make
// images, and print REFERENCE=FILE of each as the cluster's load command takes it. next
// makes what installs the working tree as the next release: its bundle, and the catalog
// with it. all makes what the tests want: the operator and bundle of every release, also
// of releases with faults, and the catalog as it was at each.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"seang.org/operator/catalog"
	"seang.org/operator/test/registry"
)

// The names of everything that is installed.
const (
	packageName    = "redis-operator"
	defaultChannel = "stable" // as catalog/package.yaml has it
	accountName    = "redis-operator-controller-manager"
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
	err := perform(ctx, flag.Arg(0), *version, builder{opm: *opm, out: os.Stdout})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "releases:", err)
		os.Exit(1)
	}
}

func perform(ctx context.Context, task, version string, b builder) error {
	scratch, err := os.MkdirTemp("", "releases-")
	if err != nil {
		return fmt.Errorf("make a scratch directory: %w", err)
	}
	defer os.RemoveAll(scratch) //nolint:errcheck // nothing refers to it
	b.scratch = scratch
	releases, next, err := readReleases()
	if err != nil {
		return err
	}
	switch {
	case task == "render":
		return b.render(ctx, releases)
	case version != next.Version:
		return fmt.Errorf("the working tree is called %q, and the next release in %s is %s: let them agree", version, catalog.File, next.Version)
	case task == "next":
		return b.next(ctx, releases, next)
	case task == "all":
		return b.all(ctx, append(releases, next))
	default:
		return fmt.Errorf("cannot do %q: render, next or all, the last two with -version", task)
	}
}

// render writes the catalog of the releases.
func (b builder) render(ctx context.Context, releases []Release) error {
	bundles := map[string]blob{}
	for _, r := range releases {
		source, err := b.source(ctx, r)
		if err != nil {
			return err
		}
		if _, err := b.bundle(ctx, r, source); err != nil {
			return err
		}
		if bundles[r.csvName()], err = b.renderBundle(ctx, r); err != nil {
			return err
		}
	}
	text, err := renderCatalog(releases, bundles)
	if err != nil {
		return err
	}
	return b.writeCatalog(ctx, catalogDir, text)
}

// next makes the bundle of the working tree, and the catalog with it.
func (b builder) next(ctx context.Context, releases []Release, next Release) error {
	bundles, err := releasedBundles()
	if err != nil {
		return err
	}
	if err := b.addBundle(ctx, next, ".", bundles); err != nil {
		return err
	}
	return b.catalog(ctx, next.tag(), append(releases, next), bundles)
}

// addBundle makes the bundle's image of a release that is not in the catalog yet.
func (b builder) addBundle(ctx context.Context, r Release, source string, bundles map[string]blob) (err error) {
	if err := b.bundleImage(ctx, r, source); err != nil {
		return err
	}
	bundles[r.csvName()], err = b.renderBundle(ctx, r)
	return err
}

// all makes what the tests want; the last release is the working tree.
func (b builder) all(ctx context.Context, releases []Release) error {
	if err := b.releases(ctx, releases); err != nil {
		return err
	}
	bundles, err := releasedBundles()
	if err != nil {
		return err
	}
	next := releases[len(releases)-1]
	if bundles[next.csvName()], err = b.renderBundle(ctx, next); err != nil {
		return err
	}
	for i, r := range releases {
		if err := b.catalog(ctx, r.tag(), releases[:i+1], bundles); err != nil {
			return err
		}
	}
	return b.faults(ctx, releases, bundles)
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
			return fmt.Errorf("releases %s and %s are the same program: %s names the wrong commits", other, r.Version, catalog.File)
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
	args := []string{"bundle", registry.Bundle + ":" + r.tag(), dir}
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
