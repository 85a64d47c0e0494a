package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"seang.org/operator/test/cluster/cgroup"
	"seang.org/operator/test/cluster/controlplane"
	"seang.org/operator/test/cluster/host"
	"seang.org/operator/test/cluster/layout"
	"seang.org/operator/test/cluster/lifecycle"
	"seang.org/operator/test/cluster/network"
	"seang.org/operator/test/cluster/node"
	"seang.org/operator/test/cluster/process"
	"seang.org/operator/test/cluster/registry"
	"seang.org/operator/test/cluster/storage"
)

const (
	selfTest   = "selftest"
	neighbour  = "neighbour"
	probeImage = "registry.example.com/cluster/probe:v1"
)

// TestMain lets the test's program be what a cluster's own parts start from.
func TestMain(m *testing.M) {
	commands := []string{process.LaunchCommand, controlplane.ForwardCommand, controlplane.RegistryCommand, controlplane.StorageCommand}
	if len(os.Args) > 1 && slices.Contains(commands, os.Args[1]) {
		main()
		return
	}
	os.Exit(m.Run())
}

// suite is a running cluster with the image of the tests in its registry.
type suite struct {
	cluster *lifecycle.Cluster
	client  kubernetes.Interface
}

// TestCluster goes through the life of a cluster. The parts build on each other:
// a cluster a part would take many times as long.
func TestCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a whole cluster")
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	// Before hostState, which lists the rules of nft only where nft is installed.
	if err := host.EnsurePackages(t.Context(), os.Stderr); err != nil {
		t.Fatal(err)
	}
	cluster := newCluster(t, selfTest, 3)
	others, err := layout.List()
	if err != nil {
		t.Fatal(err)
	}
	alone := len(others) == 0
	before := hostState(t, alone)
	s := &suite{cluster: cluster}
	t.Cleanup(func() { down(t, cluster) })

	for _, part := range []struct {
		name string
		run  func(t *testing.T)
	}{
		{"up makes a cluster of three ready nodes", s.testUp},
		{"up again changes nothing", s.testUpAgain},
		{"up repairs what was killed", s.testRepair},
		{"restricted pods run on every node and reach each other", s.testPods},
		{"an image that no one has loaded fails at once", s.testAbsentImage},
		{"a volume has its size, fills up, grows in use and is freed", s.testVolume},
		{"a node that is cut off is not ready, and comes back", s.testNodeCut},
		{"a second cluster lives beside the first", s.testNeighbour},
	} {
		if !t.Run(part.name, part.run) {
			t.FailNow()
		}
	}
	t.Run("down leaves nothing", func(t *testing.T) {
		down(t, cluster)
		if left := leftovers(t, cluster.Layout); len(left) > 0 {
			t.Errorf("left over:\n%s", strings.Join(left, "\n"))
		}
		if after := hostState(t, alone); after != before {
			t.Errorf("the host has changed\nbefore:\n%s\nafter:\n%s", before, after)
		}
	})
}

func newCluster(t *testing.T, name string, nodes int) *lifecycle.Cluster {
	t.Helper()
	l, err := layout.New(name, nodes)
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := lifecycle.New(l)
	if err != nil {
		t.Fatal(err)
	}
	return cluster
}

func up(t *testing.T, cluster *lifecycle.Cluster) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	began := time.Now()
	if err := cluster.Up(ctx, os.Stderr); err != nil {
		t.Fatal(err)
	}
	return time.Since(began)
}

func down(t *testing.T, cluster *lifecycle.Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	began := time.Now()
	if err := cluster.Down(ctx); err != nil {
		t.Fatal(err)
	}
	t.Logf("down took %s", time.Since(began).Round(time.Millisecond))
}

func (s *suite) testUp(t *testing.T) {
	t.Logf("up took %s", up(t, s.cluster).Round(time.Millisecond))
	client, err := s.cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	s.client = client
	status, err := s.cluster.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !status.Up || len(status.Nodes) != 3 {
		t.Errorf("status is %+v, want 3 ready nodes", status)
	}
	t.Logf("memory: %d MiB", status.MemoryBytes>>20)
	pushProbe(t, s.cluster)
}

func pushProbe(t *testing.T, cluster *lifecycle.Cluster) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "probe")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./testdata/probe")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the probe: %v\n%s", err, output)
	}
	image, err := registry.BinaryImage(program, "/probe")
	if err != nil {
		t.Fatal(err)
	}
	address, err := cluster.RegistryAddress()
	if err != nil {
		t.Fatal(err)
	}
	if err := registry.PushImage(t.Context(), address, probeImage, image); err != nil {
		t.Fatal(err)
	}
}

func (s *suite) testUpAgain(t *testing.T) {
	before := s.pids(t)
	took := up(t, s.cluster)
	for name, pid := range s.pids(t) {
		if before[name] != pid {
			t.Errorf("%s was process %d and is %d", name, before[name], pid)
		}
	}
	if took > 15*time.Second {
		t.Errorf("it took %s, want at most 15 s", took)
	}
	t.Logf("up again took %s", took.Round(time.Millisecond))
}

func (s *suite) pids(t *testing.T) map[string]int {
	t.Helper()
	processes, err := s.cluster.Processes().List()
	if err != nil {
		t.Fatal(err)
	}
	pids := map[string]int{}
	for _, p := range processes {
		if !p.Running {
			t.Errorf("%s does not run", p.Name)
		}
		pids[p.Name] = p.PID
	}
	return pids
}

