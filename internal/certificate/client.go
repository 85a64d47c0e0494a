package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"time"
)

// Client is how the operator connects to members that have the pair: the chain must lead
// to one of its CAs and cover the host. A certificate that has expired is taken
// nevertheless: only the operator can bring another. Key and certificate are shown where
// a member asks for one.
func (p Pair) Client(now time.Time) (func(host string) *tls.Config, error) {
	own, err := tls.X509KeyPair(p.Certificate, p.Key)
	if err != nil {
		return nil, err
	}
	roots := p.Roots()
	return func(host string) *tls.Config {
		return &tls.Config{
			ServerName:   host,
			Certificates: []tls.Certificate{own},
			MinVersion:   tls.VersionTLS12,
			// It would refuse one that has expired: VerifyConnection does all of its work.
			InsecureSkipVerify: true, //nolint:gosec // Verified below.
			VerifyConnection: func(state tls.ConnectionState) error {
				if err := verifyPeer(state.PeerCertificates, roots, host, now); err != nil {
					return &tls.CertificateVerificationError{UnverifiedCertificates: state.PeerCertificates, Err: err}
				}
				return nil
			},
		}
	}, nil
}

func verifyPeer(chain []*x509.Certificate, roots *x509.CertPool, host string, now time.Time) error {
	if len(chain) == 0 {
		return errors.New("it shows no certificate")
	}
	if now.After(chain[0].NotAfter) {
		now = chain[0].NotAfter
	}
	between := x509.NewCertPool()
	for _, one := range chain[1:] {
		between.AddCert(one)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{DNSName: host, Roots: roots, Intermediates: between, CurrentTime: now})
	return err
}
