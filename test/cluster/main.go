// Command cluster is an embedded Kubernetes: several nodes on one Linux machine,
// built from Go modules and Debian packages alone.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"seang.org/operator/test/cluster/process"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == process.LaunchCommand {
		fail(process.Launch(os.Args[2]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newRootCommand().ExecuteContext(ctx); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "cluster:", err)
	os.Exit(1)
}
