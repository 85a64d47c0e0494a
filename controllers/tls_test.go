package controllers_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/certificate"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis"
	"seang.org/operator/internal/redis/admin"
	"seang.org/operator/internal/testkit/apiserver"
	"seang.org/operator/internal/testkit/authority"
	"seang.org/operator/internal/testkit/nodes"
	"seang.org/operator/internal/testkit/redisserver"
)

// tlsStory is one RedisCluster whose TLS changes.
type tlsStory struct {
	*testing.T
	server  *apiserver.Server
	cluster *v1alpha1.RedisCluster
	nodes   *nodes.Nodes
	stop    func()
}

func newTLSStory(t *testing.T, flavour string) *tlsStory {
	t.Helper()
	server := apiserver.Get(t)
	namespace := server.Namespace(t)
	s := &tlsStory{T: t, server: server, cluster: cluster(namespace, 1, false), nodes: nodes.Start(t, server.Client, namespace, flavour)}
	s.cluster.Spec.Auth = &v1alpha1.AuthSpec{OverlapSeconds: new(int32(2))}
	s.stop = operate(t, server, namespace)
	return s
}

// another operator takes over, which reads every Secret anew.
func (s *tlsStory) another() {
	s.Helper()
	s.stop()
	s.stop = operate(s.T, s.server, s.cluster.Namespace)
}

func covering(namespace string) authority.Change {
	return authority.Hosts("cache-primary."+namespace+".svc", "cache-replicas."+namespace+".svc", "*.cache-nodes."+namespace+".svc")
}

func certificateSecret(namespace, name string, pair certificate.Pair) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{
		certificate.KeyCertificate: pair.Certificate, certificate.KeyKey: pair.Key, certificate.KeyCA: pair.CA}}
}

// give writes the Secret of the user, and lets another operator read it.
func (s *tlsStory) give(pair certificate.Pair) {
	s.Helper()
	secret := certificateSecret(s.cluster.Namespace, "given", pair)
	err := s.server.Client.Create(s.Context(), secret)
	if apierrors.IsAlreadyExists(err) {
		err = s.server.Client.Update(s.Context(), secret)
		s.another()
	}
	if err != nil {
		s.Fatalf("write the Secret: %v", err)
	}
}

// spec changes the spec and waits until it is in force.
func (s *tlsStory) spec(what string, change func(*v1alpha1.RedisClusterSpec)) {
	s.Helper()
	for {
		if err := s.server.Client.Get(s.Context(), client.ObjectKeyFromObject(s.cluster), s.cluster); err != nil {
			s.Fatal(err)
		}
		change(&s.cluster.Spec)
		err := s.server.Client.Update(s.Context(), s.cluster)
		if err == nil {
			break
		}
		if !apierrors.IsConflict(err) {
			s.Fatalf("%s: %v", what, err)
		}
	}
	s.ready(what)
}

func (s *tlsStory) ready(what string) {
	s.Helper()
	await(s.T, s.server.Client, s.cluster, what, func() bool { return isReady(s.cluster) })
}

// soon waits until look finds nothing wrong on any pod: after a change of a Secret, Ready may
// be that of before.
func (s *tlsStory) soon(look func(pod *corev1.Pod) error) {
	s.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		var all error
		pods := &corev1.PodList{}
		if err := s.server.Client.List(s.Context(), pods, client.InNamespace(s.cluster.Namespace)); err != nil {
			s.Fatal(err)
		}
		for i := range pods.Items {
			all = errors.Join(all, look(&pods.Items[i]))
		}
		if all == nil {
			break
		}
	}
	s.each(look)
}

// each calls look for each pod.
func (s *tlsStory) each(look func(pod *corev1.Pod) error) {
	s.Helper()
	pods := &corev1.PodList{}
	if err := s.server.Client.List(s.Context(), pods, client.InNamespace(s.cluster.Namespace)); err != nil {
		s.Fatal(err)
	}
	if len(pods.Items) != 2 {
		s.Errorf("%d pods", len(pods.Items))
	}
	for i := range pods.Items {
		if err := look(&pods.Items[i]); err != nil {
			s.Errorf("%s: %v", pods.Items[i].Name, err)
		}
	}
}

func (s *tlsStory) host(pod *corev1.Pod) string {
	return naming.PodHost("cache", pod.Namespace, pod.Name)
}

// serves says that a pod serves exactly that certificate, to one that trusts its CA alone.
func (s *tlsStory) serves(pair certificate.Pair) func(*corev1.Pod) error {
	return func(pod *corev1.Pod) error {
		leaf, err := (&admin.Pool{}).Handshake(s.Context(), admin.Target{Address: admin.Address(pod.Status.PodIP, true), TLS: authority.Client(s, pair, s.host(pod))})
		if err != nil {
			return err
		}
		return pending(!leaf.Equal(pair.Leaf()), "it shows another certificate")
	}
}

