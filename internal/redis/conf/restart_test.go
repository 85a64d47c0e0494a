package conf_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/testkit/redisserver"
)

// The exit code of a container that a signal ended.
const exitKilled = 128 + int(syscall.SIGKILL)

// info is a field of INFO.
func info(s *redisserver.Server, field string) string {
	for line := range strings.Lines(s.Do(operator, "INFO", "everything")) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), field+":"); ok {
			return value
		}
	}
	return ""
}

// until waits for a field of INFO.
func until(t *testing.T, s *redisserver.Server, field, want string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		if info(s, field) == want {
			return
		}
	}
	t.Fatalf("%s of %s is %q, want %q", field, s.IP, info(s, field), want)
}

func expectInfo(t *testing.T, s *redisserver.Server, when string, want map[string]string) {
	t.Helper()
	for field, value := range want {
		if got := info(s, field); got != value {
			t.Errorf("%s: %s is %q, want %q", when, field, got, value)
		}
	}
}

// appendOnlyOn is what the operator does once the data is loaded.
func appendOnlyOn(t *testing.T, s *redisserver.Server) {
	t.Helper()
	s.Do(operator, "CONFIG", "SET", "appendonly", "yes")
	until(t, s, "aof_rewrite_scheduled", "0")
	until(t, s, "aof_rewrite_in_progress", "0")
	if got := info(s, "aof_last_bgrewrite_status"); got != "ok" {
		t.Fatalf("the first rewrite of %s is %s", s.IP, got)
	}
}

func set(s *redisserver.Server, keys ...string) {
	for _, key := range keys {
		s.Do(naming.UserDefault, "SET", key, "value")
	}
}

