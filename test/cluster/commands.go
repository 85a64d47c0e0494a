package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"seang.org/operator/test/cluster/build"
	"seang.org/operator/test/cluster/host"
	"seang.org/operator/test/cluster/layout"
	"seang.org/operator/test/cluster/lifecycle"
	"seang.org/operator/test/cluster/process"
	"seang.org/operator/test/cluster/settings"
)

// options are the flags of all commands.
type options struct {
	name string
}

func newRootCommand() *cobra.Command {
	var o options
	root := &cobra.Command{
		Use:           "cluster",
		Short:         "An embedded Kubernetes: several nodes on this machine, without Docker or an image registry",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetOut(os.Stdout) // cobra prints to standard error by default
	root.PersistentFlags().StringVar(&o.name, "name", layout.DefaultName, "name of the cluster")
	root.AddCommand(
		newBuildCommand(), newUpCommand(&o), newDownCommand(&o), newStatusCommand(&o),
		newLoadCommand(&o), newKubeconfigCommand(&o), newExecCommand(&o),
		newNodeCommand(&o), newProcessCommand(&o),
		newForwardCommand(), newRegistryCommand(), newStorageCommand(),
	)
	return root
}

func (o *options) cluster(nodes int) (*lifecycle.Cluster, error) {
	l, err := layout.New(o.name, nodes)
	if err != nil {
		return nil, err
	}
	return lifecycle.New(l)
}

func newBuildCommand() *cobra.Command {
	var printDir bool
	cmd := &cobra.Command{
		Use:   "build [component...]",
		Short: "Build the programs of a cluster into the cache: kubernetes, containerd, coredns, pause; by name also olm",
		RunE: func(cmd *cobra.Command, args []string) error {
			components, err := build.Select(args...)
			if err != nil {
				return err
			}
			if !printDir {
				if missing := host.MissingPackages(); len(args) == 0 && len(missing) > 0 && os.Geteuid() == 0 {
					err = host.EnsurePackages(cmd.Context(), cmd.ErrOrStderr())
				}
				if err = errors.Join(err, build.Ensure(cmd.Context(), components, cmd.ErrOrStderr())); err != nil {
					return err
				}
			}
			for _, component := range components {
				dir, err := component.Dir()
				if err != nil {
					return err
				}
				cmd.Println(dir)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&printDir, "print-dir", false, "print the directories only, and build nothing")
	return cmd
}

func newUpCommand(o *options) *cobra.Command {
	var nodes int
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the cluster, or repair what does not run of it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cluster, err := o.cluster(nodes)
			if err != nil {
				return err
			}
			began := time.Now() //nolint:forbidigo // shown to a human
			if err := build.Ensure(cmd.Context(), build.OfCluster(), cmd.ErrOrStderr()); err != nil {
				return err
			}
			ctx, cancel := contextWithTimeout(cmd.Context(), timeout)
			defer cancel()
			if err := cluster.Up(ctx, cmd.ErrOrStderr()); err != nil {
				return err
			}
			l := cluster.Layout
			cmd.Printf("cluster %s is up: %d nodes after %s\n\n", l.Name, l.Nodes, time.Since(began).Round(100*time.Millisecond)) //nolint:forbidigo // as above
			return printAccess(cmd, cluster)
		},
	}
	cmd.Flags().IntVar(&nodes, "nodes", 0, fmt.Sprintf("number of nodes (default %d, or as many as there are)", layout.DefaultNodes))
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "how long to wait for the cluster, builds apart")
	return cmd
}

func printAccess(cmd *cobra.Command, cluster *lifecycle.Cluster) error {
	dir, err := build.Components[0].Dir()
	if err != nil {
		return err
	}
	cmd.Printf("  export KUBECONFIG=%s\n  export PATH=$PATH:%s\n  kubectl get nodes\n", cluster.Layout.Kubeconfig(), dir)
	return nil
}

func newDownCommand(o *options) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Remove the cluster and everything that it has made, but for the built programs",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			names := []string{o.name}
			if all {
				var err error
				if names, err = layout.List(); err != nil {
					return err
				}
			}
			var errs []error
			for _, name := range names {
				cluster, err := (&options{name: name}).cluster(0)
				if err == nil {
					err = cluster.Down(cmd.Context())
				}
				errs = append(errs, err)
			}
			return errors.Join(errs...)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all clusters of this machine")
	return cmd
}

func newStatusCommand(o *options) *cobra.Command {
	var showSettings bool
	var output string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the processes and nodes of the cluster, and how to reach it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if showSettings {
				if output == "json" {
					return printJSON(cmd, settings.Differences)
				}
				return settings.Print(cmd.OutOrStdout())
			}
			cluster, err := o.cluster(0)
			if err != nil {
				return err
			}
			status, err := cluster.Status(cmd.Context())
			if err != nil {
				return err
			}
			if output == "json" {
				return printJSON(cmd, status)
			}
			return status.Print(cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&showSettings, "settings", false, "list the settings that differ from kubeadm's defaults")
	cmd.Flags().StringVarP(&output, "output", "o", "", "json, or a table for humans")
	return cmd
}

func printJSON(cmd *cobra.Command, value any) error {
	encoder := json.NewEncoder(cmd.OutOrStdout())
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("print as JSON: %w", err)
	}
	return nil
}

func newLoadCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "load REFERENCE=FILE...",
		Short: "Put images (docker-archive, or directory in OCI layout) into the cluster's registry",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cluster, err := o.cluster(0)
			if err != nil {
				return err
			}
			for _, arg := range args {
				reference, file, ok := strings.Cut(arg, "=")
				if !ok {
					return fmt.Errorf("%q: write REFERENCE=FILE", arg)
				}
				if err := cluster.Load(cmd.Context(), reference, file); err != nil {
					return err
				}
				cmd.Println(reference)
			}
			return nil
		},
	}
}

func newKubeconfigCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the path of the administrator's kubeconfig",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cluster, err := o.cluster(0)
			if err != nil {
				return err
			}
			if !cluster.Layout.Exists() {
				return fmt.Errorf("cluster %s is not up", o.name)
			}
			cmd.Println(cluster.Layout.Kubeconfig())
			return nil
		},
	}
}

func newExecCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "exec -- COMMAND...",
		Short: "Run a program where the addresses of pods and Services route, with KUBECONFIG, AUDIT_LOG and CLUSTER_NAME set",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			cluster, err := o.cluster(0)
			if err != nil {
				return err
			}
			binaries, err := build.Components[0].Dir()
			if err != nil {
				return err
			}
			env := append(os.Environ(),
				"KUBECONFIG="+cluster.Layout.Kubeconfig(),
				"AUDIT_LOG="+cluster.Layout.AuditLog(),
				"CLUSTER_NAME="+cluster.Layout.Name,
				"PATH="+os.Getenv("PATH")+string(filepath.ListSeparator)+binaries)
			return process.Exec(cluster.Layout.ControlPlaneNamespace(), args, env)
		},
	}
}
