// Command cluster is an embedded Kubernetes: several nodes on one Linux machine,
// built from Go modules and Debian packages alone.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"seang.org/operator/test/cluster/process"
)

// The main goroutine stays on the main thread. A process whose other thread
// replaces it by a component looks like a zombie for a moment, in which it would
// be taken for dead.
func init() { runtime.LockOSThread() }

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