// killServer ends the server alone, as the kernel does when memory is short.
func killServer(t *testing.T, s *redisserver.Server) {
	t.Helper()
	pid, err := strconv.Atoi(info(s, "process_id"))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// always writes each command to the disk, so that a kill loses nothing.
func always() []redisserver.Option {
	return []redisserver.Option{redisserver.WithLines("appendfsync always")}
}

// restarted ends a replica in good order, and starts it again once its primary has
// another key.
func restarted(t *testing.T, replica, of *redisserver.Server, key string) {
	t.Helper()
	if code := replica.Terminate(t); code != 0 {
		t.Errorf("it ends with %d", code)
	}
	set(of, key)
	replica.Run(t)
	expectInfo(t, replica, "after a graceful end", map[string]string{"aof_enabled": "0"})
	replicated(t, of, replica)
}

func TestStartAfterAGracefulEndKeepsTheHistory(t *testing.T) {
	redisserver.Each(t, func(t *testing.T, flavour string) {
		first := primary(t, flavour, volume)
		second := redisserver.Start(t, flavour, volume, always()...)
		set(first, "a")
		replicated(t, first, second)
		until(t, second, "aof_rewrite_in_progress", "0")
		until(t, second, "aof_enabled", "1")

		// The replica.
		restarted(t, second, first, "b")
		expectInfo(t, first, "the replica is back", map[string]string{"sync_full": "1", "sync_partial_ok": "1"})

		// The old primary, demoted first.
		appendOnlyOn(t, second)
		second.Do(operator, "REPLICAOF", "NO", "ONE")
		replicated(t, second, first)
		restarted(t, first, second, "c")
		expectInfo(t, second, "the old primary is back", map[string]string{"sync_full": "0", "sync_partial_ok": "2"})
		expectInfo(t, first, "the old primary is back", map[string]string{"db0": info(second, "db0")})

		// A crash after appendonly is on again loads what was written since.
		killServer(t, second)
		if code := second.Wait(t); code != exitKilled {
			t.Errorf("it ends with %d, want %d", code, exitKilled)
		}
		second.Run(t)
		expectInfo(t, second, "after a crash", map[string]string{"aof_enabled": "1"})
		second.Do(operator, "REPLICAOF", "NO", "ONE")
		if got := second.Do(naming.UserDefault, "EXISTS", "a", "b", "c"); got != "3" {
			t.Errorf("after a crash it has %s keys of 3", got)
		}
	})
}

// Each entry spoils a volume after a graceful end with one key; what starts must
// have all keys that the volume has.
func TestStartNeverLoadsOlderDataThanItMust(t *testing.T) {
	tests := map[string]struct {
		spoil          func(t *testing.T, s *redisserver.Server)
		wantAppendOnly string
		wantKeys       int
	}{
		"nothing happened": {func(*testing.T, *redisserver.Server) {}, "0", 1},
		"a crash with appendonly still off loads the snapshot again": {func(t *testing.T, s *redisserver.Server) {
			s.Run(t)
			killServer(t, s)
			s.Wait(t)
		}, "0", 1},
		"a crash with a newer snapshot and appendonly still off": {func(t *testing.T, s *redisserver.Server) {
			promote(t, s)
			set(s, "later")
			s.Do(operator, "SAVE")
			killServer(t, s)
			s.Wait(t)
		}, "0", 2},
		"a graceful end with appendonly still off": {func(t *testing.T, s *redisserver.Server) {
			promote(t, s)
			set(s, "later")
			s.Terminate(t)
		}, "0", 2},
		"a crash in the first rewrite": {func(t *testing.T, s *redisserver.Server) {
			promote(t, s)
			set(s, "later")
			s.Do(operator, "SAVE")
			leaveTemporaryManifest(t, s.Data)
			write(t, filepath.Join(s.Data, "appendonlydir", "temp-appendonly.aof.incr"), "")
			write(t, filepath.Join(s.Data, "appendonlydir", "appendonly.aof.2.base.rdb"), "REDIS0010")
			s.Kill()
		}, "0", 2},
		"a crash with appendonly on again": {func(t *testing.T, s *redisserver.Server) {
			promote(t, s)
			appendOnlyOn(t, s)
			set(s, "later")
			s.Kill()
		}, "1", 2},
		"a graceful end after appendonly was on again": {func(t *testing.T, s *redisserver.Server) {
			promote(t, s)
			appendOnlyOn(t, s)
			set(s, "later")
			s.Terminate(t)
		}, "0", 2},
		"SHUTDOWN NOSAVE after a snapshot": {func(t *testing.T, s *redisserver.Server) {
			promote(t, s)
			appendOnlyOn(t, s)
			s.Do(operator, "SAVE")
			set(s, "later")
			_, _ = s.Try(operator, "SHUTDOWN", "NOSAVE")
			if code := s.Wait(t); code != 0 {
				t.Errorf("it ends with %d", code)
			}
		}, "1", 2},
		"no save at the end, after a snapshot": {func(t *testing.T, s *redisserver.Server) {
			promote(t, s)
			appendOnlyOn(t, s)
			s.Do(operator, "SAVE")
			set(s, "later")
			s.Do(operator, "CONFIG", "SET", "save", "")
			s.Terminate(t)
		}, "1", 2},
		"a truncated marker": {func(t *testing.T, s *redisserver.Server) {
			text, err := os.ReadFile(marker(s))
			if err != nil {
				t.Fatal(err)
			}
			write(t, marker(s), strings.TrimSuffix(string(text), "end\n"))
		}, "1", 1},
		"an empty marker":    {func(t *testing.T, s *redisserver.Server) { write(t, marker(s), "") }, "1", 1},
		"a foreign marker":   {func(t *testing.T, s *redisserver.Server) { write(t, marker(s), "file a seq 1 type b\nend\n") }, "1", 1},
		"no marker":          {func(t *testing.T, s *redisserver.Server) { remove(t, marker(s)) }, "1", 1},
		"no snapshot":        {func(t *testing.T, s *redisserver.Server) { remove(t, snapshot(s)) }, "1", 1},
		"an empty snapshot":  {func(t *testing.T, s *redisserver.Server) { write(t, snapshot(s), "") }, "1", 1},
		"no append-only dir": {func(t *testing.T, s *redisserver.Server) { remove(t, filepath.Join(s.Data, "appendonlydir")) }, "0", 1},
		"the same manifest again, after the directory was deleted": {func(t *testing.T, s *redisserver.Server) {
			remove(t, filepath.Join(s.Data, "appendonlydir"))
			promote(t, s)
			appendOnlyOn(t, s)
			set(s, "later")
			s.Kill()
		}, "1", 2},
		"the same manifest grew, after the snapshot was deleted": {func(t *testing.T, s *redisserver.Server) {
			remove(t, snapshot(s))
			promote(t, s)
			s.Do(operator, "SAVE")
			set(s, "later")
			s.Kill()
		}, "1", 2},
		"the same manifest grew under a script that knows no marker": {func(t *testing.T, s *redisserver.Server) {
			text, err := os.ReadFile(marker(s))
			if err != nil {
				t.Fatal(err)
			}
			old := time.Now().Add(-time.Hour)
			remove(t, snapshot(s))
			promote(t, s)
			s.Do(operator, "SAVE")
			set(s, "later")
			s.Kill()
			write(t, marker(s), string(text))
			if err := os.Chtimes(marker(s), old, old); err != nil {
				t.Fatal(err)
			}
		}, "1", 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			redisserver.Each(t, func(t *testing.T, flavour string) {
				s := redisserver.Start(t, flavour, volume, always()...)
				s.Do(operator, "REPLICAOF", "NO", "ONE")
				set(s, "a")
				if code := s.Terminate(t); code != 0 {
					t.Fatalf("it ends with %d", code)
				}
				test.spoil(t, s)
				s.Run(t)
				expectInfo(t, s, "at the next start", map[string]string{"aof_enabled": test.wantAppendOnly})
				if got, want := info(s, "db0"), fmt.Sprintf("keys=%d,", test.wantKeys); !strings.HasPrefix(got, want) {
					t.Errorf("it has %q, want %q", got, want)
				}
			})
		})
	}
}

