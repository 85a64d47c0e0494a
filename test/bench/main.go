// Command bench measures the operator on a real Kubernetes, prints a table of
// what was reached against what is wanted, and writes it as JSON.
//
// It needs a Kubernetes with the operator installed, which KUBECONFIG names, the
// path of its audit log in AUDIT_LOG, and routes to its pods: make bench starts
// an embedded one and runs this there. Only noop-rate brings an API server of its
// own, and an operator. Those of OLM need it too, and the images of all releases. N=number in the environment asks for fewer repetitions,
// clusters or minutes. Everything happens in a namespace of its own, which is
// removed afterwards. Figures are meaningful only while nothing else uses the
// machine: each carries the load at its start.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"k8s.io/utils/clock"
)

// benchmark is one row, or a few, of the table.
type benchmark struct {
	name string
	// n is the number of repetitions, clusters or minutes unless N says another.
	n   int
	run func(ctx context.Context, s *suite, n int) ([]result, error)
	// standalone says that it needs no Kubernetes with nodes.
	standalone bool
}

// benchmarks in the order in which they run: the two with many clusters, which
// they share, come late. Those of OLM are the last: they remove the operator.
var benchmarks = []benchmark{
	{name: "create-writes", n: 5, run: createWrites},
	{name: "create-ready", n: 20, run: createReady},
	{name: "create-vs-bare", n: 10, run: createVersusBare},
	{name: "noop-rate", n: crowdSize, run: noopRate, standalone: true},
	{name: "spec-to-write", n: 100, run: specToWrite},
	{name: "failover", n: 100, run: failover},
	{name: "switchover", n: 100, run: switchover},
	{name: "roll", n: 5, run: roll},
	{name: "rotation", n: 20, run: rotation},
	{name: "rotation-time", n: 20, run: rotationTime},
	{name: "renewal", n: 20, run: renewal},
	{name: "leader-crash", n: 20, run: leaderCrash},
	{name: "node-loss", n: 10, run: nodeLoss},
	{name: "durable-failovers", n: 1000, run: durableFailovers},
	{name: "planned-moves", n: 1000, run: plannedMoves},
	{name: "empty-primary", n: 500, run: emptyPrimary},
	{name: "steady-writes", n: fleetSize, run: steadyWrites},
	{name: "footprint", n: fleetSize, run: footprint},
	{name: "olm-install", n: 5, run: olmInstall},
	{name: "olm-upgrade", n: 20, run: olmUpgrade},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	only := flags.String("only", "", "names of benchmarks, by commas; empty for all")
	out := flags.String("out", "", "file to write the results to, as JSON")
	profile := flags.String("cpuprofile", "", "file to write a CPU profile of noop-rate to")
	version := flags.String("version", "", "version of the working tree, which those of OLM install")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("read the flags: %w", err)
	}
	selected, err := choose(*only, os.Getenv("N"))
	if err != nil {
		return err
	}
	results, err := measure(ctx, selected, &suite{out: os.Stdout, clock: clock.RealClock{}, profile: *profile, version: *version})
	if len(results) > 0 {
		fmt.Println()
		err = errors.Join(err, printTable(os.Stdout, results))
	}
	if *out != "" {
		err = errors.Join(err, write(*out, results))
	}
	return err
}

// choose selects the named benchmarks, all if none is named, with their number
// of repetitions.
func choose(only, n string) ([]benchmark, error) {
	wanted, err := parseNames(only)
	if err != nil {
		return nil, err
	}
	number := 0
	if n != "" {
		if number, err = strconv.Atoi(n); err != nil || number < 1 {
			return nil, fmt.Errorf("the environment variable N must be a whole number from 1, not %q", n)
		}
	}
	var selected []benchmark
	for _, b := range benchmarks {
		if len(wanted) > 0 && !slices.Contains(wanted, b.name) {
			continue
		}
		if number > 0 {
			b.n = number
		}
		selected = append(selected, b)
	}
	return selected, nil
}

// parseNames reads names by commas, and refuses those that nothing has.
func parseNames(list string) ([]string, error) {
	var known, wanted []string
	for _, b := range benchmarks {
		known = append(known, b.name)
	}
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("there is no benchmark %q; there are %s", name, strings.Join(known, ", "))
		}
		wanted = append(wanted, name)
	}
	return wanted, nil
}

// measure runs the benchmarks one after the other. One that fails does not keep
// the others from running.
func measure(ctx context.Context, selected []benchmark, s *suite) ([]result, error) {
	m, err := thisMachine()
	if err != nil {
		return nil, err
	}
	fmt.Println("machine:", m)
	if slices.ContainsFunc(selected, func(b benchmark) bool { return !b.standalone }) {
		printSettings(ctx, os.Stdout)
		if err := s.connect(ctx); err != nil {
			return nil, err
		}
	}
	var results []result
	var failed error
	for _, b := range selected {
		m.Load = load()
		fmt.Printf("\n%s, n=%d, load %.1f\n", b.name, b.n, m.Load)
		found, err := b.run(ctx, s, b.n)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", b.name, err))
			fmt.Printf("  failed: %v\n", err)
		}
		for _, r := range found {
			r.Name, r.Machine = b.name, m
			results = append(results, r)
		}
	}
	return results, errors.Join(failed, s.remove(ctx))
}

func write(path string, results []result) error {
	if results == nil {
		results = []result{}
	}
	text, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	return nil
}
