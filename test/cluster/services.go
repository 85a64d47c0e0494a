package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"seang.org/operator/test/cluster/controlplane"
	"seang.org/operator/test/cluster/registry"
	"seang.org/operator/test/cluster/storage"
)

// The commands here are processes of a cluster: `up` starts them.

func newForwardCommand() *cobra.Command {
	var addresses []string
	var inherited bool
	var to string
	cmd := &cobra.Command{
		Use: controlplane.ForwardCommand, Short: "Forward TCP connections", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			listeners, err := controlplane.Listeners(addresses, inherited)
			if err != nil {
				return err
			}
			return controlplane.Forward(cmd.Context(), to, listeners...)
		},
	}
	cmd.Flags().StringArrayVar(&addresses, "listen", nil, "address to listen on")
	cmd.Flags().BoolVar(&inherited, "inherited", false, "listen on file descriptor 3 too")
	cmd.Flags().StringVar(&to, "to", "", "address to connect to")
	return cmd
}

func newRegistryCommand() *cobra.Command {
	var addresses []string
	var inherited bool
	var dir string
	cmd := &cobra.Command{
		Use: controlplane.RegistryCommand, Short: "Serve images", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			server, err := registry.NewServer(cmd.Context(), dir)
			if err != nil {
				return err
			}
			listeners, err := controlplane.Listeners(addresses, inherited)
			if err != nil {
				return err
			}
			return server.Serve(cmd.Context(), listeners...)
		},
	}
	cmd.Flags().StringArrayVar(&addresses, "listen", nil, "address to listen on")
	cmd.Flags().BoolVar(&inherited, "inherited", false, "listen on file descriptor 3 too")
	cmd.Flags().StringVar(&dir, "dir", "", "directory of the images")
	return cmd
}

func newStorageCommand() *cobra.Command {
	var kubeconfig, dir string
	cmd := &cobra.Command{
		Use: controlplane.StorageCommand, Short: "Provision and grow volumes", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
			if err != nil {
				return fmt.Errorf("read kubeconfig %s: %w", kubeconfig, err)
			}
			return storage.Run(cmd.Context(), config, dir)
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "access to the API server")
	cmd.Flags().StringVar(&dir, "dir", "", "directory of the volumes")
	return cmd
}
