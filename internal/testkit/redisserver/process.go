package redisserver

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis"
)

const (
	// startTimeout bounds the start of a server on a busy machine.
	startTimeout = 30 * time.Second
	// cliTimeout bounds a command of redis-cli.
	cliTimeout = 20 * time.Second
)

// process is one run of a server.
type process struct {
	command   *exec.Cmd
	listening chan struct{}
	ready     chan struct{}
	exited    chan struct{}
	mu        sync.Mutex
	log       strings.Builder
}

func start(t testing.TB, command *exec.Cmd) *process {
	t.Helper()
	p := &process{command: command, listening: make(chan struct{}), ready: make(chan struct{}), exited: make(chan struct{})}
	reader, writer := io.Pipe()
	command.Stdout, command.Stderr = writer, writer
	if err := command.Start(); err != nil {
		t.Fatalf("start %s: %v", command, err)
	}
	go p.read(reader)
	go func() {
		_ = command.Wait()
		_ = writer.Close()
		close(p.exited)
	}()
	return p
}

// read follows the log of the process.
func (p *process) read(log io.Reader) {
	listening, ready := sync.OnceFunc(func() { close(p.listening) }), sync.OnceFunc(func() { close(p.ready) })
	for lines := bufio.NewScanner(log); lines.Scan(); {
		line := lines.Text()
		p.mu.Lock()
		p.log.WriteString(line + "\n")
		p.mu.Unlock()
		switch {
		case strings.Contains(line, "Server initialized"):
			listening()
		case strings.Contains(line, "Ready to accept connections"):
			ready()
		}
	}
}

func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// await waits until the process has loaded its data or, if loading, begins to.
func (p *process) await(t testing.TB, loading bool) {
	t.Helper()
	event := p.ready
	if loading {
		event = p.listening
	}
	select {
	case <-event:
	case <-p.exited:
		t.Fatalf("%s ended at its start: %s\n%s", p.command, p.command.ProcessState, p.text())
	case <-time.After(startTimeout):
		t.Fatalf("%s does not start within %s:\n%s", p.command, startTimeout, p.text())
	}
}

// Try runs a command with the flavour's cli as a user; an error reply is the error.
func (s *Server) Try(user string, words ...string) (string, error) {
	s.t.Helper()
	password := map[string]string{naming.UserOperator: Passwords.Operator,
		naming.UserReplication: Passwords.Replication, naming.UserDefault: Passwords.Default}[user]
	return s.TryWith(user, password, words...)
}

// TryWith is Try with a password that is not of Passwords.
func (s *Server) TryWith(user, password string, words ...string) (string, error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.t.Context()), cliTimeout)
	defer cancel()
	cli := filepath.Join(filepath.Dir(s.binary), "redis-cli")
	command := exec.CommandContext(ctx, cli, slices.Concat([]string{"-h", s.IP, "-e", "--raw", "--user", user}, s.cliTLS(), words)...)
	command.Env = []string{"REDISCLI_AUTH=" + password}
	out, err := command.CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err != nil {
		return "", fmt.Errorf("%s as %s at %s: %w: %s", words, user, s.IP, err, text)
	}
	return text, nil
}

// Do is Try for a command that must succeed.
func (s *Server) Do(user string, words ...string) string {
	s.t.Helper()
	text, err := s.Try(user, words...)
	if err != nil {
		s.t.Fatal(err)
	}
	return text
}

// cliTLS makes redis-cli use TLS where the server serves it, with the server's own
// certificate where it asks for one. Who the server is, other tests ask.
func (s *Server) cliTLS() []string {
	if s.files.TLS == nil {
		return nil
	}
	words := []string{"-p", strconv.Itoa(redis.PortTLS), "--tls", "--insecure"}
	for name := range s.files.TLS {
		path := s.relocate(naming.MountTLS + "/" + name)
		switch {
		case strings.HasPrefix(name, "certificate-"):
			words = append(words, "--cert", path)
		case strings.HasPrefix(name, "key-"):
			words = append(words, "--key", path)
		}
	}
	return words
}
