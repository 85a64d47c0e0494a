// Package redisserver runs real Redis and Valkey servers for tests, each with the
// configuration, the users and the start script that a pod gets, on an address
// of its own.
package redisserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis"
	"seang.org/operator/internal/redis/conf"
	"seang.org/operator/internal/redis/versions"
)

// Flavours are the servers that the operator supports, by the name of their
// root directory.
var Flavours = versions.Tested()

// Passwords of the servers that Start starts.
var Passwords = conf.Passwords{
	Operator: "operator-password-of-tests", Replication: "replication-password-of-tests", Default: "default-password-of-tests"}

// Server is a member as a pod would be: its files outlive its process.
type Server struct {
	IP string
	// Dir holds all files of the server, Data its data.
	Dir, Data string

	t          testing.TB
	binary     string
	files      Files
	volume     bool
	lines      []string
	env        []string
	shell      []string
	unreadable string
	loading    bool
	process    *process
}

// Option changes how a server starts.
type Option func(*Server)

// WithLines adds lines to redis.conf that win over the operator's.
func WithLines(lines ...string) Option { return func(s *Server) { s.lines = lines } }

// WithUnreadable is the list of pods whose files are to be set aside.
func WithUnreadable(list string) Option { return func(s *Server) { s.unreadable = list } }

// WithEnv adds to the environment of the start script.
func WithEnv(env ...string) Option { return func(s *Server) { s.env = env } }

// WithShell names the shell that runs the start script, instead of /bin/sh.
func WithShell(words ...string) Option { return func(s *Server) { s.shell = words } }

// WhileLoading makes a start return while the data is being loaded.
func WhileLoading() Option { return func(s *Server) { s.loading = true } }

// next makes the loopback addresses of one test process distinct.
var next atomic.Uint32

// address is the n-th of a process. The first few hundred of two processes that run
// at the same time differ.
func address(process, n int) string {
	return fmt.Sprintf("127.%d.%d.%d", 1+process%200, (process/200+n/250)%250, 1+n%250)
}

// EnvRoots names the root directories of the servers, separated by colons.
const EnvRoots = "REDIS_ROOTS"

// Binary returns the path of a server. A test is skipped where the environment
// names no servers, and fails where it names them and this one is missing.
func Binary(t testing.TB, flavour string) string {
	t.Helper()
	roots := filepath.SplitList(os.Getenv(EnvRoots))
	if len(roots) == 0 {
		t.Skipf("needs real servers, named in %s: run make test-redis", EnvRoots)
	}
	name := "redis-server"
	if strings.HasPrefix(flavour, "valkey") {
		name = "valkey-server"
	}
	for _, root := range roots {
		if path := filepath.Join(root, "bin", name); filepath.Base(root) == flavour {
			if _, err := os.Stat(path); err != nil {
				t.Fatalf("%s: %v", flavour, err)
			}
			return path
		}
	}
	t.Fatalf("%s names no root of %s: %v", EnvRoots, flavour, roots)
	return ""
}

// Each runs a test once for each flavour, at the same time.
func Each(t *testing.T, test func(t *testing.T, flavour string)) {
	t.Helper()
	for _, flavour := range Flavours {
		t.Run(flavour, func(t *testing.T) {
			t.Parallel()
			test(t, flavour)
		})
	}
}

// Files are what a pod mounts.
type Files struct {
	Conf, ACL, Replication string
	// TLS is the Secret with the certificate; nil for a pod that serves no TLS.
	TLS map[string][]byte
}

// OnVolume says that the data directory is a volume, as with persistence.
func OnVolume() Option { return func(s *Server) { s.volume = true } }

// OnVolumeAt is OnVolume with a data directory that outlives the server.
func OnVolumeAt(dir string) Option {
	return func(s *Server) { s.volume, s.Data = true, dir }
}

// Start starts a server of the flavour with the operator's own configuration
// and users, waits until it accepts connections, and ends it with the test.
func Start(t testing.TB, flavour string, in conf.Input, options ...Option) *Server {
	t.Helper()
	text, err := conf.Render(in)
	if err != nil {
		t.Fatalf("render redis.conf: %v", err)
	}
	if in.Persistence {
		options = append(options, OnVolume())
	}
	return StartFiles(t, flavour, Files{Conf: text, ACL: conf.RenderACL(Passwords.Users()),
		Replication: conf.ReplicationInclude(naming.UserReplication, Passwords.Replication)}, options...)
}

// StartFiles is Start with the files of a pod, their paths made those of a
// directory of its own.
func StartFiles(t testing.TB, flavour string, in Files, options ...Option) *Server {
	t.Helper()
	dir := t.TempDir()
	s := &Server{
		IP:     address(os.Getpid(), int(next.Add(1))),
		Dir:    dir,
		Data:   filepath.Join(dir, "data"),
		t:      t,
		binary: Binary(t, flavour),
		files:  in,
		shell:  []string{"/bin/sh"},
	}
	t.Cleanup(func() {
		s.Kill()
		if t.Failed() {
			t.Logf("log of %s at %s:\n%s", flavour, s.IP, s.Log())
		}
	})
	s.Run(t, options...)
	return s
}

