package conf_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"seang.org/operator/internal/certificate"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/conf"
	"seang.org/operator/internal/testkit/authority"
	"seang.org/operator/internal/testkit/redisserver"
)

func TestWhatAPodMountsIsReadBack(t *testing.T) {
	want := conf.TLS{Pair: authority.New(t, "ca").Issue(), Clients: "optional"}
	files := want.Files()
	got, whole := conf.ParseTLS(files)
	if diff := cmp.Diff(want, got); diff != "" || !whole {
		t.Errorf("whole: %t (-want +got):\n%s", whole, diff)
	}
	for name := range files {
		t.Run("without "+name, func(t *testing.T) {
			fewer := want.Files()
			delete(fewer, name)
			if _, whole := conf.ParseTLS(fewer); whole {
				t.Error("it is taken to be whole")
			}
			fewer[name] = []byte("damaged")
			if _, whole := conf.ParseTLS(fewer); whole {
				t.Error("with another content, it is taken to be whole")
			}
		})
	}
}

func TestTheHashIsOfAllThatAMemberHas(t *testing.T) {
	ca := authority.New(t, "ca")
	first := conf.TLS{Pair: ca.Issue(), Clients: "no"}
	seen := map[string]bool{first.Hash(): true, conf.TLS{}.Hash(): true}
	for _, other := range []conf.TLS{
		{Pair: first.Pair, Clients: "yes"},
		{Pair: ca.Issue(), Clients: "no"},
		{Pair: certificate.Pair{Certificate: first.Pair.Certificate, Key: first.Pair.Key, CA: authority.New(t, "other").PEM()}, Clients: "no"},
	} {
		if seen[other.Hash()] {
			t.Errorf("%d: the hash is that of another", len(seen))
		}
		seen[other.Hash()] = true
	}
}

// TestAServerWithoutItsCertificateEnds: where the port without TLS is closed, it never
// listens without.
func TestAServerWithoutItsCertificateEnds(t *testing.T) {
	redisserver.Each(t, func(t *testing.T, flavour string) {
		s := redisserver.Start(t, flavour, conf.Input{MemoryLimit: 64 << 20})
		text, err := conf.Render(conf.Input{MemoryLimit: 64 << 20, Secure: true})
		if err != nil {
			t.Fatal(err)
		}
		if code := s.RunToEnd(t, text); code == 0 {
			t.Errorf("it ends with code %d:\n%s", code, s.Log())
		}
	})
}

func TestDirectivesOfTLSNameTheFieldToUse(t *testing.T) {
	if field, owned := conf.Owned("tls-cert-file"); !owned || field != "tls" {
		t.Errorf("owned: %t, field %q", owned, field)
	}
	if _, owned := conf.Owned(naming.VolumeTLS); owned {
		t.Error("a directive of another name is owned")
	}
}
