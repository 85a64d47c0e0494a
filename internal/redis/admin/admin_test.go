package admin_test

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis"
	"seang.org/operator/internal/redis/admin"
	"seang.org/operator/internal/redis/conf"
	"seang.org/operator/internal/testkit/redisserver"
)

var memory = conf.Input{MemoryLimit: 128 << 20}

func operator() admin.Credentials {
	return admin.Credentials{User: naming.UserOperator, Password: redisserver.Passwords.Operator}
}

func target(s *redisserver.Server) admin.Target {
	return admin.Target{Key: admin.Key{Namespace: "test", Pod: s.IP, UID: s.IP}, Address: s.Address(), Credentials: operator()}
}

func connect(t *testing.T, pool *admin.Pool, s *redisserver.Server) *admin.Member {
	t.Helper()
	m, err := pool.Connect(t.Context(), target(s))
	if err != nil {
		t.Fatalf("connect to %s: %v", s.IP, err)
	}
	return m
}

func info(t *testing.T, m *admin.Member) redis.Info {
	t.Helper()
	i, err := m.Info(t.Context())
	if err != nil {
		t.Fatalf("INFO: %v", err)
	}
	return i
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("did not happen in 20 s: %s", what)
}

func TestAMemberBootsWithoutARoleAndTakesTheOneItIsGiven(t *testing.T) {
	for _, flavour := range redisserver.Flavours {
		t.Run(flavour, func(t *testing.T) {
			t.Parallel()
			pool := admin.NewPool(func(admin.Key) {})
			t.Cleanup(pool.Close)
			a, b := redisserver.Start(t, flavour, memory), redisserver.Start(t, flavour, memory)
			ma, mb := connect(t, pool, a), connect(t, pool, b)
			if i := info(t, ma); i.Role != redis.RoleReplica || i.LinkUp || i.PrimaryHost != "127.0.0.1" || i.Keys != 0 {
				t.Fatalf("boot state: %+v", i)
			}
			if err := ma.Promote(t.Context()); err != nil {
				t.Fatalf("promote: %v", err)
			}
			if err := mb.Follow(t.Context(), a.IP, false); err != nil {
				t.Fatalf("follow: %v", err)
			}
			eventually(t, "the replica is in sync in the primary's word", func() bool {
				if err := ma.RequestAcks(t.Context()); err != nil {
					t.Fatalf("WAIT: %v", err)
				}
				i := info(t, ma)
				seen := i.Replica(b.IP)
				return seen != nil && seen.State == redis.ReplicaOnline && seen.Offset > 0
			})
			demoted, err := ma.DemoteAndRead(t.Context())
			if err != nil {
				t.Fatalf("demote: %v", err)
			}
			if demoted.Role != redis.RoleReplica || demoted.Offset == 0 {
				t.Fatalf("the transaction reported %+v", demoted)
			}
			if err := errors.Join(ma.ConfigSet(t.Context(), conf.Memory(128<<20, false)), ma.SetMinReplicas(t.Context(), 1, 2),
				ma.PauseWrites(t.Context(), time.Second), ma.Unpause(t.Context()), ma.KillNormalClients(t.Context()),
				ma.ConfigSet(t.Context(), map[string]string{"replica-serve-stale-data": "yes"}),
				ma.SetUsers(t.Context(), redisserver.Passwords.Users(), nil)); err != nil {
				t.Fatalf("the operator's rights do not suffice: %v", err)
			}
			if i := info(t, ma); i.MinReplicas != 1 || i.MaxMemory != conf.MaxMemory(128<<20, false) {
				t.Fatalf("not in force: %+v", i)
			}
		})
	}
}

func TestTheDeathOfAMemberIsToldAtOnce(t *testing.T) {
	told := make(chan admin.Key, 8)
	pool := admin.NewPool(func(key admin.Key) { told <- key })
	t.Cleanup(pool.Close)
	s := redisserver.Start(t, "redis-7.0", memory)
	connect(t, pool, s)
	killed := time.Now()
	s.Signal(syscall.SIGKILL)
	select {
	case key := <-told:
		t.Logf("told after %s", time.Since(killed))
		if key.Pod != s.IP {
			t.Fatalf("told of %v", key)
		}
	case <-time.After(time.Second):
		t.Fatal("not told within a second")
	}
	s.Kill()
	if _, err := pool.Connect(t.Context(), target(s)); !errors.Is(err, admin.ErrRefused) {
		t.Fatalf("a dial of a dead member gives %v, want ErrRefused", err)
	}
}

func TestAHungMemberIsGivenUp(t *testing.T) {
	told := make(chan admin.Key, 8)
	pool := admin.NewPool(func(key admin.Key) { told <- key })
	t.Cleanup(pool.Close)
	s := redisserver.Start(t, "redis-7.0", memory)
	m := connect(t, pool, s)
	s.Signal(syscall.SIGSTOP)
	t.Cleanup(func() { s.Signal(syscall.SIGCONT) })
	select {
	case <-told:
	case <-time.After(10 * time.Second):
		t.Fatal("not told within 10 s")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if _, err := m.Info(ctx); !errors.Is(err, admin.ErrUnreachable) {
		t.Fatalf("a command on the connection gives %v, want ErrUnreachable", err)
	}
}

func TestAChangeOfTheReplicationStateIsTold(t *testing.T) {
	told := make(chan admin.Key, 8)
	pool := admin.NewPool(func(key admin.Key) { told <- key })
	t.Cleanup(pool.Close)
	a, b := redisserver.Start(t, "redis-7.0", memory), redisserver.Start(t, "redis-7.0", memory)
	ma, mb := connect(t, pool, a), connect(t, pool, b)
	if err := errors.Join(ma.Promote(t.Context()), mb.Follow(t.Context(), a.IP, false)); err != nil {
		t.Fatal(err)
	}
	select {
	case <-told:
	case <-time.After(10 * time.Second):
		t.Fatal("not told within 10 s")
	}
}

func TestAWrongPasswordIsAnErrorOfItsOwnAndIsNotRepeated(t *testing.T) {
	pool := admin.NewPool(func(admin.Key) {})
	t.Cleanup(pool.Close)
	s := redisserver.Start(t, "redis-7.0", memory)
	wrong := target(s)
	wrong.Credentials.Password = "a-password-that-is-wrong"
	_, err := pool.Connect(t.Context(), wrong)
	if !errors.Is(err, admin.ErrAuth) {
		t.Fatalf("got %v, want ErrAuth", err)
	}
	if contains := errors.Is(err, admin.ErrRefused); contains {
		t.Fatalf("a wrong password must not be a proof of death: %v", err)
	}
}
