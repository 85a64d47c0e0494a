package oracle

import (
	"context"
	"fmt"
	"net"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/admin"
)

// Target is how to reach a Redis.
type Target struct {
	// Address is host:port of a Service or a pod.
	Address string
	// Username and Password log in.
	Username, Password string
	// Dial connects where the address is not to be dialled from here; nil dials it.
	Dial func(ctx context.Context) (net.Conn, error) `json:"-"`
}

func (t Target) dial(ctx context.Context) (net.Conn, error) {
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
	return Target{Address: admin.Address(service.Spec.ClusterIP),
		Username: string(secret[naming.KeyUsername]), Password: string(secret[naming.KeyPassword])}, nil
}

// OperatorTarget logs in at one pod of the RedisCluster with that key as the
// operator does.
func OperatorTarget(ctx context.Context, api client.Reader, cluster client.ObjectKey, pod *corev1.Pod) (Target, error) {
	secret, err := secret(ctx, api, cluster.Namespace, naming.SystemSecret(cluster.Name))
	if err != nil {
		return Target{}, err
	}
	return Target{Address: admin.Address(pod.Status.PodIP), Username: naming.UserOperator,
		Password: string(secret[naming.KeyOperatorPassword])}, nil
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
