// Package controlplane describes the processes of a cluster's control plane, all
// of which run in one network namespace.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/kubernetes"

	"seang.org/operator/test/cluster/layout"
	"seang.org/operator/test/cluster/network"
	"seang.org/operator/test/cluster/pki"
	"seang.org/operator/test/cluster/process"
	"seang.org/operator/test/cluster/settings"
)

// Names of the processes.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	CoreDNS           = "coredns"
	Registry          = "registry"
	Storage           = "storage"
	Forwarder         = "forwarder"
	Proxy             = "kube-proxy-control-plane"
)

// Subcommands of this program that are processes of the control plane.
const (
	ForwardCommand  = "forward"
	RegistryCommand = "serve-registry"
	StorageCommand  = "provision-storage"
)

const etcdEndpoint = "http://127.0.0.1:2379"

// EtcdSpec describes the database.
func EtcdSpec(l layout.Layout) process.Spec {
	return process.Spec{
		Name:      Etcd,
		Namespace: l.ControlPlaneNamespace(),
		Command: []string{
			"etcd", "--name=control-plane", "--data-dir=" + l.DataDir() + "/etcd", "--unsafe-no-fsync",
			"--listen-client-urls=" + etcdEndpoint, "--advertise-client-urls=" + etcdEndpoint,
			"--listen-peer-urls=http://127.0.0.1:2380", "--initial-advertise-peer-urls=http://127.0.0.1:2380",
			"--initial-cluster=control-plane=http://127.0.0.1:2380",
			"--log-level=warn",
		},
	}
}

// APIServerSpec describes the API server. It is ready when the client that
// reaches it through the forwarder says so.
func APIServerSpec(l layout.Layout, client kubernetes.Interface) process.Spec {
	policy := l.DataDir() + "/audit-policy.yaml"
	return process.Spec{
		Name:      APIServer,
		Namespace: l.ControlPlaneNamespace(),
		Command: []string{
			"kube-apiserver",
			"--advertise-address=" + layout.ControlPlaneAddress,
			"--allow-privileged=true",
			"--authorization-mode=Node,RBAC",
			"--client-ca-file=" + l.PKI(pki.ClusterCA+".crt"),
			"--enable-admission-plugins=NodeRestriction",
			"--enable-bootstrap-token-auth=true",
			"--etcd-servers=" + etcdEndpoint,
			"--kubelet-client-certificate=" + l.PKI(pki.KubeletClient+".crt"),
			"--kubelet-client-key=" + l.PKI(pki.KubeletClient+".key"),
			"--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname",
			"--proxy-client-cert-file=" + l.PKI(pki.FrontProxyClient+".crt"),
			"--proxy-client-key-file=" + l.PKI(pki.FrontProxyClient+".key"),
			"--requestheader-allowed-names=front-proxy-client",
			"--requestheader-client-ca-file=" + l.PKI(pki.FrontProxyCA+".crt"),
			"--requestheader-extra-headers-prefix=X-Remote-Extra-",
			"--requestheader-group-headers=X-Remote-Group",
			"--requestheader-username-headers=X-Remote-User",
			fmt.Sprintf("--secure-port=%d", layout.APIPort),
			"--service-account-issuer=https://kubernetes.default.svc." + layout.ClusterDomain,
			"--service-account-key-file=" + l.PKI(pki.ServiceAccountPublicKey),
			"--service-account-signing-key-file=" + l.PKI(pki.ServiceAccountKey),
			"--service-cluster-ip-range=" + layout.ServiceSubnet,
			"--tls-cert-file=" + l.PKI(pki.APIServer+".crt"),
			"--tls-private-key-file=" + l.PKI(pki.APIServer+".key"),
			"--audit-policy-file=" + policy,
			"--audit-log-path=" + l.AuditLog(),
			fmt.Sprintf("--audit-log-maxsize=%d", settings.AuditLogMaxSizeMiB),
		},
		Files: map[string]string{policy: auditPolicy},
		Ready: func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, probeTimeout)
			defer cancel()
			_, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
			return err
		},
	}
}

// auditPolicy records who did what to which object, and besides the content of
// the status patches from which times are measured.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Request
  verbs: [patch, update]
  resources: [{group: "", resources: [pods/status]}, {group: cache.seang.org, resources: ["*/status"]}]
