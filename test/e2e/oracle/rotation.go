package oracle

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/admin"
)

// Users of a RedisCluster whose passwords are replaced: the password of one is generated,
// that of the other is in a Secret that a person changes.
const (
	GeneratedUser = "generated"
	GivenUser     = "given"
	GivenSecret   = "given-password"
)

// RotationOverlap in seconds is longer than an application uses what it has read.
const RotationOverlap = 5

// RotatingAuth is the part of a spec with these users.
func RotatingAuth() *v1alpha1.AuthSpec {
	return &v1alpha1.AuthSpec{OverlapSeconds: new(int32(RotationOverlap)), Users: []v1alpha1.UserSpec{
		{Name: GeneratedUser, Rules: "~app:* +@read +@write +@connection"},
		{Name: GivenUser, Rules: "~app:* +@all", SecretName: GivenSecret},
	}}
}

// rotationInterval is how often it is tried whether a password works.
const rotationInterval = 50 * time.Millisecond

// Credential is a password that can be replaced.
type Credential struct {
	// User has it: one of the RedisCluster, or the operator or the replication.
	User string
	// Secret of the user's own that has it; empty if it is generated.
	Secret string
}

func (c Credential) system() bool {
	return c.User == naming.UserOperator || c.User == naming.UserReplication
}

// Rotated is what was seen of a rotation.
type Rotated struct {
	// InForce is how long it took from the request until every member let the user in
	// with the new password, and Over until none did with the old one.
	InForce, Over time.Duration
	// Old and New are the passwords.
	Old, New string
}

// Rotate replaces a password, as a person does, and waits until the old one is refused.
func Rotate(ctx context.Context, api client.Client, cluster client.ObjectKey, c Credential) (Rotated, error) {
	old, err := passwordOf(ctx, api, cluster, c)
	if err != nil {
		return Rotated{}, err
	}
	time, r := clock.RealClock{}, Rotated{Old: old}
	began := time.Now()
	if err := ask(ctx, api, cluster, c); err != nil {
		return r, err
	}
	err = poll(ctx, "the new password of "+c.User+" works", func(ctx context.Context) error {
		if r.New, err = passwordOf(ctx, api, cluster, c); err != nil {
			return err
		}
		if r.New == old {
			return errors.New("there is none yet")
		}
		return letIn(ctx, api, cluster, Target{Username: c.User, Password: r.New}, true)
	})
	if err != nil {
		return r, err
	}
	r.InForce = time.Since(began)
	err = poll(ctx, "the old password of "+c.User+" is refused", func(ctx context.Context) error {
		return letIn(ctx, api, cluster, Target{Username: c.User, Password: old}, false)
	})
	r.Over = time.Since(began)
	return r, err
}

// ask changes the Secret of the user's own, or requests a rotation.
func ask(ctx context.Context, api client.Client, cluster client.ObjectKey, c Credential) error {
	var object client.Object = &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name}}
	asked := c.User
	if c.system() {
		asked = "system"
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, naming.AnnotationRotate, asked)
	if c.Secret != "" {
		object = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: c.Secret}}
		patch = fmt.Sprintf(`{"stringData":{%q:%q}}`, naming.KeyPassword, rand.Text())
	}
	if err := api.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		return fmt.Errorf("ask for a new password of %s: %w", c.User, err)
	}
	return nil
}

// passwordOf is the password that a user is to have, or that its Secret tells.
func passwordOf(ctx context.Context, api client.Reader, cluster client.ObjectKey, c Credential) (string, error) {
	name, key := naming.UserSecret(cluster.Name, c.User), naming.KeyPassword
	switch {
	case c.User == naming.UserOperator:
		name, key = naming.SystemSecret(cluster.Name), naming.KeyOperatorPassword
	case c.User == naming.UserReplication:
		name, key = naming.SystemSecret(cluster.Name), naming.KeyReplicationPassword
	case c.Secret != "":
		name = c.Secret
	}
	data, err := secret(ctx, api, cluster.Namespace, name)
	return string(data[key]), err
}

// letIn says where a member does not let a login in, or does.
func letIn(ctx context.Context, api client.Reader, cluster client.ObjectKey, login Target, wanted bool) error {
	pods := &corev1.PodList{}
	if err := api.List(ctx, pods, client.InNamespace(cluster.Namespace), client.MatchingLabels(naming.Selector(cluster.Name))); err != nil {
		return fmt.Errorf("list the pods: %w", err)
	}
	for _, pod := range pods.Items {
		login.Address = admin.Address(pod.Status.PodIP, false)
		conn, err := Dial(ctx, login)
		conn.Close()
		refused := err != nil && strings.Contains(err.Error(), "WRONGPASS")
		if err != nil && !refused || refused == wanted {
			return fmt.Errorf("%s: let in: %t: %w", pod.Name, err == nil, err)
		}
	}
	return nil
}

// rotationTimeout bounds each wait: the operator reads a Secret that it does not own
// every 30 s.
const rotationTimeout = 90 * time.Second

// poll tries until it succeeds.
func poll(ctx context.Context, what string, try func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, rotationInterval, rotationTimeout, true, func(ctx context.Context) (bool, error) {
		last = try(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait until %s: %w: %w", what, err, last)
	}
	return nil
}
