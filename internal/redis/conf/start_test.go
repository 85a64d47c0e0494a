package conf_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/conf"
	"seang.org/operator/internal/testkit/redisserver"
)

const (
	operator    = naming.UserOperator
	replication = naming.UserReplication
	mib         = 1 << 20
)

var (
	memory = conf.Input{MemoryLimit: 128 * mib}
	volume = conf.Input{MemoryLimit: 128 * mib, Persistence: true}
)

// primary is a server that was promoted.
func primary(t *testing.T, flavour string, in conf.Input) *redisserver.Server {
	t.Helper()
	s := redisserver.Start(t, flavour, in)
	s.Do(operator, "REPLICAOF", "NO", "ONE")
	return s
}

func TestAReplicationPasswordWithQuotesWorks(t *testing.T) {
	include := conf.ReplicationInclude("replication", `a"b\c'd#e`)
	if want := "masteruser replication\nmasterauth \"a\\\"b\\\\c'd#e\"\n"; include != want {
		t.Errorf("got %q, want %q", include, want)
	}
	redisserver.Each(t, func(t *testing.T, flavour string) {
		s := redisserver.Start(t, flavour, memory, redisserver.WithLines(strings.Split(strings.TrimSpace(include), "\n")...))
		if got := s.Do(operator, "CONFIG", "GET", "masterauth"); got != "masterauth\n"+`a"b\c'd#e` {
			t.Errorf("the server reads %q", got)
		}
	})
}

func TestNobodyIsLetInWithoutAPassword(t *testing.T) {
	redisserver.Each(t, func(t *testing.T, flavour string) {
		s := primary(t, flavour, memory)
		if out, err := s.Try("nobody", "PING"); err == nil {
			t.Errorf("an unknown user gets %s", out)
		}
		for _, command := range []string{"GET a", "CONFIG GET masterauth", "ACL LIST", "REPLICAOF NO ONE", "SHUTDOWN"} {
			if _, err := s.Try(replication, strings.Fields(command)...); err == nil || !strings.Contains(err.Error(), "NOPERM") {
				t.Errorf("%s as the replication user gives %v, want NOPERM", command, err)
			}
		}
		for _, command := range []string{"GET a", "SET a b", "CONFIG REWRITE", "FLUSHALL", "MODULE LIST", "EVAL return 0"} {
			if _, err := s.Try(operator, strings.Fields(command)...); err == nil || !strings.Contains(err.Error(), "NOPERM") {
				t.Errorf("%s as the operator gives %v, want NOPERM", command, err)
			}
		}
	})
}

// A new subcommand of a command whose harmful ones are refused by name is
// allowed to applications: a person has to look at it first.
func TestEverySubcommandOfCLIENTIsKnown(t *testing.T) {
	harmless := strings.Fields("caching capa getname getredir help id import-source info no-evict no-touch reply setinfo setname tracking trackinginfo unblock")
	refused := []string{"kill", "list", "pause", "unpause"}
	redisserver.Each(t, func(t *testing.T, flavour string) {
		s := primary(t, flavour, memory)
		for name := range strings.FieldsSeq(s.Do(naming.UserDefault, "COMMAND", "LIST", "FILTERBY", "PATTERN", "client|*")) {
			if _, sub, _ := strings.Cut(name, "|"); !slices.Contains(harmless, sub) && !slices.Contains(refused, sub) {
				t.Errorf("%s is new: decide whether an application may run it", name)
			}
		}
	})
}

// replicated waits until the replica has read what its primary wrote.
func replicated(t *testing.T, from, to *redisserver.Server) {
	t.Helper()
	to.Do(operator, "REPLICAOF", from.IP, "6379")
	deadline := time.Now().Add(20 * time.Second)
	for time.Now().Before(deadline) {
		if strings.Contains(to.Do(operator, "INFO", "replication"), "master_link_status:up") {
			return
		}
	}
	t.Fatalf("%s does not follow %s:\n%s", to.IP, from.IP, to.Log())
}