func marker(s *redisserver.Server) string   { return filepath.Join(s.Data, ".saved") }
func snapshot(s *redisserver.Server) string { return filepath.Join(s.Data, "dump.rdb") }

func promote(t *testing.T, s *redisserver.Server) {
	t.Helper()
	s.Run(t)
	s.Do(operator, "REPLICAOF", "NO", "ONE")
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

// A save that fails keeps the server alive: the script goes on waiting, and ends
// only with the server.
func TestStartWaitsForAServerThatCannotSave(t *testing.T) {
	redisserver.Each(t, func(t *testing.T, flavour string) {
		s := primary(t, flavour, volume)
		set(s, "a")
		if err := os.Mkdir(snapshot(s), 0o700); err != nil {
			t.Fatal(err)
		}
		s.Signal(syscall.SIGTERM)
		for deadline := time.Now().Add(20 * time.Second); !strings.Contains(s.Log(), "can't exit"); {
			if time.Now().After(deadline) {
				t.Fatalf("no failing save:\n%s", s.Log())
			}
			time.Sleep(10 * time.Millisecond)
		}
		set(s, "b")
		remove(t, snapshot(s))
		if code := s.Terminate(t); code != 0 {
			t.Errorf("it ends with %d", code)
		}
		s.Run(t)
		expectInfo(t, s, "after the second signal", map[string]string{"aof_enabled": "0"})
		if got := info(s, "db0"); !strings.HasPrefix(got, "keys=2,") {
			t.Errorf("it has %q, want 2 keys", got)
		}
	})
}

// Images bring different shells.
func TestStartInEveryShell(t *testing.T) {
	for name, words := range map[string][]string{"dash": {"dash"}, "busybox": {"busybox", "ash"}, "bash": {"bash", "--posix"}} {
		t.Run(name, func(t *testing.T) {
			path, err := exec.LookPath(words[0])
			if err != nil {
				t.Skip("not installed here")
			}
			words[0] = path
			s := redisserver.Start(t, "redis-7.0", volume, redisserver.WithShell(words...))
			s.Do(operator, "REPLICAOF", "NO", "ONE")
			set(s, "a")
			for range 5 { // Within one second: the clock of -nt is too coarse for some shells.
				if code := s.Terminate(t); code != 0 {
					t.Fatalf("it ends with %d", code)
				}
				s.Run(t)
				expectInfo(t, s, "after a graceful end", map[string]string{"aof_enabled": "0"})
				appendOnlyOn(t, s)
			}
			killServer(t, s)
			if code := s.Wait(t); code != exitKilled {
				t.Errorf("it ends with %d, want %d", code, exitKilled)
			}
			s.Run(t)
			expectInfo(t, s, "after a crash", map[string]string{"aof_enabled": "1"})
			s.Signal(syscall.SIGINT)
			if code := s.Wait(t); code != 0 {
				t.Errorf("after SIGINT it ends with %d", code)
			}
			s.Run(t)
			expectInfo(t, s, "after SIGINT", map[string]string{"aof_enabled": "0"})
		})
	}
}
