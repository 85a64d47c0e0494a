// Command scorecard reads what operator-sdk's scorecard prints as JSON, prints a line for
// each test, and fails unless all passed.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
)

func main() {
	if err := summarise(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "scorecard:", err)
		os.Exit(1)
	}
}

func summarise(in io.Reader, out io.Writer) error {
	var list v1alpha3.TestList
	if err := json.NewDecoder(in).Decode(&list); err != nil {
		return fmt.Errorf("read the output of operator-sdk scorecard: %w", err)
	}
	passed, failed := 0, 0
	for _, test := range list.Items {
		for _, result := range test.Status.Results {
			fmt.Fprintf(out, "%-5s %-17s %s\n", result.State, test.Spec.Labels["suite"], result.Name)
			if result.State == v1alpha3.PassState {
				passed++
				continue
			}
			failed++
			for _, line := range append(result.Errors, result.Log) {
				fmt.Fprintln(out, "     ", line)
			}
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d tests failed", failed, failed+passed)
	}
	if passed == 0 {
		return errors.New("no test ran")
	}
	return nil
}
