package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"seang.org/operator/test/e2e/kubeapi"
)

// machine is where the figures were measured.
type machine struct {
	CPU         string `json:"cpu"`
	Cores       int    `json:"cores"`
	MemoryBytes int64  `json:"memoryBytes"`
	Kernel      string `json:"kernel"`
	// Load is the load average of the minute before the benchmark began: above
	// a fraction of a core, something else ran.
	Load float64 `json:"load"`
}

func (m machine) String() string {
	return fmt.Sprintf("%s, %d cores, %.1f GiB, Linux %s", m.CPU, m.Cores, float64(m.MemoryBytes)/(1<<30), m.Kernel)
}

func thisMachine() (machine, error) {
	cpu, errCPU := os.ReadFile("/proc/cpuinfo")
	memory, errMemory := os.ReadFile("/proc/meminfo")
	kernel, errKernel := os.ReadFile("/proc/sys/kernel/osrelease")
	if err := errors.Join(errCPU, errMemory, errKernel); err != nil {
		return machine{}, fmt.Errorf("read what machine this is: %w", err)
	}
	bytes, err := kibibytes(string(memory), "MemTotal")
	if err != nil {
		return machine{}, fmt.Errorf("read the machine's memory: %w", err)
	}
	return machine{CPU: property(string(cpu), "model name"), Cores: runtime.NumCPU(), MemoryBytes: bytes,
		Kernel: strings.TrimSpace(string(kernel))}, nil
}

// property is the value of the first line "name : value" of a file of /proc;
// empty if there is none.
func property(text, name string) string {
	for line := range strings.Lines(text) {
		key, value, found := strings.Cut(line, ":")
		if found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// kibibytes is a property such as "123 kB", in bytes.
func kibibytes(text, name string) (int64, error) {
	var amount int64
	if _, err := fmt.Sscanf(property(text, name), "%d kB", &amount); err != nil {
		return 0, fmt.Errorf("%s is %q: %w", name, property(text, name), err)
	}
	return amount << 10, nil
}

// load is the load average of the last minute; 0 where there is none.
func load() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	var average float64
	if _, err := fmt.Sscan(string(text), &average); err != nil {
		return 0
	}
	return average
}

// printSettings lists where the embedded Kubernetes differs from kubeadm's.
func printSettings(ctx context.Context, out io.Writer) {
	if _, err := os.Stat(kubeapi.EmbeddedProgram); errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(out, "settings of the cluster: unknown, as there is no %s in the current directory\n", kubeapi.EmbeddedProgram)
		return
	}
	fmt.Fprintln(out, "settings of the embedded Kubernetes that differ from kubeadm's defaults:")
	command := exec.CommandContext(ctx, kubeapi.EmbeddedProgram, "status", "--settings")
	command.Stdout, command.Stderr = out, out
	if err := command.Run(); err != nil {
		fmt.Fprintf(out, "unknown: %v\n", err)
	}
}
