// Package redisserver starts real Redis and Valkey servers for tests.
package redisserver

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis"
	"seang.org/operator/internal/redis/conf"
)

// Flavours are the servers that the operator supports, by the name of their
// root directory.
var Flavours = []string{"redis-7.0", "redis-8.0", "valkey-8.1"}

// Passwords of the servers that Start starts.
var Passwords = conf.Passwords{
	Operator: "operator-password-of-tests", Replication: "replication-password-of-tests", Default: "default-password-of-tests"}

// Server is one running process, on a loopback address of its own.
type Server struct {
	IP      string
	Dir     string
	command *exec.Cmd
	binary  string
	exited  chan struct{}
}

// next makes the loopback addresses of one test process distinct.
var next atomic.Uint32

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

// Start starts a server of the flavour with the operator's own configuration
// and users, and waits until it accepts connections.
func Start(t testing.TB, flavour string, in conf.Input) *Server {
	t.Helper()
	text, err := conf.Render(in)
	if err != nil {
		t.Fatalf("render redis.conf: %v", err)
	}
	return StartFiles(t, flavour, Files{Conf: text, ACL: conf.RenderACL(Passwords),
		Replication: conf.ReplicationInclude(naming.UserReplication, Passwords.Replication)})
}

// Files are what a pod mounts.
type Files struct{ Conf, ACL, Replication string }

// StartFiles starts a server with the files of a pod, their paths made those of
// a directory of its own.
func StartFiles(t testing.TB, flavour string, in Files) *Server {
	t.Helper()
	n := next.Add(1)
	s := &Server{
		IP:     fmt.Sprintf("127.%d.%d.%d", 1+os.Getpid()%200, (os.Getpid()/200)%250, n+1),
		Dir:    t.TempDir(),
		binary: Binary(t, flavour),
	}
	for _, dir := range []string{"data", "system"} {
		if err := os.MkdirAll(filepath.Join(s.Dir, dir), 0o750); err != nil {
			t.Fatalf("make a directory: %v", err)
		}
	}
	files := map[string]string{
		"redis.conf": strings.NewReplacer(naming.MountSystem, s.path("system"), "dir "+naming.MountData, "dir "+s.path("data"),
			"bind * -::*", "bind "+s.IP+"\nbind-source-addr "+s.IP).Replace(in.Conf),
		"system/" + naming.KeyACL:             in.ACL,
		"system/" + naming.KeyReplicationConf: in.Replication,
	}
	for name, content := range files {
		if err := os.WriteFile(s.path(name), []byte(content), 0o600); err != nil {
			t.Fatalf("write %s: %v", name, err)
		}
	}
	s.Run(t)
	t.Cleanup(func() { s.Kill() })
	return s
}

func (s *Server) path(name string) string { return filepath.Join(s.Dir, name) }

// Run starts the process again after it ended.
func (s *Server) Run(t testing.TB) {
	t.Helper()
	log, err := os.Create(s.path("log"))
	if err != nil {
		t.Fatalf("make the log: %v", err)
	}
	s.command = exec.Command(s.binary, s.path("redis.conf"))
	s.command.Stdout, s.command.Stderr = log, log
	if err := s.command.Start(); err != nil {
		t.Fatalf("start %s: %v", s.binary, err)
	}
	exited := make(chan struct{})
	s.exited = exited
	go func(command *exec.Cmd) {
		_ = command.Wait()
		_ = log.Close()
		close(exited)
	}(s.command)
	deadline := time.Now().Add(20 * time.Second)
	for {
		conn, err := net.DialTimeout("tcp", s.Address(), time.Second)
		if err == nil {
			_ = conn.Close()
			return
		}
		select {
		case <-exited:
			t.Fatalf("%s ended: %s", s.binary, s.Log())
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not listen at %s: %s", s.binary, s.Address(), s.Log())
		}
	}
}

// Address of the server.
func (s *Server) Address() string { return net.JoinHostPort(s.IP, fmt.Sprint(redis.Port)) }

// Log returns what the process wrote.
func (s *Server) Log() string {
	text, err := os.ReadFile(s.path("log"))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Signal sends a signal to the process.
func (s *Server) Signal(signal syscall.Signal) { _ = s.command.Process.Signal(signal) }

// Kill ends the process at once, as kill -9 does, and waits for its end.
func (s *Server) Kill() {
	s.Signal(syscall.SIGKILL)
	<-s.exited
}
