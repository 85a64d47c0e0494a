package certificate_test

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"seang.org/operator/internal/certificate"
	"seang.org/operator/internal/testkit/authority"
)

var hosts = []string{"cache-primary.shop.svc", "cache-replicas.shop.svc", "cache-0.cache-nodes.shop.svc", "cache-1.cache-nodes.shop.svc"}

// names cover the hosts with a wildcard.
var names = []string{"cache-primary.shop.svc", "cache-replicas.shop.svc", "*.cache-nodes.shop.svc"}

func TestWhatIsWrongWithACertificateIsSaid(t *testing.T) {
	now := time.Now()
	ca, other := authority.New(t, "ca"), authority.New(t, "other")
	between := ca.Below("between")
	covering := authority.Hosts(names...)
	good := ca.Issue(covering)
	encrypted := pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte("x")})
	with := func(pair certificate.Pair, change func(*certificate.Pair)) certificate.Pair {
		change(&pair)
		return pair
	}
	for name, c := range map[string]struct {
		pair   certificate.Pair
		client bool
		want   string // empty if nothing is wrong
	}{
		"a good one":                           {pair: good, client: true},
		"each name by itself":                  {pair: ca.Issue(authority.Hosts(hosts...))},
		"with a chain":                         {pair: between.Issue(covering)},
		"an RSA key":                           {pair: ca.IssueRSA(2048, covering)},
		"for servers, where clients show none": {pair: ca.Issue(covering, authority.For(x509.ExtKeyUsageServerAuth))},
		"the CA that issued it beside the root": {pair: with(between.Issue(covering), func(p *certificate.Pair) {
			p.Certificate, p.CA = firstBlock(p.Certificate), append(p.CA, between.PEM()...)
		})},

		"nothing":                   {want: `the key "tls.crt" is missing`},
		"without a key":             {pair: with(good, func(p *certificate.Pair) { p.Key = nil }), want: `the key "tls.key" is missing`},
		"without a CA":              {pair: with(good, func(p *certificate.Pair) { p.CA = nil }), want: `the key "ca.crt" is missing`},
		"far too large":             {pair: with(good, func(p *certificate.Pair) { p.CA = bytes.Repeat(p.CA, 1000) }), want: "bytes, and may have"},
		"text":                      {pair: with(good, func(p *certificate.Pair) { p.Certificate = []byte("hello") }), want: "no certificate in PEM form"},
		"binary":                    {pair: with(good, func(p *certificate.Pair) { p.Certificate = []byte{0, 1, 2} }), want: "no certificate in PEM form"},
		"a broken certificate":      {pair: with(good, func(p *certificate.Pair) { p.Certificate = block("CERTIFICATE", []byte("x")) }), want: "cannot be read"},
		"a key as certificate":      {pair: with(good, func(p *certificate.Pair) { p.Certificate = p.Key }), want: "may have certificates only"},
		"a CA of text":              {pair: with(good, func(p *certificate.Pair) { p.CA = []byte("hello") }), want: `"ca.crt" has no certificate`},
		"a key of text":             {pair: with(good, func(p *certificate.Pair) { p.Key = []byte("hello") }), want: "no private key in PEM form"},
		"an encrypted key":          {pair: with(good, func(p *certificate.Pair) { p.Key = encrypted }), want: "encrypted: store it without a passphrase"},
		"another's key":             {pair: with(good, func(p *certificate.Pair) { p.Key = ca.Issue().Key }), want: "cannot be used with the certificate"},
		"a short RSA key":           {pair: ca.IssueRSA(1024, covering), want: "1024 bits, and must have 2048"},
		"expired":                   {pair: ca.Issue(covering, authority.Between(now.Add(-2*time.Hour), now.Add(-time.Hour))), want: "the certificate expired at 20"},
		"not valid yet":             {pair: ca.Issue(covering, authority.Between(now.Add(time.Hour), now.Add(2*time.Hour))), want: "is not valid before 20"},
		"another's CA":              {pair: with(good, func(p *certificate.Pair) { p.CA = other.PEM() }), want: "is not verified by"},
		"without the chain between": {pair: with(between.Issue(covering), func(p *certificate.Pair) { p.Certificate = firstBlock(p.Certificate) }), want: "is not verified by"},
		"only the CA between":       {pair: with(between.Issue(covering), func(p *certificate.Pair) { p.CA = between.PEM() }), want: "has no root CA"},
		"no names":                  {pair: ca.Issue(), want: "does not cover the host names cache-primary.shop.svc, cache-replicas.shop.svc, cache-0.cache-nodes"},
		"no names of pods":          {pair: ca.Issue(authority.Hosts(names[:2]...)), want: "the host names cache-0.cache-nodes.shop.svc, cache-1"},
		"another namespace":         {pair: ca.Issue(authority.Hosts("cache-primary.other.svc")), want: "does not cover"},
		"for clients":               {pair: ca.Issue(covering, authority.For(x509.ExtKeyUsageClientAuth)), want: "must be for server authentication"},
		"for servers, where clients show one": {pair: ca.Issue(covering, authority.For(x509.ExtKeyUsageServerAuth)), client: true,
			want: "must be for client authentication"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.pair.Check(certificate.Use{Hosts: hosts, Client: c.client, Now: now})
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("it says %v, want %q", err, c.want)
			}
		})
	}
}

