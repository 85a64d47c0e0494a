package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"

	"seang.org/operator/test/cluster/layout"
	"seang.org/operator/test/cluster/network"
)

const (
	testNamespace = "cluster-test"
	// fsGroup is that of the pods: a volume has to be writable for it.
	fsGroup = 4711
)

func probePod(name, image string, args ...string) *corev1.Pod {
	yes, no, group := true, false, int64(fsGroup)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: testNamespace, Labels: map[string]string{"app": "probe"}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64(1)),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: &yes, FSGroup: &group,
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "probe", Image: image, Args: args,
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: &no,
					Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
}

func (s *suite) create(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	if _, err := s.client.CoreV1().Pods(testNamespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// await waits until check returns nil.
func (s *suite) await(t *testing.T, what string, check func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("not within a minute: %s: %v", what, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (s *suite) awaitRunning(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	var pod *corev1.Pod
	s.await(t, "pod "+name+" runs", func(ctx context.Context) (err error) {
		if pod, err = s.client.CoreV1().Pods(testNamespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		if pod.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("status %+v", pod.Status)
		}
		return nil
	})
	return pod
}

// exec runs a command in a pod and returns what it prints.
func (s *suite) exec(t *testing.T, pod string, command ...string) (string, error) {
	t.Helper()
	config, err := s.cluster.Config()
	if err != nil {
		t.Fatal(err)
	}
	request := s.client.CoreV1().RESTClient().Post().Namespace(testNamespace).Resource("pods").Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: command, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	executor, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, request.URL())
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	err = executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: &stdout, Stderr: &stderr})
	if err != nil {
		err = fmt.Errorf("%w: %s", err, &stderr)
	}
	return stdout.String(), err
}

func (s *suite) testPods(t *testing.T) {
	s.createNamespace(t)
	const service = "probe"
	_, err := s.client.CoreV1().Services(testNamespace).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: service},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "probe"},
			Ports:    []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range s.cluster.Layout.AllNodes() {
		pod := probePod(n.Name(), probeImage, "serve", ":8080")
		pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: n.Name()}
		s.create(t, pod)
	}
	for _, n := range s.cluster.Layout.AllNodes() {
		s.testReach(t, n, service)
	}
}

func (s *suite) createNamespace(t *testing.T) {
	t.Helper()
	_, err := s.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: testNamespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.await(t, "the namespace has its service account", func(ctx context.Context) error {
		_, err := s.client.CoreV1().ServiceAccounts(testNamespace).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// testReach looks at the Service from a pod, and at the pod from outside.
func (s *suite) testReach(t *testing.T, n layout.Node, service string) {
	t.Helper()
	pod := s.awaitRunning(t, n.Name())
	if pod.Spec.NodeName != n.Name() {
		t.Errorf("pod %s is on %s", pod.Name, pod.Spec.NodeName)
	}
	host := service + "." + testNamespace + ".svc." + layout.ClusterDomain
	s.await(t, "the Service answers in "+n.Name(), func(context.Context) error {
		answer, err := s.exec(t, pod.Name, "/probe", "get", "http://"+host)
		if err == nil && !strings.HasPrefix(answer, "node-") {
			err = fmt.Errorf("the answer is %q", answer)
		}
		return err
	})
	if err := network.Reachable(t.Context(), s.cluster.Layout.ControlPlaneNamespace(), pod.Status.PodIP+":8080"); err != nil {
		t.Errorf("the pod from the control plane: %v", err)
	}
	found, err := s.client.CoreV1().Services(testNamespace).Get(t.Context(), service, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := network.Reachable(t.Context(), s.cluster.Layout.ControlPlaneNamespace(), found.Spec.ClusterIP+":80"); err != nil {
		t.Errorf("the Service from the control plane: %v", err)
	}
}

const mebi = 1 << 20

func (s *suite) testVolume(t *testing.T) {
	const name = "volume"
	claims := s.client.CoreV1().PersistentVolumeClaims(testNamespace)
	_, err := claims.Create(t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("64Mi")}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod := probePod(name, probeImage, "serve", ":8080")
	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
	}}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	s.create(t, pod)
	s.awaitRunning(t, name)
	s.expectSize(t, name, 64*mebi)
	if _, err := s.exec(t, name, "/probe", "fill", "/data/file", strconv.Itoa(100*mebi)); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("writing 100 MiB to 64 MiB gives %v, want: no space left", err)
	}

	patch := []byte(`{"spec":{"resources":{"requests":{"storage":"128Mi"}}}}`)
	if _, err := claims.Patch(t.Context(), name, "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	s.await(t, "the claim has grown", func(ctx context.Context) error {
		claim, err := claims.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if has := claim.Status.Capacity[corev1.ResourceStorage]; has.String() != "128Mi" {
			return fmt.Errorf("capacity %s", has.String())
		}
		return nil
	})
	s.expectSize(t, name, 128*mebi)
	if _, err := s.exec(t, name, "/probe", "fill", "/data/file", strconv.Itoa(100*mebi)); err != nil {
		t.Errorf("writing 100 MiB to 128 MiB: %v", err)
	}
	s.deleteVolume(t, name)
}

// expectSize looks at the filesystem from inside the pod. The filesystem's own
// tables may take an eighth.
func (s *suite) expectSize(t *testing.T, pod string, want int64) {
	t.Helper()
	output, err := s.exec(t, pod, "/probe", "size", "/data")
	if err != nil {
		t.Fatal(err)
	}
	size, err := strconv.ParseInt(output, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if size > want || size < want-want/8 {
		t.Errorf("the filesystem has %d bytes, want about %d", size, want)
	}
}

func (s *suite) deleteVolume(t *testing.T, name string) {
	t.Helper()
	claim, err := s.client.CoreV1().PersistentVolumeClaims(testNamespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(
		s.client.CoreV1().Pods(testNamespace).Delete(t.Context(), name, metav1.DeleteOptions{}),
		s.client.CoreV1().PersistentVolumeClaims(testNamespace).Delete(t.Context(), name, metav1.DeleteOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	s.await(t, "the volume is gone", func(ctx context.Context) error {
		_, err := s.client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("the API server has it still: %w", err)
		}
		files, err := filepath.Glob(filepath.Join(s.cluster.Layout.VolumesDir(), claim.Spec.VolumeName+"*"))
		if err == nil && len(files) > 0 {
			err = fmt.Errorf("files %v are left", files)
		}
		return err
	})
	if _, err := os.Stat(s.cluster.Layout.VolumesDir()); err != nil {
		t.Errorf("the directory of volumes: %v", err)
	}
}
