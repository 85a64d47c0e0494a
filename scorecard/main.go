// Command scorecard has the tests that operator-sdk's scorecard runs beside its own: what
// a person who installed the bundle may expect of a RedisCluster from its examples. It
// runs the test that its argument names, in the namespace of its pod, and prints one
// TestStatus as JSON.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"

	"seang.org/operator/test/e2e/kubeapi"
)

// timeout of a test: the slowest takes half a minute on a small machine.
const timeout = 4 * time.Minute

// Where operator-sdk puts the bundle, and says which namespace is the test's.
const (
	bundleDir    = "/bundle"
	namespaceEnv = "SCORECARD_NAMESPACE"
)

// tests by name. Each returns what is not as it should be.
var tests = map[string]func(context.Context, *suite) error{
	"example-gets-ready":          exampleGetsReady,
	"status-is-complete":          statusIsComplete,
	"killed-primary-is-replaced":  killedPrimaryIsReplaced,
	"spec-fields-have-effect":     specFieldsHaveEffect,
	"nothing-left-after-deletion": nothingLeftAfterDeletion,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "scorecard:", err)
		os.Exit(1)
	}
}

// run prints the outcome of a test. A test that fails is no error of the program.
func run(ctx context.Context, args []string, out io.Writer) error {
	name := strings.Join(args, " ")
	test, ok := tests[name]
	if !ok {
		return fmt.Errorf("no test is named %q: one of %v", name, slices.Sorted(maps.Keys(tests)))
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("the test took more than %s", timeout))
	defer cancel()
	api, err := kubeapi.Connect()
	if err == nil {
		err = test(ctx, &suite{api: api, namespace: os.Getenv(namespaceEnv), bundle: bundleDir})
	}
	if err := json.NewEncoder(out).Encode(outcome(name, err)); err != nil {
		return fmt.Errorf("print the outcome of %s: %w", name, err)
	}
	return nil
}

// outcome is what operator-sdk reads: one result, with a line for each problem.
func outcome(name string, err error) v1alpha3.TestStatus {
	result := v1alpha3.TestResult{Name: name, State: v1alpha3.PassState}
	if err != nil {
		result.State, result.Errors = v1alpha3.FailState, strings.Split(err.Error(), "\n")
	}
	return v1alpha3.TestStatus{Results: []v1alpha3.TestResult{result}}
}
