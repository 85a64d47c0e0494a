package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"seang.org/operator/test/images/image"
)

func newBundleCommand() *cobra.Command {
	var labels map[string]string
	command := &cobra.Command{
		Use:   "bundle REFERENCE DIRECTORY",
		Short: "Make the image of an operator bundle, and print REFERENCE=FILE",
		Args:  cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			return pack(command, func(s image.Store) (image.Built, error) { return s.Bundle(args[0], args[1], labels) })
		},
	}
	command.Flags().StringToStringVar(&labels, "label", nil, "label of the image")
	return command
}

func newCatalogCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "catalog REFERENCE DIRECTORY",
		Short: "Make the image of a file-based catalog, on that of opm, and print REFERENCE=FILE",
		Args:  cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			return pack(command, func(s image.Store) (image.Built, error) { return s.Catalog(args[0], args[1]) })
		},
	}
}

func newProgramCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "program REFERENCE FILE",
		Short: "Make the image of a static program, which is on its PATH, and print REFERENCE=FILE",
		Args:  cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			return pack(command, func(s image.Store) (image.Built, error) { return s.Program(args[0], args[1]) })
		},
	}
}

// pack makes an image and prints its references.
func pack(command *cobra.Command, build func(image.Store) (image.Built, error)) error {
	store, err := newStore()
	if err != nil {
		return err
	}
	built, err := build(store)
	if err != nil {
		return err
	}
	for _, name := range built.References {
		if _, err := fmt.Fprintf(command.OutOrStdout(), "%s=%s\n", name, built.File); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	return nil
}