// write writes what a pod has mounted.
func (s *Server) write() error {
	lines := append([]string{"bind-source-addr " + s.IP}, s.lines...)
	for path, text := range map[string]string{
		naming.MountConfig + "/" + naming.KeyRedisConf:       s.files.Conf + strings.Join(lines, "\n") + "\n",
		naming.MountConfig + "/" + naming.KeyStart:           conf.StartScript,
		naming.MountSystem + "/" + naming.KeyACL:             s.files.ACL,
		naming.MountSystem + "/" + naming.KeyReplicationConf: s.files.Replication,
		naming.MountConfig + "/" + naming.KeyUnreadable:      s.unreadable,
	} {
		path = s.relocate(path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(s.relocate(text)), 0o600)); err != nil {
			return err
		}
	}
	return errors.Join(os.MkdirAll(s.Data, 0o700), s.Mount(s.files.TLS))
}

// Mount gives the server the files of another certificate, and takes away those of the
// one before, as the kubelet does: nil where it has none.
func (s *Server) Mount(files map[string][]byte) error {
	s.files.TLS = files
	dir := s.relocate(naming.MountTLS)
	next := dir + ".next"
	err := os.RemoveAll(next)
	if files == nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	err = errors.Join(err, os.MkdirAll(next, 0o700))
	for name, content := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(next, name), []byte(s.relocate(string(content))), 0o600))
	}
	return errors.Join(err, os.RemoveAll(dir), os.Rename(next, dir))
}

// relocate moves the paths of a pod below the directory of the test, and the
// listening address to the server's.
func (s *Server) relocate(text string) string {
	return strings.NewReplacer(
		naming.MountConfig, s.Dir+"/config", naming.MountSystem, s.Dir+"/system", naming.MountTLS, s.Dir+"/tls", naming.MountData, s.Data,
		"bind * -::*", "bind "+s.IP,
	).Replace(text)
}

// Command is the command of the pod, for a test that runs it by itself. Only the
// server's programs are on its PATH: nothing else may be assumed of an image.
func (s *Server) Command(ctx context.Context) *exec.Cmd {
	words := append(slices.Clone(s.shell), s.relocate(naming.MountConfig+"/"+naming.KeyStart))
	command := exec.CommandContext(ctx, words[0], words[1:]...)
	command.Env = append([]string{"PATH=" + filepath.Dir(s.binary), "REDIS_PERSISTENCE=" + strconv.FormatBool(s.volume)}, s.env...)
	command.Dir = s.Dir
	// With persistence the server is a child of the script: they end together.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	return command
}

// Run starts the process, again if it ended, with further options.
func (s *Server) Run(t testing.TB, options ...Option) {
	t.Helper()
	s.Kill()
	s.loading = false
	for _, option := range options {
		option(s)
	}
	if err := s.write(); err != nil {
		t.Fatalf("write the files of a server: %v", err)
	}
	s.process = start(t, s.Command(context.WithoutCancel(t.Context())))
	s.process.await(t, s.loading)
}

// RunToEnd runs the process with another redis.conf and returns its exit code.
func (s *Server) RunToEnd(t testing.TB, text string) int {
	t.Helper()
	s.Kill()
	s.files.Conf = text
	if err := s.write(); err != nil {
		t.Fatalf("write the files of a server: %v", err)
	}
	s.process = start(t, s.Command(context.WithoutCancel(t.Context())))
	return s.Wait(t)
}

// Address of the server.
func (s *Server) Address() string { return net.JoinHostPort(s.IP, fmt.Sprint(redis.Port)) }

// Log is what the process wrote.
func (s *Server) Log() string {
	if s.process == nil {
		return ""
	}
	return s.process.text()
}

// Signal sends a signal: one that asks for the end to the start script, as the
// kubelet does, another to each process that the script started as well.
func (s *Server) Signal(signal syscall.Signal) {
	pid := s.process.command.Process.Pid
	if signal == syscall.SIGTERM || signal == syscall.SIGINT {
		_ = s.process.command.Process.Signal(signal)
		return
	}
	select {
	case <-s.process.exited: // The number may be another's by now.
	default:
		_ = syscall.Kill(-pid, signal)
	}
}

// Terminate ends the process as the end of a pod does, and returns its exit code.
func (s *Server) Terminate(t testing.TB) int {
	t.Helper()
	s.Signal(syscall.SIGTERM)
	return s.Wait(t)
}

// Wait waits for the end of the process and returns its exit code.
func (s *Server) Wait(t testing.TB) int {
	t.Helper()
	select {
	case <-s.process.exited:
	case <-time.After(startTimeout):
		t.Fatalf("the server at %s does not end within %s:\n%s", s.IP, startTimeout, s.Log())
	}
	return s.process.command.ProcessState.ExitCode()
}

// Exited is closed once the process has ended.
func (s *Server) Exited() <-chan struct{} { return s.process.exited }

// Kill ends the process at once, as kill -9 does, and waits for its end.
func (s *Server) Kill() {
	if s.process != nil {
		s.Signal(syscall.SIGKILL)
		<-s.process.exited
	}
}
