// Command images makes root directories of real Redis and Valkey servers, and
// the container images of the tests.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"seang.org/operator/test/images/root"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	command := &cobra.Command{Use: "images", Short: "Makes real Redis and Valkey servers and the images of the tests", SilenceUsage: true}
	command.AddCommand(rootsCommand())
	err := command.ExecuteContext(ctx)
	stop()
	if err != nil {
		os.Exit(1)
	}
}

func rootsCommand() *cobra.Command {
	var print, refresh bool
	command := &cobra.Command{
		Use:   "roots [name…]",
		Short: "Makes root directories of servers that run on this machine: redis-7.0, redis-8.0, valkey-8.1",
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
				if print {
					fmt.Fprintln(command.OutOrStdout(), made.Dir)
				} else {
					fmt.Fprintf(command.OutOrStdout(), "%s: %s %s in %s\n", made.Name, made.Flavour, made.Version, made.Dir)
				}
			}
			return nil
		},
	}
	command.Flags().BoolVar(&print, "print", false, "print only the directories, one a line")
	command.Flags().BoolVar(&refresh, "refresh", false, "look for newer packages in the archive")
	return command
}
