// Command images makes root directories of real Redis and Valkey servers, and
// the container images of the tests.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	command := &cobra.Command{Use: "images", Short: "Makes real Redis and Valkey servers and the images of the tests", SilenceUsage: true}
	command.AddCommand(newRootsCommand(), newBuildCommand(), newBundleCommand(), newCatalogCommand(), newProgramCommand())
	err := command.ExecuteContext(ctx)
	stop()
	if err != nil {
		os.Exit(1)
	}
}
