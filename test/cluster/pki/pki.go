// Package pki makes the keys, certificates and kubeconfigs of a cluster.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"seang.org/operator/test/cluster/layout"
)

// validity of every certificate: that of kubeadm's leaf certificates.
const validity = 365 * 24 * time.Hour

// The names of authorities, each with a .crt and a .key file in the PKI directory.
const (
	ClusterCA    = "ca"
	FrontProxyCA = "front-proxy-ca"
)

// Names of certificates that components use.
const (
	APIServer         = "apiserver"
	KubeletClient     = "apiserver-kubelet-client"
	FrontProxyClient  = "front-proxy-client"
	Admin             = "admin"
	ControllerManager = "controller-manager"
	Scheduler         = "scheduler"
	Proxy             = "kube-proxy"
)

// ServiceAccountKey and ServiceAccountPublicKey sign and verify tokens.
const (
	ServiceAccountKey       = "sa.key"
	ServiceAccountPublicKey = "sa.pub"
)

// certificate describes a leaf.
type certificate struct {
	name, authority string
	user            string
	groups          []string
	addresses       []string
	names           []string
}

func certificates(l layout.Layout) []certificate {
	list := []certificate{
		{
			name: APIServer, authority: ClusterCA, user: "kube-apiserver",
			addresses: []string{"127.0.0.1", "::1", layout.ControlPlaneAddress, layout.APIServiceAddress},
			names: []string{
				"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
				"kubernetes.default.svc." + layout.ClusterDomain,
			},
		},
		{name: KubeletClient, authority: ClusterCA, user: "kube-apiserver-kubelet-client", groups: []string{"system:masters"}},
		{name: FrontProxyClient, authority: FrontProxyCA, user: "front-proxy-client"},
		{name: Admin, authority: ClusterCA, user: "kubernetes-admin", groups: []string{"system:masters"}},
		{name: ControllerManager, authority: ClusterCA, user: "system:kube-controller-manager"},
		{name: Scheduler, authority: ClusterCA, user: "system:kube-scheduler"},
		{name: Proxy, authority: ClusterCA, user: "system:kube-proxy"},
	}
	for _, node := range l.AllNodes() {
		list = append(list, certificate{
			name: node.Name(), authority: ClusterCA,
			user: "system:node:" + node.Name(), groups: []string{"system:nodes"},
			addresses: []string{node.Address()}, names: []string{node.Name()},
		})
	}
	return list
}

// Ensure makes what is missing: authorities, certificates, the key of service
// accounts, and the kubeconfigs of the components.
func Ensure(l layout.Layout) error {
	authorities := map[string]authority{}
	for _, name := range []string{ClusterCA, FrontProxyCA} {
		a, err := ensureAuthority(l, name)
		if err != nil {
			return err
		}
		authorities[name] = a
	}
	for _, c := range certificates(l) {
		if err := c.ensure(l, authorities[c.authority]); err != nil {
			return err
		}
		if c.authority != ClusterCA || c.name == APIServer || c.name == KubeletClient {
			continue
		}
		if err := WriteKubeconfig(l, c.name, layout.APIServer(), l.ComponentKubeconfig(c.name)); err != nil {
			return err
		}
	}
	return ensureServiceAccountKey(l)
}

type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

func ensureAuthority(l layout.Layout, name string) (authority, error) {
	certFile, keyFile := l.PKI(name+".crt"), l.PKI(name+".key")
	if !exist(certFile, keyFile) {
		key, err := writeKey(keyFile)
		if err != nil {
			return authority{}, err
		}
		cert, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: name}, key)
		if err != nil {
			return authority{}, fmt.Errorf("make authority %s: %w", name, err)
		}
		if err := writeCertificate(certFile, cert.Raw); err != nil {
			return authority{}, err
		}
	}
	certs, err := certutil.CertsFromFile(certFile)
	if err != nil {
		return authority{}, fmt.Errorf("read authority %s: %w", name, err)
	}
	parsed, err := keyutil.PrivateKeyFromFile(keyFile)
	if err != nil {
		return authority{}, fmt.Errorf("read the key of authority %s: %w", name, err)
	}
	signer, ok := parsed.(crypto.Signer)
	if !ok {
		return authority{}, fmt.Errorf("the key of authority %s in %s cannot sign", name, keyFile)
	}
	return authority{certificate: certs[0], key: signer}, nil
}

func (c certificate) ensure(l layout.Layout, by authority) error {
	certFile, keyFile := l.PKI(c.name+".crt"), l.PKI(c.name+".key")
	if exist(certFile, keyFile) {
		return nil
	}
	key, err := writeKey(keyFile)
	if err != nil {
		return err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 62))
	if err != nil {
		return fmt.Errorf("draw a serial number: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: c.user, Organization: c.groups},
		DNSNames:     c.names,
		NotBefore:    by.certificate.NotBefore,
		NotAfter:     time.Now().Add(validity), //nolint:forbidigo // a certificate is for the real world
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	for _, address := range c.addresses {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(address))
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.certificate, key.Public(), by.key)
	if err != nil {
		return fmt.Errorf("sign certificate %s: %w", c.name, err)
	}
	return writeCertificate(certFile, der)
}

func ensureServiceAccountKey(l layout.Layout) error {
	private, public := l.PKI(ServiceAccountKey), l.PKI(ServiceAccountPublicKey)
	if exist(private, public) {
		return nil
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048) // tokens of kubeadm's clusters are RS256
	if err != nil {
		return fmt.Errorf("make the key of service accounts: %w", err)
	}
	data, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return fmt.Errorf("encode the key of service accounts: %w", err)
	}
	if err := layout.WriteFile(private, data, 0o600); err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return fmt.Errorf("encode the public key of service accounts: %w", err)
	}
	return layout.WriteFile(public, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o644)
}

func writeKey(file string) (crypto.Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make key %s: %w", file, err)
	}
	data, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, fmt.Errorf("encode key %s: %w", file, err)
	}
	return key, layout.WriteFile(file, data, 0o600)
}

func writeCertificate(file string, der []byte) error {
	data := pem.EncodeToMemory(&pem.Block{Type: certutil.CertificateBlockType, Bytes: der})
	return layout.WriteFile(file, data, 0o644)
}

func exist(files ...string) bool {
	for _, file := range files {
		if _, err := os.Stat(file); err != nil {
			return false
		}
	}
	return true
}

// WriteKubeconfig writes a self-contained kubeconfig for the holder of a
// certificate.
func WriteKubeconfig(l layout.Layout, name, server, file string) error {
	var data [3][]byte
	for i, source := range []string{ClusterCA + ".crt", name + ".crt", name + ".key"} {
		content, err := os.ReadFile(l.PKI(source))
		if err != nil {
			return fmt.Errorf("make kubeconfig %s: %w", file, err)
		}
		data[i] = content
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[l.Name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: data[0]}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: data[1], ClientKeyData: data[2]}
	config.Contexts[l.Name] = &clientcmdapi.Context{Cluster: l.Name, AuthInfo: name}
	config.CurrentContext = l.Name
	content, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("encode kubeconfig %s: %w", file, err)
	}
	return layout.WriteFile(file, content, 0o600)
}
