package layout

import "fmt"

// The addresses are the same in each cluster: a cluster's network is made of
// namespaces that have no link to the host's nor to another cluster's.
const (
	// ControlPlaneAddress is where API server, registry and DNS listen.
	ControlPlaneAddress = "172.18.0.1"
	// NodeSubnetBits is the prefix length of the network of nodes.
	NodeSubnetBits = 24
	// PodSubnet is the range of pod addresses of all nodes.
	PodSubnet = "10.244.0.0/16"
	// ServiceSubnet is kubeadm's default.
	ServiceSubnet = "10.96.0.0/12"
	// APIServiceAddress is that of the Service default/kubernetes.
	APIServiceAddress = "10.96.0.1"
	// DNSServiceAddress is that of the Service kube-system/kube-dns.
	DNSServiceAddress = "10.96.0.10"
	// ClusterDomain is the DNS domain of Services.
	ClusterDomain = "cluster.local"
	// APIPort is the API server's.
	APIPort = 6443
	// RegistryPort is the image registry's.
	RegistryPort = 5000
)

// PauseImage keeps the namespaces of a pod. The registry has it.
const PauseImage = "localhost/pause:1"

// APIServer is the address of the API server within the cluster's network.
func APIServer() string { return fmt.Sprintf("https://%s:%d", ControlPlaneAddress, APIPort) }

// Registry is the address of the image registry within the cluster's network.
func Registry() string { return fmt.Sprintf("%s:%d", ControlPlaneAddress, RegistryPort) }
