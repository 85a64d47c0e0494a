package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/internal/naming"
	"seang.org/operator/test/e2e/oracle"
)

const (
	// applicationPace makes four applications that read and write do 1,000 commands a
	// second.
	applicationPace = 8 * time.Millisecond
	rotationTarget  = 60_000
)

// rotation replaces every password again and again while applications do 1,000 commands
// a second, and counts those that fail for them.
func rotation(ctx context.Context, s *suite, n int) ([]result, error) {
	c, err := s.newRotating(ctx)
	if err != nil {
		return nil, err
	}
	before, err := c.fullSyncs(ctx)
	if err != nil {
		return nil, err
	}
	commands, failed, err := c.underApplications(ctx, []string{naming.UserDefault, oracle.GeneratedUser}, func() error {
		_, err := c.rotations(ctx, n, oracle.Credential{User: naming.UserDefault}, oracle.Credential{User: oracle.GeneratedUser},
			oracle.Credential{User: oracle.GivenUser, Secret: oracle.GivenSecret}, oracle.Credential{User: naming.UserOperator}, oracle.Credential{User: naming.UserReplication})
		return err
	})
	if err != nil {
		return nil, err
	}
	// The password of the subject is an old one by now.
	if c.service, err = oracle.ServiceTarget(ctx, s.api, c.key, naming.PrimaryService(c.key.Name)); err != nil {
		return nil, err
	}
	after, err := c.fullSyncs(ctx)
	return []result{
		figure(fmt.Sprintf("commands that failed, of %d, in so many rotations of each of 5 passwords", commands), n, float64(failed), 0),
		figure("full resyncs", n, float64(after-before), 0),
	}, errors.Join(err, c.removeRotating(ctx))
}

// underApplications does something while applications of two libraries for each user do
// 1,000 commands a second together, and returns how many they did and how many failed.
func (c *subject) underApplications(ctx context.Context, users []string, do func() error) (commands, failed int, err error) {
	var programs []oracle.Application
	for _, library := range []string{"go-redis", "rueidis"} {
		for _, user := range users {
			programs = append(programs, oracle.Application{Library: library, User: user, Pace: applicationPace * time.Duration(len(users)) / 2})
		}
	}
	at, err := oracle.Services(ctx, c.api, c.key)
	if err != nil {
		return 0, 0, err
	}
	used, err := oracle.Use(ctx, c.api, c.key, at, programs)
	if err != nil {
		return 0, 0, err
	}
	began := c.clock.Now()
	err = do()
	for _, usage := range used.Stop() {
		commands, failed = commands+usage.Commands, failed+usage.Failed
		if usage.Failed > 0 {
			c.say("%+v", usage)
		}
	}
	c.say("%d commands, %.0f a second", commands, float64(commands)/c.clock.Since(began).Seconds())
	return commands, failed, err
}

// rotationTime changes the password in a Secret of a person's own.
func rotationTime(ctx context.Context, s *suite, n int) ([]result, error) {
	c, err := s.newRotating(ctx)
	if err != nil {
		return nil, err
	}
	times, err := c.rotations(ctx, n, oracle.Credential{User: oracle.GivenUser, Secret: oracle.GivenSecret})
	if err != nil {
		return nil, err
	}
	return []result{distribution("ms, Secret changed → every member lets in with the new password; value is p99", times, rotationTarget, p99)},
		c.removeRotating(ctx)
}

// newRotating makes a cluster with the users.
func (s *suite) newRotating(ctx context.Context) (*subject, error) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: oracle.GivenSecret},
		StringData: map[string]string{naming.KeyPassword: "the-first-password-that-is-given"}}
	if err := s.api.Create(ctx, secret); err != nil {
		return nil, fmt.Errorf("create Secret %s: %w", oracle.GivenSecret, err)
	}
	c, err := s.newSubject(ctx, false)
	if err != nil {
		return nil, err
	}
	cluster := c.reference()
	if err := s.api.Get(ctx, c.key, cluster); err != nil {
		return nil, fmt.Errorf("read RedisCluster %s: %w", c.key, err)
	}
	before := cluster.DeepCopy()
	cluster.Spec.Auth = oracle.RotatingAuth()
	if err := s.api.Patch(ctx, cluster, client.MergeFrom(before)); err != nil {
		return nil, fmt.Errorf("give RedisCluster %s users: %w", c.key, err)
	}
	return c, s.awaitReady(ctx, cluster)
}

func (c *subject) removeRotating(ctx context.Context) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: oracle.GivenSecret}}
	return errors.Join(c.remove(ctx), c.api.Delete(ctx, secret))
}

// rotations replaces each password n times, and returns how long each took to be in
// force everywhere, in milliseconds.
func (c *subject) rotations(ctx context.Context, n int, credentials ...oracle.Credential) ([]float64, error) {
	var times []float64
	for range n {
		for _, credential := range credentials {
			rotated, err := oracle.Rotate(ctx, c.api, c.key, credential)
			if err != nil {
				return nil, err
			}
			times = append(times, milliseconds(rotated.InForce))
			c.say("%s: in force after %.0f ms, the old one refused after %.0f ms", credential.User, milliseconds(rotated.InForce), milliseconds(rotated.Over))
		}
	}
	return times, nil
}
