// Package manager turns flags into options and options into a running manager.
// It is the only place that wires things together.
package manager

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"go.uber.org/zap/zapcore"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"seang.org/operator/internal/naming"
)

// Options of the operator.
type Options struct {
	// MetricsAddress serves metrics over HTTPS; "0" serves none.
	MetricsAddress string
	// HealthAddress serves /healthz and /readyz.
	HealthAddress string
	// LeaderElect makes one of several operators act.
	LeaderElect bool
	// LeaderNamespace holds the Lease; empty: the operator's own namespace.
	LeaderNamespace string
	// Namespace of the operator's own pods; empty if it runs in none.
	Namespace string
	// Namespaces to watch; empty: all.
	Namespaces []string
	// DefaultImage runs where a RedisCluster names no image.
	DefaultImage string
	// SkipNameValidation lets one process run several managers, as tests do.
	SkipNameValidation bool
	// Log options.
	Log zap.Options
}

// fallbackImage is used where the environment names no default.
const fallbackImage = "docker.io/library/redis:8.0"

// ParseFlags reads the flags and the environment. WATCH_NAMESPACE holds
// namespaces by commas, as OLM sets it.
func ParseFlags(args []string) (Options, error) {
	o := Options{DefaultImage: os.Getenv(naming.EnvDefaultImage), Namespace: os.Getenv(naming.EnvNamespace),
		Log: zap.Options{TimeEncoder: zapcore.RFC3339NanoTimeEncoder}}
	if o.DefaultImage == "" {
		o.DefaultImage = fallbackImage
	}
	var namespaces string
	flags := flag.NewFlagSet(naming.Operator, flag.ContinueOnError)
	flags.StringVar(&o.MetricsAddress, "metrics-bind-address", ":8080", "address that serves metrics over HTTPS; 0 for none")
	flags.StringVar(&o.HealthAddress, "health-probe-bind-address", ":8081", "address that serves /healthz and /readyz; 0 for none")
	flags.BoolVar(&o.LeaderElect, "leader-elect", false, "let one of several operators act")
	flags.StringVar(&o.LeaderNamespace, "leader-election-namespace", "", "namespace of the Lease; by default the operator's own")
	flags.StringVar(&namespaces, "watch-namespace", os.Getenv("WATCH_NAMESPACE"), "namespaces to watch, by commas; empty for all")
	o.Log.BindFlags(flags)
	if err := flags.Parse(args); err != nil {
		return Options{}, fmt.Errorf("read the flags: %w", err)
	}
	for name := range strings.SplitSeq(namespaces, ",") {
		if name = strings.TrimSpace(name); name != "" {
			o.Namespaces = append(o.Namespaces, name)
		}
	}
	return o, nil
}
