package kubeapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
)

// Exec runs a command in the first container of a pod until it ends. Stdin and
// stdout may be nil. What the command says on its standard error is part of
// the error.
func (a *API) Exec(ctx context.Context, pod *corev1.Pod, stdin io.Reader, stdout io.Writer, command ...string) error {
	var stderr bytes.Buffer
	if stdout == nil {
		stdout = io.Discard
	}
	url := a.Typed.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: pod.Spec.Containers[0].Name, Command: command,
			Stdin: stdin != nil, Stdout: true, Stderr: true}, scheme.ParameterCodec).URL()
	socket, err := remotecommand.NewWebSocketExecutor(a.Config, "GET", url.String())
	if err != nil {
		return fmt.Errorf("run %s in pod %s: %w", command[0], pod.Name, err)
	}
	spdy, err := remotecommand.NewSPDYExecutor(a.Config, "POST", url)
	if err != nil {
		return fmt.Errorf("run %s in pod %s: %w", command[0], pod.Name, err)
	}
	executor, err := remotecommand.NewFallbackExecutor(socket, spdy, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	if err != nil {
		return fmt.Errorf("run %s in pod %s: %w", command[0], pod.Name, err)
	}
	if err := executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: stdin, Stdout: stdout, Stderr: &stderr}); err != nil {
		return fmt.Errorf("run %s in pod %s: %w: %s", command[0], pod.Name, err, strings.TrimSpace(stderr.String()))
	}
	return nil
}

// ErrElsewhere: the pod's processes are not on this machine.
var ErrElsewhere = errors.New("runs on another machine")

// Kill ends the processes of the named program in a pod at once, as kill -9
// does: the program is not asked, and saves nothing. From within a container
// its first process cannot be killed, so it is done from the machine that the
// pod runs on, which must be this one: so it is with an embedded Kubernetes.
func Kill(pod *corev1.Pod, program string) error { return Signal(pod, program, syscall.SIGKILL) }

// Signal sends a signal to the processes of the named program in a pod, as Kill does.
func Signal(pod *corev1.Pod, program string, signal syscall.Signal) error {
	pids, err := Processes(pod, program)
	if err != nil {
		return err
	}
	if len(pids) == 0 {
		return fmt.Errorf("%s of pod %s: %w", program, pod.Name, ErrElsewhere)
	}
	return SignalProcesses(pids, signal)
}

// SignalProcesses sends a signal to processes of this machine. Those that ended
// meanwhile, as the children of a server do, do not matter while one lives.
func SignalProcesses(pids []int, signal syscall.Signal) error {
	signalled := false
	for _, pid := range pids {
		err := syscall.Kill(pid, signal)
		if err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("signal process %d: %w", pid, err)
		}
		signalled = signalled || err == nil
	}
	if !signalled {
		return fmt.Errorf("signal processes %v: %w", pids, syscall.ESRCH)
	}
	return nil
}

// Processes finds the processes of the named program in a pod, by the control
// group that the kubelet names after the pod's UID. There are none if the pod
// runs on another machine.
func Processes(pod *corev1.Pod, program string) ([]int, error) {
	files, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return nil, fmt.Errorf("list the processes of this machine: %w", err)
	}
	var found []int
	for _, file := range files {
		group, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("find the processes of pod %s: %w", pod.Name, err)
		}
		// The systemd driver writes the UID with underscores.
		if !strings.Contains(strings.ReplaceAll(string(group), "_", "-"), string(pod.UID)) {
			continue
		}
		name, err := os.ReadFile(filepath.Join(filepath.Dir(file), "comm"))
		if err != nil || strings.TrimSpace(string(name)) != program {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			return nil, fmt.Errorf("read the process number of %s: %w", file, err)
		}
		found = append(found, pid)
	}
	return found, nil
}
