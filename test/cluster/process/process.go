// Package process starts the long-running programs of a cluster, finds them
// again in a later run and ends them. They outlive the program that starts them.
package process

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"seang.org/operator/test/cluster/cgroup"
	"seang.org/operator/test/cluster/layout"
)

// Spec describes a program that is to run.
type Spec struct {
	// Name is unique in the cluster and names the log and the pid file.
	Name string
	// Namespace is the network namespace, empty for the host's.
	Namespace string
	// Command is the program, by its path or by its name on the PATH, and its
	// arguments.
	Command []string
	// Files are written before the start. A change of content restarts it.
	Files map[string]string
	// Listen opens a socket that the program inherits as file descriptor 3.
	Listen func() (*os.File, error)
	// KeepChildren leaves the children of an earlier run alive at a start, as
	// containerd needs it for the containers.
	KeepChildren bool
	// Retries is how often it is started again where it ends before it is ready.
	Retries int
	// Ready returns nil as soon as the program does its work.
	Ready func(ctx context.Context) error
}

// fingerprint changes whenever a running program no longer is what spec says.
func (g *Group) fingerprint(s Spec) string {
	hash := sha256.New()
	if s.Command[0] == g.layout.Self() {
		_, _ = fmt.Fprintln(hash, g.self)
	}
	for _, argument := range s.Command {
		_, _ = fmt.Fprintf(hash, "%q\n", argument)
	}
	for _, file := range slices.Sorted(maps.Keys(s.Files)) {
		_, _ = fmt.Fprintf(hash, "%q %q\n", file, s.Files[file])
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// Group is the set of processes of one cluster.
type Group struct {
	layout layout.Layout
	path   string
	// self is the digest of this program, which runs parts of the cluster too.
	self string
}

// NewGroup returns the processes of a cluster. Programs are looked for in
// binDirs and then in the system's directories.
func NewGroup(l layout.Layout, binDirs ...string) *Group {
	dirs := append(slices.Clone(binDirs), "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
	return &Group{layout: l, path: strings.Join(dirs, string(os.PathListSeparator))}
}

func (g *Group) recordDir() string             { return filepath.Join(g.layout.RuntimeDir(), "processes") }
func (g *Group) recordFile(name string) string { return filepath.Join(g.recordDir(), name+".json") }
func (g *Group) processGroup(name string) string {
	return filepath.Join(g.layout.Cgroup(), "system", name)
}

// InstallSelf copies this program to where the cluster's own parts start from: a
// program that `go run` has built does not stay.
func (g *Group) InstallSelf() error {
	path, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read this program: %w", err)
	}
	digest := sha256.Sum256(content)
	g.self = hex.EncodeToString(digest[:])
	if installed, err := os.ReadFile(g.layout.Self()); err == nil && sha256.Sum256(installed) == digest {
		return nil
	}
	return layout.WriteFile(g.layout.Self(), content, 0o755)
}

// LogFile is where a process writes.
func (g *Group) LogFile(name string) string { return filepath.Join(g.layout.LogDir(), name+".log") }

// Ensure starts what spec describes unless it runs already, and waits until it
// is ready. One that runs with another configuration is started anew. An error
// carries the end of the log.
func (g *Group) Ensure(ctx context.Context, spec Spec) error {
	current, running := g.running(spec.Name)
	if running && current.Fingerprint != g.fingerprint(spec) {
		if err := g.Stop(ctx, spec.Name); err != nil {
			return err
		}
		running = false
	}
	for try := 0; ; try++ {
		if !running {
			if err := g.start(ctx, spec); err != nil {
				return fmt.Errorf("start %s: %w", spec.Name, err)
			}
		}
		err := g.await(ctx, spec)
		if errors.Is(err, errEnded) && try < spec.Retries {
			running = false
			continue
		}
		if err != nil {
			return fmt.Errorf("%s is not ready: %w%s", spec.Name, err, g.tail(spec.Name))
		}
		return nil
	}
}

// errEnded: a program ended before it was ready.
var errEnded = errors.New("it has ended")

func (g *Group) start(ctx context.Context, spec Spec) error {
	if !spec.KeepChildren {
		// What an interrupted start has left may run without a pid file.
		if err := cgroup.Kill(ctx, g.processGroup(spec.Name)); err != nil {
			return err
		}
	}
	for file, content := range spec.Files {
		if err := layout.WriteFile(file, []byte(content), 0o600); err != nil {
			return err
		}
	}
	argument, err := json.Marshal(launch{
		Record:      g.recordFile(spec.Name),
		Fingerprint: g.fingerprint(spec),
		Namespace:   spec.Namespace,
		Cgroup:      g.processGroup(spec.Name),
		Command:     spec.Command,
	})
	if err != nil {
		return fmt.Errorf("encode the launch: %w", err)
	}
	if err := os.Remove(g.recordFile(spec.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the old pid file: %w", err)
	}
	log, err := openLog(g.LogFile(spec.Name))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()

	//nolint:noctx // the process outlives this program, and it is this program
	cmd := exec.Command(g.layout.Self(), LaunchCommand, string(argument))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = g.layout.DataDir()
	cmd.Env = []string{"PATH=" + g.path, "HOME=/root", "LANG=C.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if spec.Listen != nil {
		socket, err := spec.Listen()
		if err != nil {
			return err
		}
		defer func() { _ = socket.Close() }()
		cmd.ExtraFiles = []*os.File{socket}
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("run %s: %w", g.layout.Self(), err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // reaps it, should it end while this program runs
		close(ended)
	}()
	return g.awaitRecord(ctx, spec.Name, cmd.Process.Pid, ended)
}

// awaitRecord waits until the launched process has registered itself.
func (g *Group) awaitRecord(ctx context.Context, name string, pid int, ended <-chan struct{}) error {
	for {
		if current, running := g.running(name); running && current.PID == pid {
			return nil
		}
		select {
		case <-ended:
			return fmt.Errorf("it ended at once%s", g.tail(name))
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func openLog(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("make the log directory: %w", err)
	}
	log, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	return log, nil
}

// await polls spec.Ready, for a program says in no other way that it serves.
func (g *Group) await(ctx context.Context, spec Spec) error {
	if spec.Ready == nil {
		return nil
	}
	for {
		err := spec.Ready(ctx)
		if err == nil {
			return nil
		}
		if _, running := g.running(spec.Name); !running {
			return fmt.Errorf("%w: %w", errEnded, err)
		}
		if waitErr := pause(ctx, 100*time.Millisecond); waitErr != nil {
			return fmt.Errorf("%w: %w", waitErr, err)
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// running returns the record of a process and whether that process lives.
func (g *Group) running(name string) (record, bool) {
	data, err := os.ReadFile(g.recordFile(name))
	if err != nil {
		return record{}, false
	}
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return record{}, false
	}
	started, err := startTime(r.PID)
	return r, err == nil && started == r.StartTime && alive(r.PID)
}

// alive is false for a zombie too.
func alive(pid int) bool {
	fields, err := statFields(pid)
	return err == nil && fields[0] != "Z" && fields[0] != "X"
}
