package root

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience is more than enough for anything that a test here waits for.
const patience = 30 * time.Second

// server is a running server of a root directory.
type server struct {
	t    *testing.T
	root Root
	port string
	dir  string
	pid  int
}

// start runs a server until the test ends; it returns once it takes connections.
func start(t *testing.T, root Root, arguments ...string) server {
	t.Helper()
	s := server{t: t, root: root, port: freePort(t), dir: t.TempDir()}
	arguments = append([]string{"--port", s.port, "--bind", "127.0.0.1", "--dir", s.dir, "--save", ""}, arguments...)
	command := exec.Command(root.Program(root.Recipe().server()), arguments...)
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatalf("start the server of %s: %v", root.Name, err)
	}
	s.pid = command.Process.Pid
	ready, ended := make(chan struct{}), make(chan []string, 1)
	go func() {
		var said []string
		for lines := bufio.NewScanner(output); lines.Scan(); {
			said = append(said, lines.Text())
			if strings.Contains(lines.Text(), "Ready to accept connections") {
				close(ready)
			}
		}
		ended <- said
	}()
	t.Cleanup(func() {
		if err := command.Process.Signal(syscall.SIGTERM); err != nil {
			t.Errorf("stop the server of %s: %v", root.Name, err)
		}
		<-ended
		if err := command.Wait(); err != nil {
			t.Errorf("the server of %s did not end well after SIGTERM: %v", root.Name, err)
		}
	})
	select {
	case <-ready:
	case said := <-ended:
		ended <- said
		t.Fatalf("the server of %s ended: %s", root.Name, strings.Join(said, "\n"))
	case <-time.After(patience):
		t.Fatalf("the server of %s is not ready after %s", root.Name, patience)
	}
	return s
}

// do sends a command with the root's own client.
func (s server) do(arguments ...string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	program := s.root.Program(string(s.root.Flavour) + "-cli")
	out, err := exec.CommandContext(ctx, program, append([]string{"-e", "-h", "127.0.0.1", "-p", s.port}, arguments...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s of %s: %v: %s", strings.Join(arguments, " "), s.root.Name, err, out)
	}
	return strings.TrimSpace(string(out))
}

// info returns a field of INFO.
func (s server) info(section, field string) string {
	s.t.Helper()
	for line := range strings.Lines(s.do("INFO", section)) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	s.t.Fatalf("INFO %s of %s has no %s", section, s.root.Name, field)
	return ""
}

func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(port)
}

// makeRoots returns all root directories, from the cache if they are there.
func makeRoots(t *testing.T) []Root {
	t.Helper()
	if testing.Short() {
		t.Skip("needs real servers, which apt downloads")
	}
	dir, err := CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	roots, err := Store{Dir: dir}.Make(t.Context(), false, Recipes()...)
	if err != nil {
		t.Fatal(err)
	}
	return roots
}

func TestServerRunsOnThisMachine(t *testing.T) {
	for _, root := range makeRoots(t) {
		t.Run(root.Name, func(t *testing.T) {
			s := start(t, root)
			if got := s.do("PING"); got != "PONG" {
				t.Errorf("PING = %q, want PONG", got)
			}
			field := string(root.Flavour) + "_version"
			if got := s.info("server", field); got != root.Version {
				t.Errorf("%s = %q, want %q as in versions.json", field, got, root.Version)
			}
			if got, want := s.info("server", "process_id"), fmt.Sprint(s.pid); got != want {
				t.Errorf("process_id = %s, want %s: the wrapper must become the server", got, want)
			}
			s.do("SET", "key", "value")
			if got := s.do("SAVE"); got != "OK" {
				t.Errorf("SAVE = %q, want OK", got)
			}
			check := exec.Command(root.Program("redis-check-rdb"), filepath.Join(s.dir, "dump.rdb"))
			if out, err := check.CombinedOutput(); err != nil || !strings.Contains(string(out), "RDB looks OK") {
				t.Errorf("redis-check-rdb: %v: %s", err, out)
			}
		})
	}
}

func TestReplicaGetsWrites(t *testing.T) {
	for _, root := range makeRoots(t) {
		t.Run(root.Name, func(t *testing.T) {
			primary := start(t, root)
			replica := start(t, root, "--replicaof", "127.0.0.1 "+primary.port, "--repl-diskless-load", "on-empty-db")
			primary.do("SET", "key", "value")
			// WAIT asks only replicas for which it is worth it: a write comes first.
			if got := primary.do("WAIT", "1", fmt.Sprint(patience.Milliseconds())); got != "1" {
				t.Fatalf("WAIT 1 = %s, want 1 replica", got)
			}
			if got := replica.do("GET", "key"); got != "value" {
				t.Errorf("GET on the replica = %q, want value", got)
			}
			if got, want := replica.info("replication", "master_replid"), primary.info("replication", "master_replid"); got != want {
				t.Errorf("replication ID of the replica = %s, want the primary's %s", got, want)
			}
		})
	}
}
