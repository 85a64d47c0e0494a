// Package certificate judges the certificates that members are to serve. It is pure:
// it reads no file and no clock.
package certificate

import (
	"bytes"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Keys of a Secret of the type kubernetes.io/tls, as cert-manager writes it.
const (
	KeyCertificate = "tls.crt"
	KeyKey         = "tls.key"
	KeyCA          = "ca.crt"
)

// Limits.
const (
	// maxBytes of each part: two bundles of CAs fit into one Secret.
	maxBytes = 256 << 10
	// minRSABits is what OpenSSL takes at its security level 2, which Debian sets.
	minRSABits = 2048
)

// Pair is a certificate with its chain, its key, and the CAs that are trusted; all PEM.
type Pair struct{ Certificate, Key, CA []byte }

// FromSecret takes the parts from the data of a Secret.
func FromSecret(data map[string][]byte) Pair {
	return Pair{Certificate: data[KeyCertificate], Key: data[KeyKey], CA: data[KeyCA]}
}

// Empty says that there is no certificate.
func (p Pair) Empty() bool { return len(p.Certificate) == 0 }

// Equal says that both have the same parts.
func (p Pair) Equal(other Pair) bool {
	return bytes.Equal(p.Certificate, other.Certificate) && bytes.Equal(p.Key, other.Key) && bytes.Equal(p.CA, other.CA)
}

// Use is what a certificate is for.
type Use struct {
	// Hosts by which members are reached, each of which it must cover.
	Hosts []string
	// Client says that members show it to each other as well.
	Client bool
	// Now is the time at which it must be valid.
	Now time.Time
}

// Check says why the pair cannot be used; nil if it can. No text of it quotes the key.
func (p Pair) Check(use Use) error {
	if err := p.complete(); err != nil {
		return err
	}
	chain, err := parse(KeyCertificate, p.Certificate)
	if err != nil {
		return err
	}
	trusted, err := parse(KeyCA, p.CA)
	if err != nil {
		return err
	}
	if err := p.matches(); err != nil {
		return err
	}
	if err := valid(chain[0], use.Now); err != nil {
		return err
	}
	if err := verify(chain, trusted, use); err != nil {
		return err
	}
	return covers(chain[0], use.Hosts)
}

// complete says which part is missing or too large.
func (p Pair) complete() error {
	for _, part := range []struct {
		key  string
		text []byte
	}{{KeyCertificate, p.Certificate}, {KeyKey, p.Key}, {KeyCA, p.CA}} {
		switch {
		case len(part.text) == 0:
			return fmt.Errorf("the key %q is missing", part.key)
		case len(part.text) > maxBytes:
			return fmt.Errorf("the key %q has %d bytes, and may have %d", part.key, len(part.text), maxBytes)
		}
	}
	return nil
}

// parse returns the certificates of a PEM text, at least one.
func parse(key string, text []byte) ([]*x509.Certificate, error) {
	var all []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("the key %q has a block %q, and may have certificates only", key, block.Type)
		}
		one, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("the key %q has a certificate that cannot be read: %w", key, err)
		}
		all = append(all, one)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("the key %q has no certificate in PEM form", key)
	}
	return all, nil
}

// matches says why the private key cannot be used with the certificate.
func (p Pair) matches() error {
	block, _ := pem.Decode(p.Key)
	switch {
	case block == nil:
		return fmt.Errorf("the key %q has no private key in PEM form", KeyKey)
	case strings.Contains(block.Type, "ENCRYPTED") || block.Headers["DEK-Info"] != "":
		return fmt.Errorf("the key %q has a private key that is encrypted: store it without a passphrase", KeyKey)
	}
	pair, err := tls.X509KeyPair(p.Certificate, p.Key)
	if err != nil {
		return fmt.Errorf("the private key in %q cannot be used with the certificate in %q: %w", KeyKey, KeyCertificate, err)
	}
	if key, ok := pair.PrivateKey.(*rsa.PrivateKey); ok && key.N.BitLen() < minRSABits {
		return fmt.Errorf("the private key in %q has %d bits, and must have %d", KeyKey, key.N.BitLen(), minRSABits)
	}
	return nil
}

func valid(leaf *x509.Certificate, now time.Time) error {
	switch {
	case now.After(leaf.NotAfter):
		return fmt.Errorf("the certificate expired at %s", leaf.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("the certificate is not valid before %s", leaf.NotBefore.UTC().Format(time.RFC3339))
	}
	return nil
}

// verify says why the chain does not lead to a CA that is trusted. It must end in one
// that signed itself: OpenSSL, with which members verify each other, takes no other.
func verify(chain, trusted []*x509.Certificate, use Use) error {
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	selfSigned := 0
	for _, ca := range trusted {
		if bytes.Equal(ca.RawSubject, ca.RawIssuer) {
			roots.AddCert(ca)
			selfSigned++
		} else {
			between.AddCert(ca)
		}
	}
	if selfSigned == 0 {
		return fmt.Errorf("the key %q has no root CA, which has signed itself: add the one that the chain ends in", KeyCA)
	}
	for _, one := range chain[1:] {
		between.AddCert(one)
	}
	usages := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	if use.Client {
		usages = append(usages, x509.ExtKeyUsageClientAuth)
	}
	for _, usage := range usages {
		_, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: use.Now, KeyUsages: []x509.ExtKeyUsage{usage}})
		if invalid := (x509.CertificateInvalidError{}); errors.As(err, &invalid) && invalid.Reason == x509.IncompatibleUsage {
			return fmt.Errorf("the certificate must be for %s as well: its extended key usage is for something else", usageNames[usage])
		}
		if err != nil {
			return fmt.Errorf("the certificate in %q is not verified by %q: %w", KeyCertificate, KeyCA, err)
		}
	}
	return nil
}

var usageNames = map[x509.ExtKeyUsage]string{
	x509.ExtKeyUsageServerAuth: "server authentication",
	x509.ExtKeyUsageClientAuth: "client authentication (members show it to each other where clientAuth is not None)",
}

func covers(leaf *x509.Certificate, hosts []string) error {
	var missing []string
	for _, host := range hosts {
		if leaf.VerifyHostname(host) != nil {
			missing = append(missing, host)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("the certificate does not cover the host names %s: add them to its subject alternative names", strings.Join(missing, ", "))
	}
	return nil
}

// Leaf is the certificate itself; nil if it cannot be read.
func (p Pair) Leaf() *x509.Certificate {
	chain, err := parse(KeyCertificate, p.Certificate)
	if err != nil {
		return nil
	}
	return chain[0]
}

// Roots are the CAs that are trusted.
func (p Pair) Roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(p.CA)
	return pool
}

// Hash names a part by its content.
func Hash(part []byte) string {
	sum := sha256.Sum256(part)
	return hex.EncodeToString(sum[:8])
}

// A certificate that nobody renewed is a case for a person once less than a quarter of
// its life is left, at most 30 days: after cert-manager would have renewed it, at a third.
const (
	warnShare = 4
	warnMost  = 30 * 24 * time.Hour
)

// WarnAt is when a person should hear that the certificate was not renewed.
func WarnAt(leaf *x509.Certificate) time.Time {
	return leaf.NotAfter.Add(-min(leaf.NotAfter.Sub(leaf.NotBefore)/warnShare, warnMost))
}
