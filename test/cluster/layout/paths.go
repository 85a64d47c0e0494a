package layout

import (
	"fmt"
	"path/filepath"
)

// RuntimeDir holds sockets, pid files and the cluster's saved state.
func (l Layout) RuntimeDir() string { return filepath.Join(runtimeRoot, l.Name) }

// RuntimeRoot holds the runtime directories and locks of all clusters.
func RuntimeRoot() string { return runtimeRoot }

// LockFile serialises `up` and `down` of one cluster. It is outside of
// RuntimeDir because that goes away with the cluster.
func (l Layout) LockFile() string { return filepath.Join(runtimeRoot, "."+l.Name+".lock") }

func (l Layout) stateFile() string { return filepath.Join(l.RuntimeDir(), "cluster.json") }

// DataDir holds what is large: etcd, images, container filesystems and volumes.
func (l Layout) DataDir() string { return filepath.Join(l.Cache, "run", l.Name) }

// LogDir holds a file for each process.
func (l Layout) LogDir() string { return filepath.Join(l.DataDir(), "log") }

// AuditLog is written by the API server, an event a line in JSON.
func (l Layout) AuditLog() string { return filepath.Join(l.LogDir(), "audit.log") }

// PKIDir holds keys and certificates.
func (l Layout) PKIDir() string { return filepath.Join(l.DataDir(), "pki") }

// PKI is the path of a file in PKIDir.
func (l Layout) PKI(file string) string { return filepath.Join(l.PKIDir(), file) }

// Kubeconfig is the administrator's, reachable from the host and from inside.
func (l Layout) Kubeconfig() string { return filepath.Join(l.RuntimeDir(), "kubeconfig") }

// ComponentKubeconfig is the kubeconfig of a user of the control plane.
func (l Layout) ComponentKubeconfig(user string) string {
	return filepath.Join(l.DataDir(), "kubeconfig", user)
}

// RegistryDir holds the blobs and manifests of the image registry.
func (l Layout) RegistryDir() string { return filepath.Join(l.DataDir(), "registry") }

// VolumesDir holds a file and a mount point for each persistent volume.
func (l Layout) VolumesDir() string { return filepath.Join(l.DataDir(), "volumes") }

// Self is this program's copy, from which its own long-running parts start.
func (l Layout) Self() string { return filepath.Join(l.RuntimeDir(), "cluster") }

// Cgroup is the parent of every control group of the cluster, from the root of
// a hierarchy.
func (l Layout) Cgroup() string { return "redis-operator." + l.Name }

// namespacePrefix cannot be the prefix of another cluster's: names have no dot.
func (l Layout) namespacePrefix() string { return "redis-operator." + l.Name + "." }

// NamespacePrefix is what the names of the cluster's network namespaces begin
// with.
func (l Layout) NamespacePrefix() string { return l.namespacePrefix() }

// ControlPlaneNamespace is the network namespace of the control plane, in which
// the addresses of pods and Services route.
func (l Layout) ControlPlaneNamespace() string { return l.namespacePrefix() + "control-plane" }

// Node describes the node with an index from 1 to Nodes.
func (l Layout) Node(index int) Node { return Node{layout: l, Index: index} }

// AllNodes returns the nodes in order.
func (l Layout) AllNodes() []Node {
	nodes := make([]Node, l.Nodes)
	for i := range nodes {
		nodes[i] = l.Node(i + 1)
	}
	return nodes
}

// Node is one node of a cluster.
type Node struct {
	layout Layout
	// Index counts from 1.
	Index int
}

// Name is the node's name in Kubernetes.
func (n Node) Name() string { return fmt.Sprintf("node-%d", n.Index) }

// Zone is the node's failure domain: each node has one of its own.
func (n Node) Zone() string { return fmt.Sprintf("zone-%d", n.Index) }

// Namespace is the node's network namespace.
func (n Node) Namespace() string { return n.layout.namespacePrefix() + n.Name() }

// RuntimeDir holds the node's sockets.
func (n Node) RuntimeDir() string { return filepath.Join(n.layout.RuntimeDir(), n.Name()) }

// ShimDir holds the sockets of shims. Its path must be short.
func (n Node) ShimDir() string {
	return filepath.Join(n.layout.RuntimeDir(), fmt.Sprintf("s%d", n.Index))
}

// Socket is containerd's.
func (n Node) Socket() string { return filepath.Join(n.RuntimeDir(), "containerd.sock") }

// Dir holds the node's bulk data.
func (n Node) Dir() string { return filepath.Join(n.layout.DataDir(), n.Name()) }

// Cgroup is the parent of the control groups of the node's pods.
func (n Node) Cgroup() string { return filepath.Join(n.layout.Cgroup(), n.Name()) }

// Network is the node's name of its CNI network, and the prefix of its cached
// results.
func (n Node) Network() string { return n.Namespace() }

// Address is the node's internal IP.
func (n Node) Address() string { return fmt.Sprintf("172.18.0.%d", 10+n.Index) }

// PodSubnet is the node's part of PodSubnet.
func (n Node) PodSubnet() string { return fmt.Sprintf("10.244.%d.0/24", n.Index) }
