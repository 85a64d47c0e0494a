package conf

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"seang.org/operator/internal/certificate"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis"
)

// TLS is what a member needs to serve TLS.
type TLS struct {
	Pair certificate.Pair
	// Clients is tls-auth-clients: no, optional or yes.
	Clients string
}

// The files that a member loads are named after their content: where Redis says that it
// uses a file, it has that very content, and the name of another is there only once the
// kubelet has brought it.
const (
	prefixCertificate = "certificate-"
	prefixKey         = "key-"
	prefixCA          = "ca-"
	suffix            = ".pem"
)

func fileName(prefix string, content []byte) string {
	return prefix + certificate.Hash(content) + suffix
}

// Files is the content of the Secret that a pod mounts: the files, and the directives
// with which a process starts.
func (t TLS) Files() map[string][]byte {
	return map[string][]byte{
		fileName(prefixCertificate, t.Pair.Certificate): t.Pair.Certificate,
		fileName(prefixKey, t.Pair.Key):                 t.Pair.Key,
		fileName(prefixCA, t.Pair.CA):                   t.Pair.CA,
		naming.KeyTLSConf:                               []byte(t.render()),
	}
}

// Directives are those that change together with a certificate, for CONFIG SET, with the
// files in a directory: the process knows where its pod mounts them.
func (t TLS) Directives(dir string) map[string]string {
	path := func(prefix string, content []byte) string { return dir + "/" + fileName(prefix, content) }
	return map[string]string{
		"tls-cert-file":    path(prefixCertificate, t.Pair.Certificate),
		"tls-key-file":     path(prefixKey, t.Pair.Key),
		"tls-ca-cert-file": path(prefixCA, t.Pair.CA),
		"tls-auth-clients": t.Clients,
	}
}

// render is the part of redis.conf that turns TLS on.
func (t TLS) render() string {
	var b strings.Builder
	directives := t.Directives(naming.MountTLS)
	for _, name := range slices.Sorted(maps.Keys(directives)) {
		fmt.Fprintf(&b, "%s %s\n", name, directives[name])
	}
	fmt.Fprintf(&b, "tls-port %d\ntls-replication yes\ntls-protocols \"TLSv1.2 TLSv1.3\"\n", redis.PortTLS)
	return b.String()
}

var clientsDirective = regexp.MustCompile(`(?m)^tls-auth-clients (no|optional|yes)$`)

// ParseTLS reads what Files wrote; false if it is not whole.
func ParseTLS(files map[string][]byte) (TLS, bool) {
	t := TLS{}
	for prefix, part := range map[string]*[]byte{prefixCertificate: &t.Pair.Certificate, prefixKey: &t.Pair.Key, prefixCA: &t.Pair.CA} {
		for name, content := range files {
			if strings.HasPrefix(name, prefix) && name == fileName(prefix, content) {
				*part = content
			}
		}
	}
	if found := clientsDirective.FindSubmatch(files[naming.KeyTLSConf]); found != nil {
		t.Clients = string(found[1])
	}
	return t, len(t.Pair.Certificate) > 0 && len(t.Pair.Key) > 0 && len(t.Pair.CA) > 0 && t.Clients != ""
}

// Hash names what a member has by all of its content; empty for nothing.
func (t TLS) Hash() string {
	if t.Pair.Empty() {
		return ""
	}
	return certificate.Hash([]byte(t.render()))
}
