package admin_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis"
	"seang.org/operator/internal/redis/admin"
	"seang.org/operator/internal/redis/conf"
	"seang.org/operator/internal/testkit/redisserver"
)

// members are servers with a connection to each; the first is primary, and the
// others are in sync with it.
func members(t *testing.T, flavour string, n int) ([]*redisserver.Server, []*admin.Member) {
	t.Helper()
	pool := admin.NewPool(func(admin.Key) {})
	t.Cleanup(pool.Close)
	var servers []*redisserver.Server
	var connected []*admin.Member
	for range n {
		s := redisserver.Start(t, flavour, memory)
		servers, connected = append(servers, s), append(connected, connect(t, pool, s))
	}
	if err := connected[0].Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for _, m := range connected[1:] {
		if err := m.Follow(t.Context(), servers[0].IP, false); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "every replica is in sync", func() bool {
		if err := connected[0].RequestAcks(t.Context()); err != nil {
			t.Fatal(err)
		}
		i := info(t, connected[0])
		return !slices.ContainsFunc(servers[1:], func(s *redisserver.Server) bool {
			seen := i.Replica(s.IP)
			return seen == nil || seen.State != redis.ReplicaOnline || seen.Offset < 1
		})
	})
	if n > 1 {
		t.Logf("%d replicas in sync %s after the first was told to follow", n-1, time.Since(began).Round(time.Millisecond))
	}
	return servers, connected
}

