// Command demo shows a RedisCluster live: creation, writes and reads through
// its Services, the loss of its primary, scaling, and what is left at the end.
//
// It needs a Kubernetes, which KUBECONFIG names, with the operator installed; with
// -catalog IMAGE it installs it first, through OLM. make demo starts one where there is
// none. Everything happens in a namespace of
// its own, which is removed before and after.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"seang.org/operator/test/e2e/kubeapi"
)

// timeout bounds the whole demo: it takes a minute on a small machine.
const timeout = 6 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("the demo took more than %s", timeout))
	var err error
	if len(os.Args) == 2 && os.Args[1] == trafficCommand {
		err = runTraffic(ctx, os.Stdin, os.Stdout)
	} else {
		catalog := flag.String("catalog", "", "image of the catalog to install the operator from; empty if it is installed")
		flag.Parse()
		err = run(ctx, *catalog)
	}
	cancel()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "\ndemo:", err)
		os.Exit(1)
	}
}

type step struct {
	title string
	run   func(context.Context) error
}

func run(ctx context.Context, catalog string) error {
	api, err := kubeapi.Connect()
	if err != nil {
		return fmt.Errorf("%w (make demo starts one where KUBECONFIG names none)", err)
	}
	d := &demo{api: api, screen: newScreen(os.Stdout), catalog: catalog}
	steps := []step{
		{"Make the namespace " + namespace, d.prepare},
		{"Apply config/samples: one Redis in memory, one on volumes", d.create},
		{"Write and read through the Services, from a client pod", d.use},
		{"Kill the primary while a client writes", d.crash},
		{"Scale 2 → 4 → 1 replicas while a client writes", d.scale},
		{"Delete a Redis with reclaimPolicy Retain, and create it again", d.recreate},
		{"Delete everything", d.remove},
	}
	if catalog != "" {
		steps = append([]step{{"Install the operator through OLM, from the catalog", d.install}}, steps...)
	}
	for _, step := range steps {
		d.screen.title(step.title)
		if err := step.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.title, err)
		}
	}
	d.screen.summary()
	return nil
}
