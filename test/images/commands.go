package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"seang.org/operator/test/images/image"
	"seang.org/operator/test/images/reference"
	"seang.org/operator/test/images/root"
)

func newRootsCommand() *cobra.Command {
	var onlyDirs, refresh bool
	command := &cobra.Command{
		Use:   "roots [name…]",
		Short: "Make root directories of servers that run on this machine: redis-7.0, redis-8.0, valkey-8.1",
		RunE: func(command *cobra.Command, names []string) error {
			recipes, err := root.Select(names...)
			if err != nil {
				return err
			}
			dir, err := root.CacheDir()
			if err != nil {
				return err
			}
			roots, err := root.Store{Dir: dir}.Make(command.Context(), refresh, recipes...)
			if err != nil {
				return err
			}
			for _, made := range roots {
				line := fmt.Sprintf("%s: %s %s in %s", made.Name, made.Flavour, made.Version, made.Dir)
				if onlyDirs {
					line = made.Dir
				}
				if _, err := fmt.Fprintln(command.OutOrStdout(), line); err != nil {
					return fmt.Errorf("print: %w", err)
				}
			}
			return nil
		},
	}
	command.Flags().BoolVar(&onlyDirs, "print", false, "print only the directories, one a line")
	command.Flags().BoolVar(&refresh, "refresh", false, "look for newer packages in the archive")
	return command
}

// buildOptions are what images are made from; those of packages need none of it.
type buildOptions struct {
	// source of the operator, its version and, where it is built once, its commit.
	source, version, commit string
	// arch is the operator's architecture; empty is this machine's.
	arch string
	// programs is the directory with those of OLM.
	programs string
}

func newBuildCommand() *cobra.Command {
	var options buildOptions
	command := &cobra.Command{
		Use:   "build [name…]",
		Short: "Make images, and print REFERENCE=FILE of each as the cluster's load command takes it",
		Long: fmt.Sprintf("Make images (of %v; those of packages without names), each a docker-archive file,\n"+
			"and print REFERENCE=FILE of each as the cluster's load command takes it.", reference.All()),
		RunE: func(command *cobra.Command, names []string) error {
			images, err := selectImages(names)
			if err != nil {
				return err
			}
			if err := options.complete(images); err != nil {
				return err
			}
			for _, wanted := range images {
				if err := pack(command, func(s image.Store) (image.Built, error) { return options.build(command.Context(), s, wanted) }); err != nil {
					return err
				}
			}
			return nil
		},
	}
	command.Flags().StringVar(&options.source, "source", "../..", "directory with the operator's main package; the default is right for go run -C test/images")
	command.Flags().StringVar(&options.version, "version", "", "the operator's version, which is its image's tag")
	command.Flags().StringVar(&options.commit, "made-from", "", "commit of the source, which is built once")
	command.Flags().StringVar(&options.arch, "arch", "", "architecture of the operator, if not this machine's: arm64")
	command.Flags().StringVar(&options.programs, "programs", "", "directory with the programs of OLM")
	return command
}

// complete says what is missing for the images.
func (o buildOptions) complete(images []reference.Image) error {
	if slices.Contains(images, reference.Operator) && o.version == "" {
		return errors.New("the operator's image needs --version")
	}
	if o.programs == "" && (slices.Contains(images, reference.OLM) || slices.Contains(images, reference.OPM)) {
		return errors.New("the images of OLM need --programs, which cluster build olm prints")
	}
	return nil
}

func (o buildOptions) build(ctx context.Context, store image.Store, wanted reference.Image) (image.Built, error) {
	switch wanted {
	case reference.Operator:
		return store.Operator(ctx, image.OperatorSource{Dir: o.source, Version: o.version, Commit: o.commit, Arch: o.arch})
	case reference.OLM, reference.OPM:
		return store.OLM(ctx, wanted, o.programs)
	default:
		return store.Server(ctx, wanted)
	}
}

func selectImages(names []string) ([]reference.Image, error) {
	if len(names) == 0 {
		return reference.FromPackages(), nil
	}
	var images []reference.Image
	for _, name := range names {
		found, err := reference.Find(name)
		if err != nil {
			return nil, err
		}
		images = append(images, found)
	}
	return images, nil
}

func newStore() (image.Store, error) {
	dir, err := image.CacheDir()
	if err != nil {
		return image.Store{}, err
	}
	roots, err := root.CacheDir()
	if err != nil {
		return image.Store{}, err
	}
	return image.Store{Dir: dir, Roots: root.Store{Dir: roots}}, nil
}
