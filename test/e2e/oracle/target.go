package oracle

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/admin"
	"seang.org/operator/internal/redis/conf"
)

// Target is how to reach a Redis.
type Target struct {
	// Address is host:port of a Service or a pod.
	Address string
	// Username and Password log in.
	Username, Password string
	// CA, if there is one, is to be trusted, and Host the name to be proved: the connection
	// is encrypted.
	CA   []byte
	Host string
	// Dial connects where the address is not to be dialled from here; nil dials it.
	Dial func(ctx context.Context) (net.Conn, error) `json:"-"`
}

func (t Target) dial(ctx context.Context) (net.Conn, error) {
	conn, err := t.open(ctx)
	if err != nil || t.CA == nil {
		return conn, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(t.CA)
	secured := tls.Client(conn, &tls.Config{RootCAs: roots, ServerName: t.Host, MinVersion: tls.VersionTLS12})
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secured, nil
}

func (t Target) open(ctx context.Context) (net.Conn, error) {
	if t.Dial != nil {
		return t.Dial(ctx)
	}
	return (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", t.Address)
}

// ServiceTarget is how an application reaches a Service of the RedisCluster with
// that key.
func ServiceTarget(ctx context.Context, api client.Reader, cluster client.ObjectKey, name string) (Target, error) {
	service := &corev1.Service{}
	if err := api.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: name}, service); err != nil {
		return Target{}, fmt.Errorf("read the address of Service %s: %w", name, err)
	}
	secret, err := secret(ctx, api, cluster.Namespace, naming.AppSecret(cluster.Name))
	if err != nil {
		return Target{}, err
	}
	return Target{Address: admin.Address(service.Spec.ClusterIP, secret[naming.KeyCA] != nil), CA: secret[naming.KeyCA], Host: name + "." + cluster.Namespace + ".svc",
		Username: string(secret[naming.KeyUsername]), Password: string(secret[naming.KeyPassword])}, nil
}

// Binding is how an application reaches the primary that reads its Secret anew for each
// connection.
func Binding(ctx context.Context, api client.Reader, cluster client.ObjectKey) (Target, error) {
	now, err := ServiceTarget(ctx, api, cluster, naming.PrimaryService(cluster.Name))
	now.CA = nil
	now.Dial = func(ctx context.Context) (net.Conn, error) {
		fresh, err := ServiceTarget(ctx, api, cluster, naming.PrimaryService(cluster.Name))
		if err != nil {
			return nil, err
		}
		return fresh.dial(ctx)
	}
	return now, err
}

// OfPod makes a target that of one pod: with TLS where it serves that.
func (t Target) OfPod(ctx context.Context, api client.Reader, cluster client.ObjectKey, pod *corev1.Pod) (Target, error) {
	t.CA, t.Dial = nil, nil
	for _, volume := range pod.Spec.Volumes {
		if volume.Name != naming.VolumeTLS {
			continue
		}
		files, err := secret(ctx, api, cluster.Namespace, naming.TLSSecret(cluster.Name))
		if err != nil {
			return t, err
		}
		have, whole := conf.ParseTLS(files)
		if !whole {
			return t, fmt.Errorf("the Secret %s has no certificate", naming.TLSSecret(cluster.Name))
		}
		t.CA, t.Host = have.Pair.CA, naming.PodHost(cluster.Name, cluster.Namespace, pod.Name)
	}
	t.Address = admin.Address(pod.Status.PodIP, t.CA != nil)
	return t, nil
}

// OperatorTarget logs in at one pod of the RedisCluster with that key as the
// operator does.
func OperatorTarget(ctx context.Context, api client.Reader, cluster client.ObjectKey, pod *corev1.Pod) (Target, error) {
	secret, err := secret(ctx, api, cluster.Namespace, naming.SystemSecret(cluster.Name))
	if err != nil {
		return Target{}, err
	}
	return Target{Username: naming.UserOperator, Password: string(secret[naming.KeyOperatorPassword])}.OfPod(ctx, api, cluster, pod)
}

func secret(ctx context.Context, api client.Reader, namespace, name string) (map[string][]byte, error) {
	secret := &corev1.Secret{}
	if err := api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret); err != nil {
		return nil, fmt.Errorf("read the passwords in Secret %s: %w", name, err)
	}
	return secret.Data, nil
}

// Do sends one command over a connection of its own.
func Do(ctx context.Context, target Target, words ...string) (string, error) {
	conn, err := Dial(ctx, target)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	return conn.Do(ctx, words...)
}