// listens says whether a pod listens on the port.
func listens(port int, open bool) func(*corev1.Pod) error {
	return func(pod *corev1.Pod) error {
		conn, err := net.Dial("tcp", net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(port)))
		switch {
		case errors.Is(err, syscall.ECONNREFUSED):
			return pending(open, "port %d is closed", port)
		case err != nil:
			return err
		}
		_ = conn.Close()
		return pending(!open, "port %d is open", port)
	}
}

// links says that the link of the replica goes to the port, and is up.
func (s *tlsStory) links(port int) {
	s.Helper()
	app := s.secret("cache-app")
	s.each(func(pod *corev1.Pod) error {
		if pod.Name == s.cluster.Status.Primary {
			return nil
		}
		text, err := s.nodes.Server(pod.UID).TryWith(naming.UserDefault, string(app[naming.KeyPassword]), "INFO", "replication")
		if err != nil {
			return err
		}
		info, err := redis.ParseInfo(text)
		if err != nil {
			return err
		}
		return pending(!info.LinkUp || info.PrimaryPort != port, "its link goes to port %d, up: %t; want port %d", info.PrimaryPort, info.LinkUp, port)
	})
}

func (s *tlsStory) secret(name string) map[string][]byte {
	s.Helper()
	secret := &corev1.Secret{}
	if err := s.server.Client.Get(s.Context(), client.ObjectKey{Namespace: s.cluster.Namespace, Name: name}, secret); err != nil {
		s.Fatal(err)
	}
	return secret.Data
}

// app is the Secret of the applications.
func (s *tlsStory) app(scheme string, ca []byte) {
	s.Helper()
	data := s.secret("cache-app")
	port := strconv.Itoa(redis.PortOf(scheme == "rediss"))
	uri := string(data[naming.KeyURI])
	if !strings.HasPrefix(uri, scheme+"://") || !strings.HasSuffix(uri, ":"+port) || string(data[naming.KeyPort]) != port || string(data[naming.KeyCA]) != string(ca) {
		s.Errorf("applications get the scheme of %q and the port %s, want %s; the CA is right: %t", strings.SplitN(uri, ":", 2)[0], data[naming.KeyPort], scheme, string(data[naming.KeyCA]) == string(ca))
	}
}

// ports are those of the Services.
func (s *tlsStory) ports(want ...int32) {
	s.Helper()
	for _, name := range []string{"cache-primary", "cache-replicas", "cache-nodes"} {
		service := &corev1.Service{}
		if err := s.server.Client.Get(s.Context(), client.ObjectKey{Namespace: s.cluster.Namespace, Name: name}, service); err != nil {
			s.Fatal(err)
		}
		var have []int32
		for _, port := range service.Spec.Ports {
			have = append(have, port.Port)
		}
		if fmt.Sprint(have) != fmt.Sprint(want) {
			s.Errorf("%s has the ports %v, want %v", name, have, want)
		}
	}
}

func TestTLSIsTurnedOnRenewedAndTurnedOff(t *testing.T) {
	t.Parallel()
	redisserver.Each(t, func(t *testing.T, flavour string) {
		s := newTLSStory(t, flavour)
		first, second := authority.New(t, "first"), authority.New(t, "second")
		covers := covering(s.cluster.Namespace)
		old := first.Issue(covers)
		s.give(old)
		if err := s.server.Client.Create(t.Context(), s.cluster); err != nil {
			t.Fatal(err)
		}
		s.ready("Ready without TLS")
		s.each(listens(redis.PortTLS, false))

		s.spec("both ports", func(spec *v1alpha1.RedisClusterSpec) {
			spec.TLS = &v1alpha1.TLSSpec{SecretName: "given", Plaintext: v1alpha1.PlaintextAllowed}
		})
		s.each(s.serves(old))
		s.each(listens(redis.Port, true))
		s.links(redis.PortTLS)
		s.app("rediss", old.CA)
		s.ports(naming.PortRedis, naming.PortTLS)

		s.spec("TLS only", func(spec *v1alpha1.RedisClusterSpec) { spec.TLS.Plaintext = "" })
		s.each(listens(redis.Port, false))
		s.ports(naming.PortTLS)

		for what, pair := range map[string]certificate.Pair{"a renewed certificate": first.Issue(covers), "another CA": second.Issue(covers)} {
			s.give(pair)
			s.ready(what)
			await(t, s.server.Client, s.cluster, what, func() bool { return isReady(s.cluster) && s.deployed(pair) })
			s.soon(s.serves(pair))
			s.links(redis.PortTLS)
			s.app("rediss", pair.CA)
		}

		s.spec("off", func(spec *v1alpha1.RedisClusterSpec) { spec.TLS = nil })
		s.each(listens(redis.PortTLS, false))
		s.each(listens(redis.Port, true))
		s.links(redis.Port)
		s.app("redis", nil)
		s.ports(naming.PortRedis)
		err := s.server.Client.Get(t.Context(), client.ObjectKey{Namespace: s.cluster.Namespace, Name: naming.TLSSecret("cache")}, &corev1.Secret{})
		if !apierrors.IsNotFound(err) {
			t.Errorf("our copy of the certificate is there still: %v", err)
		}
	})
}

