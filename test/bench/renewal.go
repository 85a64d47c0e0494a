package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/certificate"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/testkit/authority"
	"seang.org/operator/test/e2e/oracle"
)

// renewal renews the certificate of a RedisCluster again and again, every second time with
// another CA, while applications do 1,000 commands a second, and counts those that fail.
func renewal(ctx context.Context, s *suite, n int) ([]result, error) {
	c, err := s.newSubject(ctx, false)
	if err != nil {
		return nil, err
	}
	authorities := []*authority.Authority{authority.New(program{}, "first"), authority.New(program{}, "second")}
	covering := authority.Hosts(oracle.CertificateHosts(c.key)...)
	if err := c.secure(ctx, authorities[0].Issue(covering)); err != nil {
		return nil, err
	}
	var renewed, moved []float64
	own := 0
	commands, failed, err := c.underApplications(ctx, []string{naming.UserDefault}, func() error {
		for i := range 2 * n {
			times, other := &renewed, i%2 == 1
			if other {
				times, own = &moved, 1-own
			}
			took, err := c.renew(ctx, authorities[own].Issue(covering))
			if err != nil {
				return err
			}
			*times = append(*times, milliseconds(took))
			c.say("another CA %t: on every member after %.0f ms", other, milliseconds(took))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return []result{
		figure(fmt.Sprintf("commands that failed, of %d, in so many renewals with the same CA and with another", commands), n, float64(failed), 0),
		distribution("ms, Secret changed → every member shows the renewed certificate; value is p99", renewed, rotationTarget, p99),
		distribution(fmt.Sprintf("ms, the same with another CA, of which applications are told %d s before; value is p99", oracle.RotationOverlap), moved, rotationTarget, p99),
	}, errors.Join(c.remove(ctx), c.api.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: oracle.CertificateSecret(c.key.Name)}}))
}

// renew gives a certificate, and returns how long it takes until every member shows it.
func (c *subject) renew(ctx context.Context, pair certificate.Pair) (time.Duration, error) {
	if err := oracle.GiveCertificate(ctx, c.api, c.key, pair); err != nil {
		return 0, err
	}
	return oracle.AwaitServed(ctx, c.api, c.key, pair)
}

// secure turns TLS on.
func (c *subject) secure(ctx context.Context, pair certificate.Pair) error {
	if err := oracle.GiveCertificate(ctx, c.api, c.key, pair); err != nil {
		return err
	}
	cluster := c.reference()
	if err := c.api.Get(ctx, c.key, cluster); err != nil {
		return fmt.Errorf("read RedisCluster %s: %w", c.key, err)
	}
	before := cluster.DeepCopy()
	cluster.Spec.TLS = &v1alpha1.TLSSpec{SecretName: oracle.CertificateSecret(c.key.Name)}
	cluster.Spec.Auth = &v1alpha1.AuthSpec{OverlapSeconds: new(int32(oracle.RotationOverlap))}
	if err := c.api.Patch(ctx, cluster, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("give RedisCluster %s a certificate: %w", c.key, err)
	}
	if err := c.awaitReady(ctx, cluster); err != nil {
		return err
	}
	_, err := oracle.AwaitServed(ctx, c.api, c.key, pair)
	return err
}

// program stands where certificates are made for a test: an error there is the end.
type program struct{ testing.TB }

func (program) Helper() {}

func (program) Fatal(arguments ...any) { panic(fmt.Sprint(arguments...)) }
