package fakeredis_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis"
	"seang.org/operator/internal/redis/admin"
	"seang.org/operator/internal/redis/conf"
	"seang.org/operator/internal/testkit/fakeredis"
	"seang.org/operator/internal/testkit/redisserver"
)

const limit = 128 << 20

// pair is a primary and a replica that were told so by the operator's own code.
type pair struct{ primary, replica *admin.Member }

func connect(t *testing.T, ip string) *admin.Member {
	t.Helper()
	pool := admin.NewPool(func(admin.Key) {})
	t.Cleanup(pool.Close)
	m, err := pool.Connect(t.Context(), target(ip, redisserver.Passwords.Operator))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func target(ip, password string) admin.Target {
	return admin.Target{Key: admin.Key{Pod: ip}, Address: admin.Address(ip, false),
		Credentials: admin.Credentials{User: naming.UserOperator, Password: password}}
}

// settle makes one member primary and the other its replica, as a pass does.
func settle(t *testing.T, primary, replica string) pair {
	t.Helper()
	p := pair{connect(t, primary), connect(t, replica)}
	for _, err := range []error{
		p.primary.Promote(t.Context()), p.primary.Serve(t.Context()),
		p.replica.Follow(t.Context(), primary, false), p.replica.Serve(t.Context()),
		p.primary.SetUsers(t.Context(), redisserver.Passwords.Users(), nil),
		p.primary.SetMinReplicas(t.Context(), 1, 2), p.primary.ConfigSet(t.Context(), map[string]string{"maxmemory": "67108864"}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	deadline := time.Now().Add(20 * time.Second)
	// A server that sent a copy saves for a moment longer.
	for !info(t, p.replica).LinkUp || len(info(t, p.primary).Replicas) == 0 || info(t, p.primary).Saving {
		if err := p.primary.RequestAcks(t.Context()); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatalf("no link within 20 s: %+v", info(t, p.replica))
		}
	}
	return p
}

func info(t *testing.T, m *admin.Member) redis.Info {
	t.Helper()
	i, err := m.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func fakes(t *testing.T, n int) []string {
	t.Helper()
	fleet := fakeredis.NewFleet()
	t.Cleanup(func() {
		if err := fleet.Close(); err != nil {
			t.Error(err)
		}
	})
	var ips []string
	for range n {
		ip, err := fleet.Boot(conf.RenderACL(redisserver.Passwords.Users()), conf.MaxMemory(limit, false))
		if err != nil {
			t.Fatal(err)
		}
		ips = append(ips, ip)
	}
	return ips
}

func TestAFakeReplicaIsInSyncWithItsPrimary(t *testing.T) {
	ips := fakes(t, 2)
	p := settle(t, ips[0], ips[1])
	primary, replica := info(t, p.primary), info(t, p.replica)
	want := []redis.Replica{{IP: ips[1], State: redis.ReplicaOnline, Offset: 1}}
	if diff := cmp.Diff(want, primary.Replicas); diff != "" {
		t.Errorf("replicas of the primary (-want +got):\n%s", diff)
	}
	if replica.ReplicationID != primary.ReplicationID || replica.PrimaryHost != ips[0] || replica.RunID == primary.RunID {
		t.Errorf("primary %+v\nreplica %+v", primary, replica)
	}
	if primary.MinReplicas != 1 || primary.MaxMemory != 64<<20 {
		t.Errorf("what was set does not show: %+v", primary)
	}
}

func TestAFakeSaysWhatARealServerSays(t *testing.T) {
	var servers []string
	for range 2 {
		servers = append(servers, redisserver.Start(t, "redis-8.0", conf.Input{MemoryLimit: limit}).IP)
	}
	fake := fakes(t, 2)
	// What differs from run to run; a real primary counts its pings as offsets.
	volatile := []cmp.Option{
		cmpopts.IgnoreFields(redis.Info{}, "RunID", "ReplicationID", "SecondaryID", "BranchedAt", "PrimaryHost", "Offset", "UsedMemory", "Version"),
		cmpopts.IgnoreFields(redis.Replica{}, "IP", "Offset", "Lag"),
	}
	if diff := cmp.Diff(info(t, connect(t, servers[0])), info(t, connect(t, fake[0])), volatile...); diff != "" {
		t.Errorf("booted (-real +fake):\n%s", diff)
	}
	r, f := settle(t, servers[0], servers[1]), settle(t, fake[0], fake[1])
	if diff := cmp.Diff(info(t, r.primary), info(t, f.primary), volatile...); diff != "" {
		t.Errorf("primary (-real +fake):\n%s", diff)
	}
	if diff := cmp.Diff(info(t, r.replica), info(t, f.replica), volatile...); diff != "" {
		t.Errorf("replica (-real +fake):\n%s", diff)
	}
}

func TestAFakeRefusesAWrongPassword(t *testing.T) {
	pool := admin.NewPool(func(admin.Key) {})
	t.Cleanup(pool.Close)
	_, err := pool.Connect(t.Context(), target(fakes(t, 1)[0], "wrong"))
	if !errors.Is(err, admin.ErrAuth) {
		t.Errorf("got %v, want ErrAuth", err)
	}
}

func TestTheEndOfAFakeEndsItsConnections(t *testing.T) {
	fleet := fakeredis.NewFleet()
	ip, err := fleet.Boot(conf.RenderACL(redisserver.Passwords.Users()), conf.MaxMemory(limit, false))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan admin.Key, 1)
	pool := admin.NewPool(func(key admin.Key) { ended <- key })
	t.Cleanup(pool.Close)
	if _, err := pool.Connect(t.Context(), target(ip, redisserver.Passwords.Operator)); err != nil {
		t.Fatal(err)
	}
	if err := fleet.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("the connection did not end within 20 s")
	}
}