// deployed says that our Secret has exactly the pair.
func (s *tlsStory) deployed(pair certificate.Pair) bool {
	secret := &corev1.Secret{}
	if err := s.server.Client.Get(s.Context(), client.ObjectKey{Namespace: s.cluster.Namespace, Name: naming.TLSSecret("cache")}, secret); err != nil {
		return false
	}
	for _, part := range [][]byte{pair.Certificate, pair.Key, pair.CA} {
		found := false
		for _, content := range secret.Data {
			found = found || string(content) == string(part)
		}
		if !found {
			return false
		}
	}
	return true
}

func TestABadCertificateIsRefusedAndTheOneInForceStays(t *testing.T) {
	t.Parallel()
	s := newTLSStory(t, "redis-8.0")
	ca := authority.New(t, "ca")
	good := ca.Issue(covering(s.cluster.Namespace))
	s.cluster.Spec.TLS = &v1alpha1.TLSSpec{SecretName: "given", ClientAuth: v1alpha1.ClientAuthRequired}
	if err := s.server.Client.Create(t.Context(), s.cluster); err != nil {
		t.Fatal(err)
	}
	s.refused("does not exist")
	pods := &corev1.PodList{}
	if err := s.server.Client.List(t.Context(), pods, client.InNamespace(s.cluster.Namespace)); err != nil || len(pods.Items) != 0 {
		t.Fatalf("%d pods began without a certificate, %v", len(pods.Items), err)
	}
	s.give(good)
	s.ready("Ready from the start")
	s.each(listens(redis.Port, false))
	s.each(s.serves(good))
	now := time.Now()
	for what, pair := range map[string]certificate.Pair{
		"expired":                      ca.Issue(covering(s.cluster.Namespace), authority.Between(now.Add(-2*time.Hour), now.Add(-time.Hour))),
		"does not cover":               ca.Issue(),
		"for client authentication":    ca.Issue(covering(s.cluster.Namespace), authority.For(x509.ExtKeyUsageServerAuth)),
		"is not verified by":           {Certificate: good.Certificate, Key: good.Key, CA: authority.New(t, "other").PEM()},
		`the key "tls.key" is missing`: {Certificate: good.Certificate, CA: good.CA},
	} {
		s.give(pair)
		s.refused(what)
		s.each(s.serves(good))
		s.each(listens(redis.Port, false))
	}
	s.give(good)
	s.ready("mended")

	// Without a certificate, with one that has expired, with that of another CA.
	s.each(func(pod *corev1.Pod) error {
		for what, own := range map[string]certificate.Pair{
			"none":                 {},
			"one that has expired": ca.Issue(authority.Between(now.Add(-2*time.Hour), now.Add(-time.Hour))),
			"another CA's":         authority.New(t, "other").Issue(),
		} {
			config := authority.Client(t, good, s.host(pod))
			config.GetClientCertificate = nil
			if !own.Empty() {
				config.GetClientCertificate = authority.Client(t, own, "").GetClientCertificate
			}
			if err := ping(t.Context(), pod, config); err == nil {
				return fmt.Errorf("a client with the certificate %s is served", what)
			}
		}
		return ping(t.Context(), pod, authority.Client(t, ca.Issue(), s.host(pod)))
	})
}

// ping sends a command, which asks for a login.
func ping(ctx context.Context, pod *corev1.Pod, config *tls.Config) error {
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", admin.Address(pod.Status.PodIP, true))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	reply := make([]byte, 8)
	_, err = conn.Write([]byte("PING\r\n"))
	if err == nil {
		_, err = conn.Read(reply)
	}
	if err == nil && !strings.HasPrefix(string(reply), "-NOAUTH") {
		return fmt.Errorf("PING answers %q", reply)
	}
	return err
}

// refused waits until the spec is refused with those words.
func (s *tlsStory) refused(words string) {
	s.Helper()
	await(s.T, s.server.Client, s.cluster, "refused: "+words, func() bool {
		accepted := meta.FindStatusCondition(s.cluster.Status.Conditions, v1alpha1.ConditionSpecAccepted)
		return accepted != nil && accepted.Reason == v1alpha1.ReasonInvalidCertificate && strings.Contains(accepted.Message, words)
	})
}
