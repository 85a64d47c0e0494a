// Package authority makes CAs and certificates for tests.
package authority

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"seang.org/operator/internal/certificate"
)

// Authority is a CA.
type Authority struct {
	t     testing.TB
	own   *x509.Certificate
	key   crypto.Signer
	above *Authority
}

// New makes a CA that signs itself.
func New(t testing.TB, name string) *Authority {
	t.Helper()
	a := &Authority{t: t, key: ecKey(t)}
	a.own = sign(t, template(name, isCA), nil, a.key, a.key)
	return a
}

// Below makes a CA that is signed by this one.
func (a *Authority) Below(name string) *Authority {
	b := &Authority{t: a.t, key: ecKey(a.t), above: a}
	b.own = sign(a.t, template(name, isCA), a.own, b.key, a.key)
	return b
}

// PEM is the CA's own certificate.
func (a *Authority) PEM() []byte { return encode("CERTIFICATE", a.own.Raw) }

// Change changes a certificate before it is signed.
type Change func(*x509.Certificate)

func isCA(c *x509.Certificate) {
	c.IsCA, c.BasicConstraintsValid = true, true
	c.KeyUsage = x509.KeyUsageCertSign
	c.ExtKeyUsage = nil
}

// Hosts are the names that a certificate covers.
func Hosts(names ...string) Change { return func(c *x509.Certificate) { c.DNSNames = names } }

// Between is when it is valid.
func Between(from, to time.Time) Change {
	return func(c *x509.Certificate) { c.NotBefore, c.NotAfter = from, to }
}

// For is what it is for.
func For(usages ...x509.ExtKeyUsage) Change {
	return func(c *x509.Certificate) { c.ExtKeyUsage = usages }
}

// Issue makes a certificate of servers and of clients, with the chain up to the CA
// that signed itself, which alone is trusted.
func (a *Authority) Issue(changes ...Change) certificate.Pair {
	a.t.Helper()
	return a.IssueFor(ecKey(a.t), changes...)
}

// IssueRSA is Issue with an RSA key of a size.
func (a *Authority) IssueRSA(bits int, changes ...Change) certificate.Pair {
	a.t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		a.t.Fatal(err)
	}
	return a.IssueFor(key, changes...)
}

// IssueFor is Issue for a key.
func (a *Authority) IssueFor(key crypto.Signer, changes ...Change) certificate.Pair {
	a.t.Helper()
	leaf := sign(a.t, template("test", changes...), a.own, key, a.key)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	pair := certificate.Pair{Certificate: encode("CERTIFICATE", leaf.Raw), Key: encode("PRIVATE KEY", der)}
	top := a
	for ; top.above != nil; top = top.above {
		pair.Certificate = append(pair.Certificate, top.PEM()...)
	}
	pair.CA = top.PEM()
	return pair
}

// Client is how a program that trusts the pair's CA and shows its certificate connects
// to a host.
func Client(t testing.TB, pair certificate.Pair, host string) *tls.Config {
	t.Helper()
	own, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{ServerName: host, RootCAs: pair.Roots(), MinVersion: tls.VersionTLS12,
		// Also where the server would not take it.
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &own, nil }}
}

func template(name string, changes ...Change) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	c := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(90 * 24 * time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, change := range changes {
		change(c)
	}
	return c
}

// sign signs for a key; by itself where there is no parent.
func sign(t testing.TB, template, parent *x509.Certificate, of, by crypto.Signer) *x509.Certificate {
	t.Helper()
	if parent == nil {
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, of.Public(), by)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func ecKey(t testing.TB) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