func TestAPersonHearsOfACertificateThatWasNotRenewed(t *testing.T) {
	day, now := 24*time.Hour, time.Now().Truncate(time.Second)
	for name, c := range map[string]struct{ life, before time.Duration }{
		"a year":      {365 * day, 30 * day},
		"ninety days": {90 * day, 90 * day / 4},
		"an hour":     {time.Hour, 15 * time.Minute},
	} {
		leaf := authority.New(t, "ca").Issue(authority.Between(now, now.Add(c.life))).Leaf()
		if got := leaf.NotAfter.Sub(certificate.WarnAt(leaf)); got != c.before {
			t.Errorf("%s: %s before the end, want %s", name, got, c.before)
		}
	}
}

func TestNoMemberMeetsACertificateWhoseCAItDoesNotTrust(t *testing.T) {
	first, second := authority.New(t, "first"), authority.New(t, "second")
	old, renewed, moved := first.Issue(), first.Issue(), second.Issue()
	for name, c := range map[string]struct {
		from, to certificate.Pair
		steps    int
	}{
		"the first one":              {certificate.Pair{}, old, 1},
		"nothing to do":              {old, old, 0},
		"a renewal":                  {old, renewed, 1},
		"another CA":                 {old, moved, 3},
		"a CA more":                  {old, certificate.Pair{Certificate: old.Certificate, Key: old.Key, CA: append(bytes.Clone(old.CA), moved.CA...)}, 1},
		"a CA less, and one instead": {certificate.Pair{Certificate: old.Certificate, Key: old.Key, CA: append(bytes.Clone(old.CA), moved.CA...)}, moved, 2},
	} {
		t.Run(name, func(t *testing.T) {
			present, steps := c.from, 0
			for ; steps < 10; steps++ {
				if !present.Empty() {
					waiting := certificate.Next(present, c.to, false, true)
					if !bytes.Equal(waiting.Certificate, present.Certificate) {
						t.Fatal("the certificate changes before every member has what comes before")
					}
				}
				next := certificate.Next(present, c.to, true, true)
				if same(next, present) {
					break
				}
				if !present.Empty() {
					meets(t, present, next)
					meets(t, next, present)
				}
				present = next
			}
			if steps != c.steps || !same(present, c.to) {
				t.Errorf("%d steps, want %d; there: %t", steps, c.steps, same(present, c.to))
			}
		})
	}
}

func TestApplicationsAreToldOfAnotherCAFirst(t *testing.T) {
	first, second := authority.New(t, "first"), authority.New(t, "second")
	old, renewed, moved := first.Issue(), first.Issue(), second.Issue()
	if next := certificate.Next(old, renewed, true, false); !same(next, renewed) {
		t.Error("a renewal waits for applications, which trust its CA already")
	}
	both := certificate.Next(old, moved, true, false)
	if same(both, old) {
		t.Fatal("applications are not told of the other CA")
	}
	if next := certificate.Next(both, moved, true, false); !same(next, both) {
		t.Error("the certificate changes before applications know its CA")
	}
	shown := certificate.Next(both, moved, true, true)
	if next := certificate.Next(shown, moved, true, false); !same(next, shown) {
		t.Error("the old CA goes before applications show certificates of the new one")
	}
}

// meets fails the test if one that has the pair a does not trust one that has b.
func meets(t *testing.T, a, b certificate.Pair) {
	t.Helper()
	if _, err := b.Leaf().Verify(x509.VerifyOptions{Roots: a.Roots()}); err != nil {
		t.Error(err)
	}
}

func same(a, b certificate.Pair) bool {
	return bytes.Equal(a.Certificate, b.Certificate) && bytes.Equal(a.Key, b.Key) && bytes.Equal(a.CA, b.CA)
}

func firstBlock(text []byte) []byte {
	one, _ := pem.Decode(text)
	return pem.EncodeToMemory(one)
}

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
