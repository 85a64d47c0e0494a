// Package node describes the processes of a node and removes what they leave.
package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"seang.org/operator/test/cluster/cgroup"
	"seang.org/operator/test/cluster/controlplane"
	"seang.org/operator/test/cluster/host"
	"seang.org/operator/test/cluster/layout"
	"seang.org/operator/test/cluster/pki"
	"seang.org/operator/test/cluster/process"
	"seang.org/operator/test/cluster/settings"
)

// Prepare makes the directories and the control group of a node.
func Prepare(n layout.Node) error {
	for _, dir := range []string{n.RuntimeDir(), n.ShimDir(), n.Dir()} {
		if err := os.MkdirAll(dir, 0o711); err != nil {
			return fmt.Errorf("make the directories of %s: %w", n.Name(), err)
		}
	}
	return cgroup.Create(n.Cgroup())
}

// ContainerdName is the name of a node's container runtime process.
func ContainerdName(n layout.Node) string { return "containerd-" + n.Name() }

// KubeletName is the name of a node's kubelet process.
func KubeletName(n layout.Node) string { return "kubelet-" + n.Name() }

// ProxyName is the name of a node's kube-proxy process.
func ProxyName(n layout.Node) string { return "kube-proxy-" + n.Name() }

// ContainerdSpec describes the container runtime of a node.
func ContainerdSpec(n layout.Node) process.Spec {
	config := filepath.Join(n.Dir(), "containerd.toml")
	return process.Spec{
		Name:      ContainerdName(n),
		Namespace: n.Namespace(),
		Command:   []string{"containerd", "--config=" + config},
		Files: map[string]string{
			config: containerdConfig(n),
			filepath.Join(cniConfigDir(n), "10-cluster.conflist"):         cniConfig(n),
			filepath.Join(registryConfigDir(n), "_default", "hosts.toml"): registryConfig(),
		},
		KeepChildren: true,
		Ready: func(ctx context.Context) error {
			connection, err := new(net.Dialer).DialContext(ctx, "unix", n.Socket())
			if err != nil {
				return err
			}
			return connection.Close()
		},
	}
}

func cniConfigDir(n layout.Node) string      { return filepath.Join(n.Dir(), "cni") }
func registryConfigDir(n layout.Node) string { return filepath.Join(n.Dir(), "registries") }

// containerdConfig keeps everything of a node's containerd within the node's
// directories: by default several would share some.
func containerdConfig(n layout.Node) string {
	return fmt.Sprintf(`version = 3
root = %q
state = %q

[grpc]
  address = %q
[ttrpc]
  address = %q

[plugins."io.containerd.shim.v1.manager"]
  socket_dir = %q
[plugins."io.containerd.internal.v1.opt"]
  path = %q
[plugins."io.containerd.nri.v1.nri"]
  disable = true

[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = %q
[plugins."io.containerd.cri.v1.images".registry]
  config_path = %q

[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = [%q]
    conf_dir = %q
    use_internal_loopback = true
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
      Root = %q
`,
		filepath.Join(n.Dir(), "containerd"), filepath.Join(n.RuntimeDir(), "containerd"),
		n.Socket(), n.Socket()+".ttrpc",
		n.ShimDir(), filepath.Join(n.Dir(), "opt"),
		layout.PauseImage, registryConfigDir(n),
		host.CNIDir(), cniConfigDir(n),
		filepath.Join(n.RuntimeDir(), "runc"))
}

// registryConfig makes the cluster's registry the only one: containerd asks the
// registry of an image's name as well, unless the server is another.
func registryConfig() string {
	return fmt.Sprintf(`server = "http://%[1]s"
[host."http://%[1]s"]
  capabilities = ["pull", "resolve"]
`, layout.Registry())
}

