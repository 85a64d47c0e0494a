package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/test/e2e/kubeapi"
)

const (
	clientPod = "client"
	// programInPod is where this program is copied to.
	programInPod = "/tmp/demo"
	// withPassword runs a command with the password that it reads from its
	// standard input: arguments can be seen by others.
	withPassword = `read -r REDISCLI_AUTH; export REDISCLI_AUTH; exec "$@"` //nolint:gosec // Reads the password from its input; it holds none.
)

// use starts a pod with redis-cli and lets it write and read, as an application
// does.
func (d *demo) use(ctx context.Context) error {
	if err := d.startClient(ctx); err != nil {
		return err
	}
	greeting := fmt.Sprintf("hello-%d", d.screen.clock.Now().Unix())
	d.note = greeting
	if err := d.redis(ctx, d.memory, naming.PrimaryService, "OK", "SET", "greeting", greeting); err != nil {
		return err
	}
	if err := d.redis(ctx, d.memory, naming.ReplicasService, greeting, "GET", "greeting"); err != nil {
		return err
	}
	if err := d.redis(ctx, d.volumes, naming.PrimaryService, "OK", "SET", "note", greeting); err != nil {
		return err
	}
	d.screen.result("write through NAME-primary, read through NAME-replicas", "both answer")
	return d.carry(ctx)
}

// startClient runs the image of the Redis pods: it has redis-cli and a shell.
func (d *demo) startClient(ctx context.Context) error {
	set := &appsv1.StatefulSet{}
	if err := d.api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: naming.StatefulSet(d.memory.Name)}, set); err != nil {
		return fmt.Errorf("read the image of the Redis pods: %w", err)
	}
	d.pod = &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: clientPod, Namespace: namespace},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To[int64](0),
			AutomountServiceAccountToken:  new(false),
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), RunAsUser: ptr.To[int64](1000),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{
				Name: clientPod, Image: set.Spec.Template.Spec.Containers[0].Image, Command: []string{"sleep", "infinity"},
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false),
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
				VolumeMounts: []corev1.VolumeMount{{Name: "tmp", MountPath: "/tmp"}},
			}},
			Volumes: []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		},
	}
	if err := d.api.Create(ctx, d.pod); err != nil {
		return fmt.Errorf("create the client pod: %w", err)
	}
	if err := kubeapi.Await(ctx, d.api, d.pod, func(pod *corev1.Pod) (bool, error) {
		return pod.Status.Phase == corev1.PodRunning, nil
	}); err != nil {
		return err
	}
	d.screen.line("pod/%s runs; passwords are in the Secrets %s and %s",
		clientPod, naming.AppSecret(d.memory.Name), naming.AppSecret(d.volumes.Name))
	return nil
}

// How often and how long redis tries.
const (
	retryInterval = 200 * time.Millisecond
	retryTimeout  = 5 * time.Second
)

// redis runs redis-cli in the client pod and expects a reply.
func (d *demo) redis(ctx context.Context, cluster *v1alpha1.RedisCluster, service func(string) string, want string, command ...string) error {
	words := append([]string{"redis-cli", "-h", service(cluster.Name)}, command...)
	d.screen.command(fmt.Sprintf("kubectl -n %s exec %s -- %s", namespace, clientPod, strings.Join(words, " ")))
	password, err := d.password(ctx, cluster)
	if err != nil {
		return err
	}
	var got bytes.Buffer
	run := append([]string{"sh", "-c", withPassword, "sh"}, words...)
	// The kube-proxy of a node may be a moment behind a Service that is new: as an
	// application does, try again.
	var refused error
	err = wait.PollUntilContextTimeout(ctx, retryInterval, retryTimeout, true, func(ctx context.Context) (bool, error) {
		got.Reset()
		refused = d.api.Exec(ctx, d.pod, strings.NewReader(password+"\n"), &got, run...)
		return refused == nil, nil
	})
	if err != nil {
		return errors.Join(refused, err)
	}
	reply := strings.TrimSpace(got.String())
	d.screen.line("%s", reply)
	if reply != want {
		return fmt.Errorf("%s answered %q, want %q", strings.Join(words, " "), reply, want)
	}
	return nil
}

// password is what the Secret for applications holds.
func (d *demo) password(ctx context.Context, cluster *v1alpha1.RedisCluster) (string, error) {
	secret := &corev1.Secret{}
	if err := d.api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: naming.AppSecret(cluster.Name)}, secret); err != nil {
		return "", fmt.Errorf("read the password of %s: %w", cluster.Name, err)
	}
	return string(secret.Data[naming.KeyPassword]), nil
}

// carry copies this program into the client pod, where it will be the writer:
// what it measures is then what an application sees.
func (d *demo) carry(ctx context.Context) error {
	path, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	program, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read this program: %w", err)
	}
	defer program.Close() //nolint:errcheck // Only read.
	began := d.screen.clock.Now()
	if err := d.api.Exec(ctx, d.pod, program, nil, "sh", "-c", "cat >"+programInPod+" && chmod +x "+programInPod); err != nil {
		return fmt.Errorf("copy this program into the client pod: %w", err)
	}
	d.screen.line("copied a writer into the client pod in %s", d.screen.clock.Since(began).Round(10*time.Millisecond))
	return nil
}
