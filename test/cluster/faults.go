package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"seang.org/operator/test/cluster/layout"
	"seang.org/operator/test/cluster/lifecycle"
	"seang.org/operator/test/cluster/network"
)

func contextWithTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not within %s", timeout))
}

func newNodeCommand(o *options) *cobra.Command {
	cmd := &cobra.Command{Use: "node", Short: "Cut a node off the network, and heal it"}
	for use, does := range map[string]struct {
		short string
		do    func(layout.Layout, layout.Node) error
	}{
		"cut":  {"Cut nodes off the network; their containers run on", network.Cut},
		"heal": {"Connect nodes to the network again", network.Heal},
	} {
		cmd.AddCommand(&cobra.Command{
			Use: use + " NODE...", Short: does.short, Args: cobra.MinimumNArgs(1),
			RunE: func(_ *cobra.Command, args []string) error {
				cluster, err := o.cluster(0)
				if err != nil {
					return err
				}
				for _, name := range args {
					nodes := cluster.Layout.AllNodes()
					i := slices.IndexFunc(nodes, func(n layout.Node) bool { return n.Name() == name })
					if i < 0 {
						return fmt.Errorf("cluster %s has no node %q: it has node-1 to node-%d", o.name, name, len(nodes))
					}
					if err := does.do(cluster.Layout, nodes[i]); err != nil {
						return err
					}
				}
				return nil
			},
		})
	}
	return cmd
}

func newProcessCommand(o *options) *cobra.Command {
	cmd := &cobra.Command{Use: "process", Short: "Kill, suspend and restart processes, which `status` lists"}
	for use, does := range map[string]struct {
		short string
		do    func(context.Context, *lifecycle.Cluster, string) error
	}{
		"kill": {"End processes at once, as a crash does", func(ctx context.Context, c *lifecycle.Cluster, name string) error {
			return c.Processes().Kill(ctx, name)
		}},
		"stop": {"Suspend processes, as if they hung", func(_ context.Context, c *lifecycle.Cluster, name string) error {
			return c.Processes().Signal(name, syscall.SIGSTOP)
		}},
		"cont": {"Resume suspended processes", func(_ context.Context, c *lifecycle.Cluster, name string) error {
			return c.Processes().Signal(name, syscall.SIGCONT)
		}},
		"restart": {"End processes in order and start them again", func(ctx context.Context, c *lifecycle.Cluster, name string) error {
			return c.Restart(ctx, name)
		}},
	} {
		cmd.AddCommand(&cobra.Command{
			Use: use + " PROCESS...", Short: does.short, Args: cobra.MinimumNArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				cluster, err := o.cluster(0)
				if err != nil {
					return err
				}
				if !cluster.Layout.Exists() {
					return fmt.Errorf("cluster %s is not up", o.name)
				}
				var errs []error
				for _, name := range args {
					if err := does.do(cmd.Context(), cluster, fullName(name)); err != nil {
						errs = append(errs, err)
					}
				}
				return errors.Join(errs...)
			},
		})
	}
	return cmd
}

// fullName lets users leave out what all the names of Kubernetes begin with.
func fullName(name string) string {
	switch name {
	case "apiserver", "controller-manager", "scheduler":
		return "kube-" + name
	}
	return strings.ToLower(name)
}