func TestAConnectionIsOneSocketAndIsNotOpenedAgain(t *testing.T) {
	redisserver.Each(t, func(t *testing.T, flavour string) {
		servers, connected := members(t, flavour, 1)
		var group sync.WaitGroup
		for range 50 {
			group.Go(func() {
				if _, err := connected[0].Info(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		list := servers[0].Do(naming.UserOperator, "CLIENT", "LIST")
		if got := strings.Count(list, "name=redis-operator"); got != 1 {
			t.Errorf("the operator has %d connections, want 1:\n%s", got, list)
		}
		servers[0].Kill()
		servers[0].Run(t)
		if _, err := connected[0].Info(t.Context()); !errors.Is(err, admin.ErrUnreachable) {
			t.Errorf("a broken connection gives %v, want ErrUnreachable", err)
		}
		if list := servers[0].Do(naming.UserOperator, "CLIENT", "LIST"); strings.Contains(list, "name=redis-operator") {
			t.Errorf("it was opened again:\n%s", list)
		}
	})
}

func TestARestartedProcessIsAnotherOne(t *testing.T) {
	pool := admin.NewPool(func(admin.Key) {})
	t.Cleanup(pool.Close)
	s := redisserver.Start(t, "redis-7.0", memory)
	before := connect(t, pool, s)
	if again := connect(t, pool, s); again != before {
		t.Error("a living connection is opened twice")
	}
	s.Run(t)
	eventually(t, "the pool has a new connection", func() bool {
		m, err := pool.Connect(t.Context(), target(s))
		return err == nil && m != before && m.RunID() != before.RunID()
	})
}

// Safety rule 6, the planned move: no write that was acknowledged is missing.
func TestASwitchoverUnderWritesLosesNothing(t *testing.T) {
	redisserver.Each(t, func(t *testing.T, flavour string) {
		servers, connected := members(t, flavour, 2)
		from, to := connected[0], connected[1]
		w := startWriter(t, servers[0].IP)
		w.reached(t, 200)
		if err := from.PauseWrites(t.Context(), 2*time.Second); err != nil {
			t.Fatal(err)
		}
		// A demotion drops what was not sent yet, and the target cannot ask for
		// it: the old primary has no link to serve it from.
		eventually(t, "the target reaches the paused primary", func() bool { return info(t, to).Offset >= info(t, from).Offset })
		demoted, err := from.DemoteAndRead(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if demoted.Role != redis.RoleReplica || demoted.LinkUp {
			t.Errorf("it says %+v", demoted)
		}
		if err := from.Unpause(t.Context()); err != nil {
			t.Fatal(err)
		}
		if reached := info(t, to).Offset; reached < demoted.Offset {
			t.Fatalf("the target is at %d, the old primary at %d", reached, demoted.Offset)
		}
		if err := to.Promote(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := from.Follow(t.Context(), servers[1].IP, false); err != nil {
			t.Fatal(err)
		}
		acknowledged := w.stop()
		eventually(t, "the old primary follows", func() bool { return info(t, from).LinkUp })
		if got := info(t, from).Offset; got < demoted.Offset {
			t.Errorf("the old primary went back from offset %d to %d", demoted.Offset, got)
		}
		if info := info(t, to); info.SecondaryID != demoted.ReplicationID {
			t.Errorf("the new primary does not continue history %s: %+v", demoted.ReplicationID, info)
		}
		if keys := info(t, to).Keys; keys < acknowledged {
			t.Errorf("%d writes were acknowledged, %d are there", acknowledged, keys)
		}
		if stats := servers[1].Do(naming.UserOperator, "INFO", "stats"); !strings.Contains(stats, "sync_full:0") {
			t.Errorf("the move cost a full resync:\n%s", stats)
		}
	})
}

func TestDemoteAndReadSaysWhyItFailed(t *testing.T) {
	_, connected := members(t, "redis-7.0", 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := connected[0].DemoteAndRead(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that the context ended", err)
	}
}

func TestANewLeaderCutsTheConnectionsOfTheOld(t *testing.T) {
	redisserver.Each(t, func(t *testing.T, flavour string) {
		servers, _ := members(t, flavour, 1)
		lost := make(chan admin.Key, 1)
		old := admin.NewPool(func(key admin.Key) { lost <- key })
		t.Cleanup(old.Close)
		connect(t, old, servers[0])
		next := admin.NewPool(func(admin.Key) {})
		t.Cleanup(next.Close)
		member := connect(t, next, servers[0])
		select {
		case <-lost:
		case <-time.After(10 * time.Second):
			t.Fatal("the other connection stays")
		}
		old.Leads = func(context.Context) error { return errors.New("the Lease is held by another") }
		if _, err := old.Connect(t.Context(), target(servers[0])); !errors.Is(err, admin.ErrNotLeading) {
			t.Errorf("one that does not lead connects: %v", err)
		}
		info(t, member)
	})
}

func TestAnErrorShowsNoSecret(t *testing.T) {
	servers, connected := members(t, "redis-7.0", 1)
	err := connected[0].SetUsers(t.Context(), []conf.User{{Name: naming.UserDefault, Hashes: []string{"no-hash-at-all"}}}, nil)
	if !admin.IsRefusal(err) || strings.Contains(err.Error(), "no-hash") {
		t.Errorf("got %v, want a refusal without the hash", err)
	}
	wrong := target(servers[0])
	wrong.Credentials.Password = "a-password-that-is-wrong"
	pool := admin.NewPool(func(admin.Key) {})
	if _, err := pool.Connect(t.Context(), wrong); err == nil || strings.Contains(err.Error(), "that-is-wrong") {
		t.Errorf("got %v, want an error without the password", err)
	}
}

func TestConfigSetNamesWhatRedisRefusesAndSetsNothing(t *testing.T) {
	redisserver.Each(t, func(t *testing.T, flavour string) {
		_, connected := members(t, flavour, 1)
		for name, change := range map[string]map[string]string{
			"io-threads": {"hz": "20", "io-threads": "4"}, "maxmemory-policy": {"hz": "20", "maxmemory-policy": "none"}, "no-such": {"hz": "20", "no-such": "1"},
		} {
			if flavour == "valkey-8.1" && name == "io-threads" {
				continue
			}
			if err := connected[0].ConfigSet(t.Context(), change); !admin.IsRefusal(err) || !strings.Contains(err.Error(), name) {
				t.Errorf("got %v, want a refusal that names %s", err, name)
			}
		}
		have, err := connected[0].ConfigGet(t.Context(), "hz", "no-such", "appendonly")
		if err != nil || have["hz"] != "10" || have["appendonly"] != "no" || len(have) != 2 {
			t.Errorf("got %v, %v", have, err)
		}
	})
}

func TestALoadingMemberAnswersThatItLoads(t *testing.T) {
	redisserver.Each(t, func(t *testing.T, flavour string) {
		s := redisserver.Start(t, flavour, conf.Input{MemoryLimit: 128 << 20, Persistence: true})
		s.Do(naming.UserOperator, "REPLICAOF", "NO", "ONE")
		s.Do(naming.UserDefault, "EVAL", "for i = 1, 30000 do redis.call('SET', i, i) end", "0")
		s.Kill()
		// Redis looks at its connections after each 1,024 commands that it loads.
		s.Run(t, redisserver.WithLines("key-load-delay 100"), redisserver.WhileLoading())
		pool := admin.NewPool(func(admin.Key) {})
		t.Cleanup(pool.Close)
		if i := info(t, connect(t, pool, s)); !i.Loading || i.Role != redis.RoleReplica {
			t.Errorf("it says %+v, want that it loads", i)
		}
	})
}

func TestAFrozenProcessIsNoProof(t *testing.T) {
	s := redisserver.Start(t, "redis-7.0", memory)
	s.Signal(syscall.SIGSTOP)
	pool := admin.NewPool(func(admin.Key) {})
	began := time.Now()
	_, err := pool.Connect(t.Context(), target(s))
	if !errors.Is(err, admin.ErrUnreachable) || errors.Is(err, admin.ErrRefused) {
		t.Errorf("got %v, want ErrUnreachable", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
}

// writer sets one key after the other as an application, and counts the replies.
type writer struct {
	cancel context.CancelFunc
	done   chan struct{}
	mu     sync.Mutex
	good   int64
}

func startWriter(t *testing.T, ip string) *writer {
	t.Helper()
	conn, err := net.Dial("tcp", admin.Address(ip, false))
	if err != nil {
		t.Fatal(err)
	}
	w := &writer{cancel: func() { _ = conn.Close() }, done: make(chan struct{})}
	reply := make([]byte, 512)
	send := func(command string) string {
		if _, err := conn.Write([]byte(command + "\r\n")); err != nil {
			return err.Error()
		}
		n, _ := conn.Read(reply)
		return string(reply[:n])
	}
	if got := send("AUTH " + redisserver.Passwords.Default); got != "+OK\r\n" {
		t.Fatalf("AUTH gives %q", got)
	}
	go func() {
		defer close(w.done)
		for n := 0; send(fmt.Sprintf("SET key-%d x", n)) == "+OK\r\n"; n++ {
			w.mu.Lock()
			w.good++
			w.mu.Unlock()
		}
	}()
	return w
}

// reached waits for n acknowledged writes.
func (w *writer) reached(t *testing.T, n int64) {
	t.Helper()
	eventually(t, "the writer writes", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.good >= n
	})
}

// stop ends the writer and returns how many writes were acknowledged.
func (w *writer) stop() int64 {
	w.cancel()
	<-w.done
	return w.good
}

func TestServingIsKnownToTheNextOperator(t *testing.T) {
	servers, connected := members(t, "redis-7.0", 2)
	if connected[1].Serving() {
		t.Error("a member serves from its start")
	}
	if err := connected[1].Serve(t.Context()); err != nil || !connected[1].Serving() {
		t.Errorf("serving is %t, %v", connected[1].Serving(), err)
	}
	next := admin.NewPool(func(admin.Key) {})
	t.Cleanup(next.Close)
	if !connect(t, next, servers[1]).Serving() {
		t.Error("a new connection does not know that it serves")
	}
}

// Safety rule 9: what a member had is saved in a file of its own, which the copy of
// another history does not overwrite, and later snapshots go to their own file.
func TestWhatAMemberHadIsKeptAside(t *testing.T) {
	redisserver.Each(t, func(t *testing.T, flavour string) {
		servers, _ := members(t, flavour, 1)
		pool := admin.NewPool(func(admin.Key) {})
		t.Cleanup(pool.Close)
		s := redisserver.Start(t, flavour, conf.Input{MemoryLimit: 128 << 20, Persistence: true, Directives: map[string]string{"appendfsync": "always"}})
		s.Do(naming.UserOperator, "REPLICAOF", "NO", "ONE")
		s.Do(naming.UserDefault, "SET", "only", "here")
		s.Kill()
		s.Run(t)
		m := connect(t, pool, s)
		if err := m.KeepAside(t.Context()); err != nil {
			t.Fatal(err)
		}
		aside := filepath.Join(s.Data, naming.FileAside)
		eventually(t, "it is saved", func() bool { return !info(t, m).Saving })
		before, err := os.ReadFile(aside)
		if err != nil || !strings.Contains(string(before), "only") {
			t.Fatalf("%q, %v", before, err)
		}
		// Another operator finds it so.
		m = connect(t, admin.NewPool(func(admin.Key) {}), s)
		if err := m.Follow(t.Context(), servers[0].IP, false); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it follows", func() bool { i := info(t, m); return i.LinkUp && i.Keys == 0 })
		if m.Serving() {
			t.Error("it serves what it may not have in full")
		}
		after, err := os.ReadFile(aside)
		if err != nil || !bytes.Equal(before, after) {
			t.Errorf("it changed: %v", err)
		}
		if got := s.Do(naming.UserOperator, "CONFIG", "GET", "dbfilename"); !strings.HasSuffix(got, naming.FileSnapshot) {
			t.Errorf("snapshots go to %q", got)
		}
	})
}