- level: Metadata
`

// ControllerManagerSpec describes the controllers of Kubernetes.
func ControllerManagerSpec(l layout.Layout) process.Spec {
	kubeconfig := l.ComponentKubeconfig(pki.ControllerManager)
	return process.Spec{
		Name:      ControllerManager,
		Namespace: l.ControlPlaneNamespace(),
		Command: []string{
			"kube-controller-manager",
			"--authentication-kubeconfig=" + kubeconfig,
			"--authorization-kubeconfig=" + kubeconfig,
			"--bind-address=127.0.0.1",
			"--client-ca-file=" + l.PKI(pki.ClusterCA+".crt"),
			"--cluster-name=" + l.Name,
			"--cluster-signing-cert-file=" + l.PKI(pki.ClusterCA+".crt"),
			"--cluster-signing-key-file=" + l.PKI(pki.ClusterCA+".key"),
			"--controllers=*,bootstrap-signer-controller,token-cleaner-controller",
			"--flex-volume-plugin-dir=" + l.DataDir() + "/volume-plugins",
			"--kubeconfig=" + kubeconfig,
			"--leader-elect=false",
			"--node-monitor-grace-period=" + settings.NodeMonitorGracePeriod,
			"--requestheader-client-ca-file=" + l.PKI(pki.FrontProxyCA+".crt"),
			"--root-ca-file=" + l.PKI(pki.ClusterCA+".crt"),
			"--service-account-private-key-file=" + l.PKI(pki.ServiceAccountKey),
			"--use-service-account-credentials=true",
		},
	}
}

// SchedulerSpec describes the scheduler.
func SchedulerSpec(l layout.Layout) process.Spec {
	kubeconfig := l.ComponentKubeconfig(pki.Scheduler)
	return process.Spec{
		Name:      Scheduler,
		Namespace: l.ControlPlaneNamespace(),
		Command: []string{
			"kube-scheduler",
			"--authentication-kubeconfig=" + kubeconfig,
			"--authorization-kubeconfig=" + kubeconfig,
			"--bind-address=127.0.0.1",
			"--kubeconfig=" + kubeconfig,
			"--leader-elect=false",
		},
	}
}

// CoreDNSSpec describes the DNS server, with kubeadm's Corefile but for what
// needs a network outside of the cluster.
func CoreDNSSpec(l layout.Layout) process.Spec {
	corefile := l.DataDir() + "/Corefile"
	return process.Spec{
		Name:      CoreDNS,
		Namespace: l.ControlPlaneNamespace(),
		Command:   []string{"coredns", "-conf", corefile},
		Files: map[string]string{corefile: fmt.Sprintf(`.:53 {
    bind %s
    errors
    health 127.0.0.1:8080 {
       lameduck 5s
    }
    ready 127.0.0.1:8181
    kubernetes %s in-addr.arpa ip6.arpa {
       kubeconfig %s
       pods insecure
       ttl 30
    }
    cache 30 {
       disable success %[2]s
       disable denial %[2]s
    }
    loadbalance
}
`, layout.ControlPlaneAddress, layout.ClusterDomain, l.ComponentKubeconfig(pki.Admin))},
		Ready: func(ctx context.Context) error {
			return reachable(ctx, l.ControlPlaneNamespace(), layout.ControlPlaneAddress+":53")
		},
	}
}

// ProxySpec describes a kube-proxy for the control plane's namespace, so that
// programs in it reach Services.
//
// A kube-proxy waits for the Node of its name. The control plane has none and
// takes the first node's: only the addresses of NodePorts depend on it.
func ProxySpec(l layout.Layout) process.Spec {
	return KubeProxySpec(l, Proxy, l.ControlPlaneNamespace(), l.Node(1).Name())
}

// KubeProxySpec describes a kube-proxy that speaks for a node in a namespace.
func KubeProxySpec(l layout.Layout, name, namespace, node string) process.Spec {
	file := l.DataDir() + "/kube-proxy/" + name + ".yaml"
	return process.Spec{
		Name:      name,
		Namespace: namespace,
		Command:   []string{"kube-proxy", "--config=" + file},
		Files: map[string]string{file: fmt.Sprintf(`apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clientConnection: {kubeconfig: %s}
clusterCIDR: %s
hostnameOverride: %s
conntrack: {maxPerCore: 0}
`, l.ComponentKubeconfig(pki.Proxy), layout.PodSubnet, node)},
		Ready: func(ctx context.Context) error {
			return reachable(ctx, namespace, layout.APIServiceAddress+":443")
		},
	}
}

// probeTimeout bounds one attempt to find a process ready.
const probeTimeout = 2 * time.Second

func reachable(ctx context.Context, namespace, address string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return network.Reachable(ctx, namespace, address)
}

// RegistrySpec describes the image registry.
func RegistrySpec(l layout.Layout, port Port) process.Spec {
	return process.Spec{
		Name:      Registry,
		Namespace: l.ControlPlaneNamespace(),
		Command: []string{
			l.Self(), RegistryCommand, "--dir=" + l.RegistryDir(),
			"--listen=" + layout.Registry(), "--listen=" + port.Address(), "--inherited",
		},
		Listen: port.Listen,
		Ready: func(ctx context.Context) error {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+port.Address()+"/v2/", nil)
			if err != nil {
				return err
			}
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				return err
			}
			return response.Body.Close()
		},
	}
}

// ForwarderSpec describes the process that brings the host's loopback to the
// API server.
func ForwarderSpec(l layout.Layout, port Port) process.Spec {
	return process.Spec{
		Name:      Forwarder,
		Namespace: l.ControlPlaneNamespace(),
		Command: []string{
			l.Self(), ForwardCommand, "--listen=" + port.Address(), "--inherited",
			fmt.Sprintf("--to=%s:%d", layout.ControlPlaneAddress, layout.APIPort),
		},
		Listen: port.Listen,
		Ready: func(ctx context.Context) error {
			connection, err := new(net.Dialer).DialContext(ctx, "tcp", port.Address())
			if err != nil {
				return err
			}
			return connection.Close()
		},
	}
}

// StorageSpec describes the provisioner of volumes.
func StorageSpec(l layout.Layout) process.Spec {
	return process.Spec{
		Name:      Storage,
		Namespace: l.ControlPlaneNamespace(),
		Command: []string{
			l.Self(), StorageCommand,
			"--kubeconfig=" + l.ComponentKubeconfig(pki.Admin), "--dir=" + l.VolumesDir(),
		},
	}
}

// ErrPortTaken says that another program listens on a port of the cluster.
var ErrPortTaken = errors.New("another program listens there")