// cniConfig routes between pods even on one node. On a bridge, an answer would
// go directly to the other pod, past the rules that undo a Service's address.
func cniConfig(n layout.Node) string {
	return fmt.Sprintf(`{
  "cniVersion": "1.0.0",
  "name": %q,
  "plugins": [{
    "type": "ptp",
    "ipMasq": false,
    "ipam": {
      "type": "host-local",
      "dataDir": %q,
      "ranges": [[{"subnet": %q}]],
      "routes": [{"dst": "0.0.0.0/0"}]
    }
  }]
}
`, n.Network(), filepath.Join(n.Dir(), "addresses"), n.PodSubnet())
}

// KubeletSpec describes the kubelet of a node. It is ready when its Node is.
func KubeletSpec(l layout.Layout, n layout.Node, client kubernetes.Interface) process.Spec {
	config := filepath.Join(n.Dir(), "kubelet.yaml")
	return process.Spec{
		Name:      KubeletName(n),
		Namespace: n.Namespace(),
		Command: []string{
			"kubelet",
			"--config=" + config,
			"--kubeconfig=" + l.ComponentKubeconfig(n.Name()),
			"--hostname-override=" + n.Name(),
			"--node-ip=" + n.Address(),
			"--node-labels=topology.kubernetes.io/zone=" + n.Zone(),
			"--root-dir=" + filepath.Join(n.Dir(), "kubelet"),
			"--cert-dir=" + filepath.Join(n.Dir(), "kubelet-pki"),
		},
		Files: map[string]string{config: kubeletConfig(l, n)},
		// All kubelets of a machine have one socket for device plugins, whose path is
		// fixed: each removes it and binds it anew, and of two that do so at the same
		// moment one ends.
		Retries: 3,
		Ready: func(ctx context.Context) error {
			object, err := client.CoreV1().Nodes().Get(ctx, n.Name(), metav1.GetOptions{})
			if err != nil {
				return err
			}
			return Ready(object)
		},
	}
}

// Ready returns nil if the condition Ready of a Node is true, else why it is not.
func Ready(object *corev1.Node) error {
	for _, condition := range object.Status.Conditions {
		if condition.Type != corev1.NodeReady {
			continue
		}
		if condition.Status == corev1.ConditionTrue {
			return nil
		}
		return fmt.Errorf("condition Ready is %s: %s", condition.Status, condition.Message)
	}
	return errors.New("it has no condition Ready yet")
}

func kubeletConfig(l layout.Layout, n layout.Node) string {
	return fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: %q}
authorization: {mode: Webhook}
cgroupDriver: cgroupfs
cgroupRoot: %q
clusterDNS: [%s]
clusterDomain: %s
containerRuntimeEndpoint: unix://%s
evictionHard:
  memory.available: %s
  nodefs.available: %[7]s
  nodefs.inodesFree: %[7]s
  imagefs.available: %[7]s
  imagefs.inodesFree: %[7]s
failCgroupV1: %[8]t
failSwapOn: %[9]t
imageGCHighThresholdPercent: %[10]d
imageGCLowThresholdPercent: %[11]d
nodeLeaseDurationSeconds: %[12]d
podLogsDir: %[13]q
volumePluginDir: %[14]q
tlsCertFile: %[15]q
tlsPrivateKeyFile: %[16]q
`,
		l.PKI(pki.ClusterCA+".crt"), "/"+n.Cgroup(), layout.DNSServiceAddress, layout.ClusterDomain, n.Socket(),
		settings.EvictionMemoryAvailable, settings.EvictionFilesystem,
		cgroup.Unified(), !host.SwapOn(),
		settings.ImageGCHighThreshold, settings.ImageGCHighThreshold-1, settings.NodeLeaseDurationSeconds,
		PodLogDir(n), filepath.Join(n.Dir(), "volume-plugins"),
		l.PKI(n.Name()+".crt"), l.PKI(n.Name()+".key"))
}

// PodLogDir holds the output of the containers of a node.
func PodLogDir(n layout.Node) string { return filepath.Join(n.Dir(), "pods") }

// ProxySpec describes the kube-proxy of a node.
func ProxySpec(l layout.Layout, n layout.Node) process.Spec {
	return controlplane.KubeProxySpec(l, ProxyName(n), n.Namespace(), n.Name())
}
