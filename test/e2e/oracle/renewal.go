package oracle

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/internal/certificate"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/admin"
)

// CertificateSecret is the Secret of a person's own with the certificate of a RedisCluster.
func CertificateSecret(cluster string) string { return cluster + "-given" }

// CertificateHosts are the names that the certificate of a RedisCluster covers.
func CertificateHosts(cluster client.ObjectKey) []string {
	suffix := "." + cluster.Namespace + ".svc"
	return []string{naming.PrimaryService(cluster.Name) + suffix, naming.ReplicasService(cluster.Name) + suffix, "*." + naming.NodesService(cluster.Name) + suffix}
}

// GiveCertificate writes the Secret, as a person does who renews a certificate.
func GiveCertificate(ctx context.Context, api client.Client, cluster client.ObjectKey, pair certificate.Pair) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: CertificateSecret(cluster.Name)}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{certificate.KeyCertificate: pair.Certificate, certificate.KeyKey: pair.Key, certificate.KeyCA: pair.CA}}
	err := api.Create(ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		err = api.Update(ctx, secret)
	}
	if err != nil {
		return fmt.Errorf("write Secret %s: %w", secret.Name, err)
	}
	return nil
}

// AwaitServed waits until every member shows the certificate, to one that trusts its CA
// alone, and returns how long that took.
func AwaitServed(ctx context.Context, api client.Reader, cluster client.ObjectKey, pair certificate.Pair) (time.Duration, error) {
	time := clock.RealClock{}
	began := time.Now()
	err := poll(ctx, "every member shows the new certificate", func(ctx context.Context) error {
		pods := &corev1.PodList{}
		if err := api.List(ctx, pods, client.InNamespace(cluster.Namespace), client.MatchingLabels(naming.Selector(cluster.Name))); err != nil {
			return fmt.Errorf("list the pods: %w", err)
		}
		for _, pod := range pods.Items {
			leaf, err := Handshake(ctx, cluster, &pod, &tls.Config{RootCAs: pair.Roots(), MinVersion: tls.VersionTLS12})
			if err != nil {
				return err
			}
			if !leaf.Equal(pair.Leaf()) {
				return fmt.Errorf("%s shows the certificate %s", pod.Name, leaf.SerialNumber)
			}
		}
		return nil
	})
	return time.Since(began), err
}

// Handshake connects to a pod by its stable name, and returns the certificate that it shows.
func Handshake(ctx context.Context, cluster client.ObjectKey, pod *corev1.Pod, config *tls.Config) (*x509.Certificate, error) {
	config.ServerName = naming.PodHost(cluster.Name, cluster.Namespace, pod.Name)
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", admin.Address(pod.Status.PodIP, true))
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", pod.Name, err)
	}
	defer func() { _ = conn.Close() }()
	// A server that refuses the client's certificate says so at the first read.
	if err := conn.SetDeadline(clock.RealClock{}.Now().Add(dialTimeout)); err != nil {
		return nil, fmt.Errorf("connect to %s: %w", pod.Name, err)
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return nil, fmt.Errorf("write to %s: %w", pod.Name, err)
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		return nil, fmt.Errorf("read from %s: %w", pod.Name, err)
	}
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0], nil //nolint:forcetypeassert // It is a tls.Dialer's.
}
