// Command stages runs make targets one after the other, each timed, and prints
// a table of the minutes that each took against its budget in docs/testing.md.
// It runs them all, even after one failed, and fails if any did.
//
//	go run ./test/stages TARGET...
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"time"
)

const budgetFile = "docs/testing.md"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "stages:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, targets []string, out io.Writer) error {
	text, err := os.ReadFile(budgetFile)
	if err != nil {
		return fmt.Errorf("read the budgets: %w", err)
	}
	budgets, err := parseBudgets(string(text))
	if err != nil {
		return fmt.Errorf("read the budgets in %s: %w", budgetFile, err)
	}
	var results []result
	for _, target := range targets {
		budget, found := budgets[target]
		if !found {
			return fmt.Errorf("%s has no budget for the stage %s: add a row", budgetFile, target)
		}
		fmt.Fprintf(out, "\n──── %s\n", target)
		began := time.Now()
		err := makeTarget(ctx, target)
		results = append(results, result{stage: target, took: time.Since(began), budget: budget, failed: err != nil})
		if ctx.Err() != nil {
			break
		}
	}
	printTable(out, results)
	for _, r := range results {
		if r.failed {
			return fmt.Errorf("stage %s failed: make %s repeats it alone", r.stage, r.stage)
		}
	}
	return ctx.Err()
}

// makeTarget runs make and waits for it, also when ctx ends: make has got the
// same interrupt and cleans up.
func makeTarget(ctx context.Context, target string) error {
	cmd := exec.CommandContext(ctx, "make", "--no-print-directory", target)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Cancel = func() error { return nil }
	return cmd.Run()
}
