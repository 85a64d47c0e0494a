// Command manager is the Redis operator.
package main

import (
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"

	"seang.org/operator/internal/manager"
)

// version is set when the operator is built.
var version = "dev"

func main() {
	options, err := manager.ParseFlags(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if err := manager.Run(ctrl.SetupSignalHandler(), ctrl.GetConfigOrDie(), version, options); err != nil {
		fmt.Fprintln(os.Stderr, "the operator ends:", err)
		os.Exit(1)
	}
}
