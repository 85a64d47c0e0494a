package admin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"net"
	"path"
	"slices"
	"strconv"

	"seang.org/operator/internal/redis"
)

// Directives of the ports and of the links.
const (
	plainPort       = "port"
	secureLink      = "tls-replication"
	certificateFile = "tls-cert-file"
)

// secure proves who the process at the other end of a new connection is, and returns the
// certificate by which it did. Without TLS there is none.
func (p *Pool) secure(ctx context.Context, conn net.Conn, target Target) (net.Conn, *x509.Certificate, error) {
	var leaf *x509.Certificate
	if target.TLS != nil {
		secured := tls.Client(conn, target.TLS)
		if err := secured.HandshakeContext(ctx); err != nil {
			_ = conn.Close()
			return nil, nil, classify(target.Address, err)
		}
		conn, leaf = secured, secured.ConnectionState().PeerCertificates[0]
	}
	if p.Over != nil {
		conn = p.Over(conn)
	}
	return conn, leaf, nil
}

// Handshake opens another connection to the target, to see the certificate that it shows
// now.
func (p *Pool) Handshake(ctx context.Context, target Target) (*x509.Certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	conn, leaf, err := p.secured(ctx, target)
	if err != nil {
		return nil, err
	}
	return leaf, conn.Close()
}

// secured opens a connection to the target, which has proved who it is then.
func (p *Pool) secured(ctx context.Context, target Target) (net.Conn, *x509.Certificate, error) {
	conn, err := p.open(ctx, target.Address, dialTimeout)
	if err != nil {
		return nil, nil, classify(target.Address, err)
	}
	return p.secure(ctx, conn, target)
}

// Certificate is what the process showed when the connection was made.
func (m *Member) Certificate() *x509.Certificate { return m.leaf.Load() }

// readListening reads how the process listens and links.
func (m *Member) readListening(ctx context.Context) error {
	read, err := m.ConfigGet(ctx, plainPort, secureLink, certificateFile, "tls-key-file", "tls-ca-cert-file", "tls-auth-clients")
	if err != nil {
		return err
	}
	m.listening.Store(&read)
	return nil
}

// Listening are the directives of TLS that the process has; empty if it serves none.
func (m *Member) Listening() map[string]string {
	if read := m.listening.Load(); read != nil {
		return *read
	}
	return nil
}

// CertificateDir is where the process has its certificate.
func (m *Member) CertificateDir() string { return path.Dir(m.Listening()[certificateFile]) }

// SetListening sets directives of TLS; all or, with an error, none.
func (m *Member) SetListening(ctx context.Context, values map[string]string) error {
	if err := m.ConfigSet(ctx, values); err != nil {
		return err
	}
	next := maps.Clone(m.Listening())
	if next == nil {
		next = map[string]string{}
	}
	maps.Copy(next, values)
	m.listening.Store(&next)
	return nil
}

// secureLinks makes the process use TLS, or not, for the links that it opens from now on.
func (m *Member) secureLinks(ctx context.Context, secure bool) error {
	wanted := map[bool]string{true: "yes", false: "no"}[secure]
	if have := m.Listening()[secureLink]; have == wanted || (have == "" && !secure) {
		return nil
	}
	return m.SetListening(ctx, map[string]string{secureLink: wanted})
}

// Plain says that the process listens on the port without TLS too.
func (m *Member) Plain() bool { return m.Listening()[plainPort] != "0" }

// OpenPlain opens the port without TLS.
func (m *Member) OpenPlain(ctx context.Context) error {
	return m.SetListening(ctx, map[string]string{plainPort: strconv.Itoa(redis.Port)})
}

// ClosePlain closes the port without TLS, and the connections that came to it.
func (m *Member) ClosePlain(ctx context.Context) error {
	if err := m.SetListening(ctx, map[string]string{plainPort: "0"}); err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(m.address)
	if err != nil {
		return fmt.Errorf("redis at %s: %w", m.address, err)
	}
	// A forwarded port comes to the loopback address of the pod.
	for _, own := range slices.Compact([]string{host, "127.0.0.1", "::1"}) {
		if err := m.do(ctx, "CLIENT", "KILL", "LADDR", net.JoinHostPort(own, strconv.Itoa(redis.Port)), "SKIPME", "yes"); err != nil {
			return err
		}
	}
	return nil
}