func (s *suite) testRepair(t *testing.T) {
	victims := []string{"kube-scheduler", node.KubeletName(s.cluster.Layout.Node(2)), "registry"}
	before := s.pids(t)
	for _, name := range victims {
		if err := s.cluster.Processes().Kill(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	up(t, s.cluster)
	after := s.pids(t)
	for _, name := range victims {
		if before[name] == after[name] {
			t.Errorf("%s still is process %d", name, after[name])
		}
	}
}

func (s *suite) testAbsentImage(t *testing.T) {
	const name = "absent"
	pod := probePod(name, "registry.example.com/cluster/absent:v1", "serve", ":8080")
	began := time.Now()
	s.create(t, pod)
	s.await(t, "the pull fails", func(ctx context.Context) error {
		got, err := s.client.CoreV1().Pods(testNamespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, status := range got.Status.ContainerStatuses {
			waiting := status.State.Waiting
			if waiting != nil && strings.HasPrefix(waiting.Reason, "ErrImagePull") && strings.Contains(waiting.Message, "not found") {
				return nil
			}
			if waiting != nil && waiting.Reason == "ImagePullBackOff" {
				return nil
			}
		}
		return fmt.Errorf("container statuses %+v", got.Status.ContainerStatuses)
	})
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("it took %s, want at most 15 s", took)
	}
}

func (s *suite) testNodeCut(t *testing.T) {
	l := s.cluster.Layout
	victim := l.Node(3)
	if err := network.Cut(l, victim); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	s.awaitNode(t, victim, corev1.ConditionUnknown)
	t.Logf("not ready after %s", time.Since(began).Round(time.Millisecond))
	if err := network.Heal(l, victim); err != nil {
		t.Fatal(err)
	}
	began = time.Now()
	s.awaitNode(t, victim, corev1.ConditionTrue)
	t.Logf("ready again after %s", time.Since(began).Round(time.Millisecond))
}

func (s *suite) awaitNode(t *testing.T, n layout.Node, want corev1.ConditionStatus) {
	t.Helper()
	s.await(t, fmt.Sprintf("%s has Ready=%s", n.Name(), want), func(ctx context.Context) error {
		object, err := s.client.CoreV1().Nodes().Get(ctx, n.Name(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range object.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == want {
				return nil
			}
		}
		return fmt.Errorf("conditions %+v", object.Status.Conditions)
	})
}

func (s *suite) testNeighbour(t *testing.T) {
	other := newCluster(t, neighbour, 1)
	t.Cleanup(func() { down(t, other) })
	t.Logf("up took %s", up(t, other).Round(time.Millisecond))
	client, err := other.Client()
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(nodes.Items) != 1 {
		t.Errorf("the second cluster has %d nodes, want 1", len(nodes.Items))
	}
	down(t, other)
	if left := leftovers(t, other.Layout); len(left) > 0 {
		t.Errorf("left over:\n%s", strings.Join(left, "\n"))
	}
	s.pids(t) // all of the first cluster still run
}

// leftovers returns all that a cluster should have taken with it.
func leftovers(t *testing.T, l layout.Layout) []string {
	t.Helper()
	var left []string
	pids, err := cgroup.Processes(l.Cgroup())
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		left = append(left, fmt.Sprintf("process %d", pid))
	}
	mounts, err := lifecycle.Mounts(l.RuntimeDir(), l.DataDir())
	if err != nil {
		t.Fatal(err)
	}
	left = append(left, mounts...)
	left = append(left, storage.Loops(l.DataDir())...)
	left = append(left, network.Namespaces(l)...)
	left = append(left, cgroup.Leftovers(l.Cgroup())...)
	left = append(left, lifecycle.Outside(l)...)
	for _, path := range []string{l.RuntimeDir(), l.DataDir(), l.LockFile()} {
		if _, err := os.Stat(path); err == nil {
			left = append(left, path)
		}
	}
	return append(left, processesIn(l.DataDir(), l.RuntimeDir())...)
}

// processesIn finds processes by their command line, in case one has left the
// cluster's control groups.
func processesIn(dirs ...string) []string {
	var found []string
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		cmdline, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for _, dir := range dirs {
			if strings.Contains(string(cmdline), dir+"/") {
				found = append(found, strings.ReplaceAll(string(cmdline), "\x00", " "))
			}
		}
	}
	return found
}

// hostState is what a cluster must not change of the host: its network and, as
// long as no other cluster is there that needs them, its kernel settings and the
// directories that several programs share.
func hostState(t *testing.T, alone bool) string {
	t.Helper()
	var state strings.Builder
	show := func(file string) {
		content, err := os.ReadFile(file)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		fmt.Fprintf(&state, "%s\n%s\n", file, content)
	}
	for _, file := range []string{"/proc/thread-self/net/dev_mcast", "/proc/thread-self/net/fib_trie", "/proc/thread-self/net/if_inet6", "/proc/sys/net/ipv4/ip_forward"} {
		show(file)
	}
	rules, err := exec.CommandContext(t.Context(), "nft", "list", "ruleset").CombinedOutput()
	if err == nil {
		fmt.Fprintf(&state, "nft\n%s\n", rules)
	}
	if !alone {
		return state.String()
	}
	for _, file := range []string{"/proc/sys/vm/overcommit_memory", "/proc/sys/kernel/panic", "/proc/sys/kernel/panic_on_oops"} {
		show(file)
	}
	for _, dir := range []string{
		"/run/containerd", "/run/redis-operator", "/run/nri", "/opt/containerd", "/opt/cni", "/etc/containerd",
		"/usr/libexec/kubernetes", "/var/lib/cni", "/var/lib/kubelet", "/var/log/containers", "/var/log/pods",
	} {
		_, err := os.Stat(dir)
		fmt.Fprintf(&state, "%s exists: %t\n", dir, err == nil)
	}
	return state.String()
}
