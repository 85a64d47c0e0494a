package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"seang.org/operator/test/cluster/cgroup"
)

// stopTimeout is how long a process has to end by itself.
const stopTimeout = 5 * time.Second

// tailBytes is how much of a log an error carries at most.
const tailBytes = 3000

// Status is the state of one process.
type Status struct {
	Name    string `json:"name"`
	PID     int    `json:"pid"`
	Running bool   `json:"running"`
	// Stopped says that the process is suspended by SIGSTOP.
	Stopped bool `json:"stopped,omitempty"`
	// ResidentBytes is its part of the memory: shared pages count by share.
	ResidentBytes int64 `json:"residentBytes"`
}

// List returns the processes that were started, by name.
func (g *Group) List() ([]Status, error) {
	files, err := filepath.Glob(filepath.Join(g.recordDir(), "*.json"))
	if err != nil {
		return nil, fmt.Errorf("list the processes in %s: %w", g.recordDir(), err)
	}
	slices.Sort(files)
	list := make([]Status, 0, len(files))
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		current, running := g.running(name)
		status := Status{Name: name, PID: current.PID, Running: running}
		if running {
			fields, err := statFields(current.PID)
			status.Stopped = err == nil && fields[0] == "T"
			status.ResidentBytes = ProportionalSize(current.PID)
		}
		list = append(list, status)
	}
	return list, nil
}

// ProportionalSize returns the memory of a process in bytes, with shared pages
// divided among those that share them; 0 if it is gone.
func ProportionalSize(pid int) int64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(line, "Pss:"); ok {
			kib, _ := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			return kib * 1024
		}
	}
	return 0
}

// Signal sends a signal to a running process.
func (g *Group) Signal(name string, signal syscall.Signal) error {
	current, running := g.running(name)
	if !running {
		return fmt.Errorf("process %s does not run: `status` lists those that do", name)
	}
	if err := syscall.Kill(current.PID, signal); err != nil {
		return fmt.Errorf("send %s to %s (process %d): %w", signal, name, current.PID, err)
	}
	return nil
}

// Kill ends a process at once, as a crash does, and waits until it is gone. It
// leaves its children: the containers of a killed containerd run on.
func (g *Group) Kill(ctx context.Context, name string) error {
	current, running := g.running(name)
	if !running {
		return fmt.Errorf("process %s does not run: `status` lists those that do", name)
	}
	if err := g.Signal(name, syscall.SIGKILL); err != nil {
		return err
	}
	return awaitEnd(ctx, current)
}

// Stop asks a process to end and kills it after stopTimeout. One that does not
// run is left as it is.
func (g *Group) Stop(ctx context.Context, name string) error {
	current, running := g.running(name)
	if !running {
		return nil
	}
	_ = g.Signal(name, syscall.SIGCONT)
	if err := g.Signal(name, syscall.SIGTERM); err != nil {
		return err
	}
	patient, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	if err := awaitEnd(patient, current); err == nil || ctx.Err() != nil {
		return err
	}
	if err := g.Kill(ctx, name); err != nil {
		return fmt.Errorf("stop %s: %w", name, err)
	}
	return nil
}

func awaitEnd(ctx context.Context, r record) error {
	for alive(r.PID) {
		if started, err := startTime(r.PID); err == nil && started != r.StartTime {
			return nil
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return fmt.Errorf("wait for process %d to end: %w", r.PID, err)
		}
	}
	return nil
}

// KillAll ends every process of the cluster, containers included, known or not.
func (g *Group) KillAll(ctx context.Context) error {
	return cgroup.Kill(ctx, g.layout.Cgroup())
}

// tail returns the end of a log, set off from the message it is added to.
func (g *Group) tail(name string) string {
	text, err := Tail(g.LogFile(name))
	if err != nil || text == "" {
		return ""
	}
	return fmt.Sprintf("\n--- end of %s\n%s", g.LogFile(name), text)
}

// Tail returns the last lines of a file.
func Tail(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read the log: %w", err)
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(-tailBytes, io.SeekEnd); err != nil && !errors.Is(err, syscall.EINVAL) {
		return "", fmt.Errorf("read the end of %s: %w", path, err)
	}
	data, err := io.ReadAll(io.LimitReader(file, tailBytes))
	if err != nil {
		return "", fmt.Errorf("read the end of %s: %w", path, err)
	}
	return strings.TrimSpace(string(data)), nil
}
