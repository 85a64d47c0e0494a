// Package settings lists every setting by which an embedded cluster differs from
// one that kubeadm makes with its defaults. The components are configured from
// this list, so that it cannot say anything but the truth.
package settings

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Setting is one difference.
type Setting struct {
	Component string `json:"component"`
	Name      string `json:"name"`
	Value     string `json:"value"`
	// Default is kubeadm's value.
	Default string `json:"default"`
	Why     string `json:"why"`
}

// The values that components are configured with.
const (
	NodeMonitorGracePeriod   = "10s"
	NodeLeaseDurationSeconds = 8
	AuditLogMaxSizeMiB       = 4096
	EvictionMemoryAvailable  = "100Mi"
	EvictionFilesystem       = "1%"
	ImageGCHighThreshold     = 100
)

// Differences are all settings that differ from kubeadm's.
var Differences = []Setting{
	{"etcd", "--unsafe-no-fsync", "true", "false", "a test cluster need not survive a power failure; a laptop's disk must not set the pace"},
	{"etcd", "client and peer TLS", "off", "on", "it listens on loopback of a namespace of its own"},
	{"etcd", "members", "1", "1 on each control-plane node", "there is one control plane"},
	{"kube-apiserver", "--audit-policy-file, --audit-log-path", "set", "unset", "the audit log is the ground truth of who wrote what"},
	{"kube-apiserver", "--audit-log-maxsize", fmt.Sprint(AuditLogMaxSizeMiB), "100", "a rotated log would hide writes from those who count them"},
	{"kube-controller-manager", "--leader-elect", "false", "true", "there is one; its leases would be noise in the audit log"},
	{"kube-controller-manager", "--node-monitor-grace-period", NodeMonitorGracePeriod, "50s", "tests of a lost node need not wait a minute"},
	{"kube-scheduler", "--leader-elect", "false", "true", "as for the controller manager"},
	{"kubelet", "nodeLeaseDurationSeconds", fmt.Sprint(NodeLeaseDurationSeconds), "40", "a heartbeat each 2 s, as the short grace period needs it"},
	{"kubelet", "evictionHard nodefs, imagefs", EvictionFilesystem, "10%, 15%", "nodes share the machine's disk, which may well be fuller than a server's"},
	{"kubelet", "imageGCHighThresholdPercent", fmt.Sprint(ImageGCHighThreshold), "85", "as above: no image may vanish because the disk is full of other things"},
	{"kubelet", "rotateCertificates", "false", "true", "certificates are made in advance, without a bootstrap"},
	{"kubelet", "cgroupDriver", "cgroupfs", "systemd", "a container need not have systemd"},
	{"kubelet", "cgroupRoot", "a group a node", "/", "several nodes share one machine"},
	{"kubelet", "failCgroupV1, failSwapOn", "false where the machine has either", "true", "the machine is the user's as it is"},
	{"kubelet", "--node-labels topology.kubernetes.io/zone", "zone-N", "none", "each node is a failure domain"},
	{"kube-proxy", "mode", "nftables", "iptables", "the kernel's current packet filter; needs no iptables package"},
	{"kube-proxy", "conntrack.maxPerCore", "0 (leave)", "32768", "the limit is one for the whole machine, which is not ours"},
	{"kube-proxy", "instances", "one more in the control plane's namespace", "one a node", "programs that run there reach Services by their addresses"},
	{"coredns", "where", "a process in the control plane's namespace", "a Deployment", "no image of it exists here; the Service kube-dns leads to it"},
	{"coredns", "forward, loop, reload, prometheus", "off", "on", "there is no network outside of the cluster"},
	{"containerd", "network plugin", "ptp with static routes", "none, the user's choice", "pods of a node reach each other by routing, so rules for Services and policies apply"},
	{"containerd", "registry mirrors", "the cluster's registry for all hosts", "none", "no other registry can be reached"},
	{"containerd", "restrict_oom_score_adj", "true", "false", "a container may not be allowed to lower it"},
}

// Print writes the list as a table.
func Print(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "COMPONENT\tSETTING\tHERE\tKUBEADM\tWHY")
	for _, s := range Differences {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", s.Component, s.Name, s.Value, s.Default, s.Why)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print the settings: %w", err)
	}
	return nil
}
