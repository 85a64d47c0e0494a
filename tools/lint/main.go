// Command lint is golangci-lint with kube-api-linter compiled in.
//
// "golangci-lint custom" would build the same program, but only from a clone of
// golangci-lint's repository; this one builds from the Go module proxy alone.
package main

import (
	"os"

	"github.com/golangci/golangci-lint/v2/pkg/commands"
	"github.com/golangci/golangci-lint/v2/pkg/exitcodes"
	_ "sigs.k8s.io/kube-api-linter" // registers itself as the module plugin "kubeapilinter"
)

func main() {
	if err := commands.Execute(commands.BuildInfo{Version: "v2.15.0"}); err != nil {
		os.Exit(exitcodes.Failure)
	}
}
