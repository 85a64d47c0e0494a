package admin_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"seang.org/operator/internal/certificate"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis"
	"seang.org/operator/internal/redis/admin"
	"seang.org/operator/internal/redis/conf"
	"seang.org/operator/internal/testkit/authority"
	"seang.org/operator/internal/testkit/redisserver"
)

const host = "cache-0.cache-nodes.test.svc"

// secured starts a server that serves TLS.
func secured(t *testing.T, flavour string, pair certificate.Pair, clients string) *redisserver.Server {
	t.Helper()
	text, err := conf.Render(memory)
	if err != nil {
		t.Fatal(err)
	}
	return redisserver.StartFiles(t, flavour, redisserver.Files{Conf: text, ACL: conf.RenderACL(redisserver.Passwords.Users()),
		Replication: conf.ReplicationInclude(naming.UserReplication, redisserver.Passwords.Replication), TLS: conf.TLS{Pair: pair, Clients: clients}.Files()})
}

// proven is how the operator connects that gave the pair to the member.
func proven(t *testing.T, s *redisserver.Server, pair certificate.Pair, host string) admin.Target {
	t.Helper()
	client, err := pair.Client(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	target := target(s)
	target.Address, target.TLS = admin.Address(s.IP, true), client(host)
	return target
}

func TestAMemberMustProveWhoItIs(t *testing.T) {
	redisserver.Each(t, func(t *testing.T, flavour string) {
		ca := authority.New(t, "ca")
		now := time.Now()
		for name, c := range map[string]struct {
			served, trusted certificate.Pair
			host            string
			want            error
		}{
			"its CA and its name":     {served: ca.Issue(authority.Hosts(host)), host: host},
			"expired: it is replaced": {served: ca.Issue(authority.Hosts(host), authority.Between(now.Add(-time.Minute), now.Add(-time.Second))), host: host},
			"another name":            {served: ca.Issue(authority.Hosts(host)), host: "cache-1.cache-nodes.test.svc", want: admin.ErrCertificate},
			"another CA":              {served: ca.Issue(authority.Hosts(host)), trusted: authority.New(t, "other").Issue(), host: host, want: admin.ErrCertificate},
		} {
			t.Run(name, func(t *testing.T) {
				s := secured(t, flavour, c.served, "no")
				pool := admin.NewPool(func(admin.Key) {})
				t.Cleanup(pool.Close)
				if c.trusted.Empty() {
					c.trusted = c.served
				}
				if _, err := pool.Connect(t.Context(), proven(t, s, c.trusted, c.host)); !errors.Is(err, c.want) {
					t.Errorf("got %v, want %v", err, c.want)
				}
			})
		}
	})
}

func TestACertificateIsReplacedAndAPortClosedUnderLivingConnections(t *testing.T) {
	redisserver.Each(t, func(t *testing.T, flavour string) {
		ca := authority.New(t, "ca")
		first, second := ca.Issue(authority.Hosts(host)), ca.Issue(authority.Hosts(host))
		s := secured(t, flavour, first, "yes")
		pool := admin.NewPool(func(admin.Key) {})
		t.Cleanup(pool.Close)
		m, err := pool.Connect(t.Context(), proven(t, s, first, host))
		if err != nil {
			t.Fatal(err)
		}
		if !m.Certificate().Equal(first.Leaf()) || !m.Plain() {
			t.Fatalf("certificate %v, plain %t", m.Certificate().SerialNumber, m.Plain())
		}
		wanted := conf.TLS{Pair: second, Clients: "yes"}
		if err := m.SetListening(t.Context(), wanted.Directives(m.CertificateDir())); !admin.IsRefusal(err) {
			t.Errorf("files that are not there: %v, want a refusal", err)
		}
		if shown, err := pool.Handshake(t.Context(), proven(t, s, first, host)); err != nil || !shown.Equal(first.Leaf()) {
			t.Fatalf("after the refusal: %v", err)
		}
		if err := s.Mount(wanted.Files()); err != nil {
			t.Fatal(err)
		}
		if err := m.SetListening(t.Context(), wanted.Directives(m.CertificateDir())); err != nil {
			t.Fatal(err)
		}
		if shown, err := pool.Handshake(t.Context(), proven(t, s, first, host)); err != nil || !shown.Equal(second.Leaf()) {
			t.Fatalf("after the change: %v", err)
		}

		plain := admin.NewPool(func(admin.Key) {})
		t.Cleanup(plain.Close)
		application := target(s)
		application.Address = admin.Address(s.IP, false)
		other, err := plain.Connect(t.Context(), application)
		if err != nil {
			t.Fatal(err)
		}
		// It was the operator's user too, whose other connections it has ended.
		if m, err = pool.Connect(t.Context(), proven(t, s, first, host)); err != nil {
			t.Fatal(err)
		}
		if err := m.ClosePlain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := other.Info(t.Context()); !errors.Is(err, admin.ErrUnreachable) {
			t.Errorf("a connection without TLS lives on: %v", err)
		}
		if _, err := plain.Connect(t.Context(), application); !errors.Is(err, admin.ErrRefused) {
			t.Errorf("the port without TLS: %v", err)
		}
		if err := m.OpenPlain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := plain.Connect(t.Context(), application); err != nil {
			t.Error(err)
		}
	})
}

func TestAReplicaFollowsWithTLSAndWithout(t *testing.T) {
	redisserver.Each(t, func(t *testing.T, flavour string) {
		pair := authority.New(t, "ca").Issue(authority.Hosts(host))
		pool := admin.NewPool(func(admin.Key) {})
		t.Cleanup(pool.Close)
		servers := []*redisserver.Server{secured(t, flavour, pair, "yes"), secured(t, flavour, pair, "yes")}
		var members []*admin.Member
		for _, s := range servers {
			m, err := pool.Connect(t.Context(), proven(t, s, pair, host))
			if err != nil {
				t.Fatal(err)
			}
			members = append(members, m)
		}
		if err := members[0].Promote(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, encrypted := range []bool{true, false, true} {
			if err := members[1].Follow(t.Context(), servers[0].IP, encrypted); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the link is up", func() bool { i := info(t, members[1]); return i.LinkUp && i.PrimaryPort == redis.PortOf(encrypted) })
		}
		// The primary sees the port by which the replica can be reached.
		if text := servers[0].Do(naming.UserOperator, "INFO", "replication"); !strings.Contains(text, "slave0:ip="+servers[1].IP) {
			t.Error(text)
		}
	})
}