func TestAMemberWithoutPersistenceKeepsNothing(t *testing.T) {
	redisserver.Each(t, func(t *testing.T, flavour string) {
		from := primary(t, flavour, memory)
		from.Do(naming.UserDefault, "SET", "a", "b")
		to := redisserver.Start(t, flavour, memory)
		replicated(t, from, to)
		to.Kill()
		files, err := filepath.Glob(filepath.Join(to.Data, "*"))
		if err != nil || len(files) > 0 {
			t.Errorf("it leaves %v, %v", files, err)
		}
	})
}

func TestStart(t *testing.T) {
	redisserver.Each(t, func(t *testing.T, flavour string) {
		in := volume
		in.Directives = map[string]string{"appendfsync": "always"}
		s := primary(t, flavour, in)
		expect := func(when, appendOnly, keys string) {
			t.Helper()
			info := s.Do(operator, "INFO", "everything")
			for _, want := range []string{"aof_enabled:" + appendOnly, keys} {
				if !strings.Contains(info, want) {
					t.Errorf("%s: no %s in INFO", when, want)
				}
			}
		}
		s.Do(naming.UserDefault, "SET", "a", "b")
		expect("on an empty volume", "1", "db0:keys=1")
		s.Kill()
		s.Run(t)
		expect("with a manifest", "1", "db0:keys=1")
		s.Do(operator, "REPLICAOF", "NO", "ONE")
		s.Do(operator, "SAVE")
		s.Kill()
		moveAside(t, filepath.Join(s.Data, "appendonlydir"))
		s.Run(t)
		expect("with a snapshot only", "0", "db0:keys=1")
		s.Kill()
		leaveTemporaryManifest(t, s.Data)
		s.Run(t)
		expect("with a snapshot and a temporary manifest", "0", "db0:keys=1")
	})
}

func moveAside(t *testing.T, path string) {
	t.Helper()
	if err := os.Rename(path, path+".aside"); err != nil {
		t.Fatal(err)
	}
}

func leaveTemporaryManifest(t *testing.T, data string) {
	t.Helper()
	dir := filepath.Join(data, "appendonlydir")
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "temp-appendonly.aof.manifest"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
}

func TestStartTakesValkeyByItsOwnName(t *testing.T) {
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "valkey-server"),
		[]byte("#!/bin/sh\nexec "+redisserver.Binary(t, "valkey-8.1")+" \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := redisserver.Start(t, "valkey-8.1", memory, redisserver.WithEnv("PATH="+bin))
	if got := s.Do(operator, "INFO", "server"); !strings.Contains(got, "valkey_version:8.1") {
		t.Errorf("INFO says %s", got)
	}
}

func TestStartSaysThatTheImageHasNoServer(t *testing.T) {
	s := redisserver.Start(t, "redis-7.0", memory)
	command := s.Command(t.Context())
	command.Env = []string{"PATH=" + t.TempDir()}
	out, err := command.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != conf.ExitNoServer {
		t.Errorf("it ends with %v, want exit code %d", err, conf.ExitNoServer)
	}
	if want := "neither redis-server nor valkey-server is on the PATH"; !strings.Contains(string(out), want) {
		t.Errorf("it says %q, want %q", out, want)
	}
}

// Safety rule 17: the second process on a volume waits for the end of the first.
func TestStartTakesALock(t *testing.T) {
	bin := filepath.Dir(redisserver.Binary(t, "redis-7.0"))
	s := redisserver.Start(t, "redis-7.0", volume, redisserver.WithEnv("PATH="+bin+":/usr/bin:/bin"))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	second := s.Command(ctx)
	second.Args = append(second.Args[:1:1], "-c", `exec 2>&1; . "`+second.Args[1]+`"`)
	said, err := second.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string)
	go func() {
		defer close(lines)
		buffer := make([]byte, 4096)
		for {
			n, err := said.Read(buffer)
			if err != nil {
				return
			}
			lines <- string(buffer[:n])
		}
	}()
	if got := <-lines; !strings.Contains(got, "waiting for its end") {
		t.Errorf("the second process says %q", got)
	}
	s.Kill()
	if got := <-lines; !strings.Contains(got, "starting") && !strings.Contains(got, "Redis") {
		t.Errorf("after the end of the first it says %q", got)
	}
	cancel()
	for range lines {
	}
	_ = second.Wait()
}
