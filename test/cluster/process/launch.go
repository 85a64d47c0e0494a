package process

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/vishvananda/netns"

	"seang.org/operator/test/cluster/cgroup"
	"seang.org/operator/test/cluster/layout"
)

// LaunchCommand is the first argument by which this program starts another. It
// is dealt with before anything else in main.
const LaunchCommand = "launch"

// launch is what the process that is to become the component does first.
//
// It registers itself before it becomes the component, so that no moment exists
// at which a component runs and is not known, whenever the starter dies.
type launch struct {
	Record      string   `json:"record"`
	Fingerprint string   `json:"fingerprint"`
	Namespace   string   `json:"namespace"`
	Cgroup      string   `json:"cgroup"`
	Command     []string `json:"command"`
}

// record is the pid file of a process.
type record struct {
	PID int `json:"pid"`
	// StartTime is in clock ticks since boot. It tells the process from a later
	// one that got the same id.
	StartTime uint64 `json:"startTime"`
	// Fingerprint changes with the command line and the configuration.
	Fingerprint string `json:"fingerprint"`
}

// Launch turns the calling process into the component that argument describes.
// It returns only on failure.
func Launch(argument string) error {
	var l launch
	if err := json.Unmarshal([]byte(argument), &l); err != nil {
		return fmt.Errorf("parse what to launch: %w", err)
	}
	if err := cgroup.Join(l.Cgroup); err != nil {
		return err
	}
	started, err := startTime(os.Getpid())
	if err != nil {
		return err
	}
	data, err := json.Marshal(record{PID: os.Getpid(), StartTime: started, Fingerprint: l.Fingerprint})
	if err != nil {
		return fmt.Errorf("encode %s: %w", l.Record, err)
	}
	if err := layout.WriteFile(l.Record, data, 0o644); err != nil {
		return err
	}
	return Exec(l.Namespace, l.Command, os.Environ())
}

// Exec replaces the calling process by a command in a network namespace. An
// empty namespace keeps the current one. It returns only on failure.
func Exec(namespace string, command, env []string) error {
	path, err := lookPath(command[0], env)
	if err != nil {
		return err
	}
	runtime.LockOSThread() // the thread that enters the namespace is the one that survives exec
	if namespace != "" {
		handle, err := netns.GetFromName(namespace)
		if err != nil {
			return fmt.Errorf("open network namespace %s (is the cluster up?): %w", namespace, err)
		}
		if err := netns.Set(handle); err != nil {
			return fmt.Errorf("enter network namespace %s: %w", namespace, err)
		}
	}
	return fmt.Errorf("run %s: %w", path, syscall.Exec(path, command, env))
}

// lookPath finds a program in the PATH of env, not of the calling process.
func lookPath(program string, env []string) (string, error) {
	if strings.Contains(program, "/") {
		return program, nil
	}
	for _, entry := range env {
		list, ok := strings.CutPrefix(entry, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(list) {
			path := filepath.Join(dir, program)
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("program %s is not on the PATH", program)
}

// startTime reads field 22 of /proc/PID/stat. Field 2 may contain blanks, but
// it ends at the last parenthesis.
func startTime(pid int) (uint64, error) {
	fields, err := statFields(pid)
	if err != nil {
		return 0, err
	}
	started, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("parse the start time of process %d: %w", pid, err)
	}
	return started, nil
}

// statFields returns the fields of /proc/PID/stat from the third, the state.
func statFields(pid int) ([]string, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, fmt.Errorf("read the state of process %d: %w", pid, err)
	}
	_, rest, _ := strings.Cut(string(data[strings.LastIndexByte(string(data), ')'):]), " ")
	fields := strings.Fields(rest)
	if len(fields) < 20 {
		return nil, fmt.Errorf("the state of process %d has %d fields only", pid, len(fields))
	}
	return fields, nil
}
