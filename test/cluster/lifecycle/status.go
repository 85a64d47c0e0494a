package lifecycle

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"seang.org/operator/test/cluster/build"
	"seang.org/operator/test/cluster/cgroup"
	"seang.org/operator/test/cluster/layout"
	"seang.org/operator/test/cluster/node"
	"seang.org/operator/test/cluster/process"
)

// Status tells what a cluster is made of and how to reach it.
type Status struct {
	Name string `json:"name"`
	// Up says that every process runs and every node is ready.
	Up         bool   `json:"up"`
	Kubeconfig string `json:"kubeconfig"`
	// Registry is on the host's loopback; images are below their host's name.
	Registry string `json:"registry"`
	AuditLog string `json:"auditLog"`
	LogDir   string `json:"logDir"`
	// Binaries is the directory of kubectl, etcd and kube-apiserver.
	Binaries              string           `json:"binaries"`
	ControlPlaneNamespace string           `json:"controlPlaneNamespace"`
	Nodes                 []NodeStatus     `json:"nodes"`
	Processes             []process.Status `json:"processes"`
	// MemoryBytes is that of all processes, pods included.
	MemoryBytes int64 `json:"memoryBytes"`
}

// NodeStatus is the state of one node.
type NodeStatus struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	// Ready is empty if the node's Ready condition is true, else the reason.
	NotReady string `json:"notReady,omitempty"`
}

// statusTimeout bounds the question to the API server.
const statusTimeout = 3 * time.Second

// Status looks at the cluster.
func (c *Cluster) Status(ctx context.Context) (Status, error) {
	l := c.Layout
	if !l.Exists() {
		return Status{}, fmt.Errorf("cluster %s is not up", l.Name)
	}
	address, err := c.RegistryAddress()
	if err != nil {
		return Status{}, err
	}
	binaries, err := build.Components[0].Dir()
	if err != nil {
		return Status{}, err
	}
	processes, err := c.group.List()
	if err != nil {
		return Status{}, err
	}
	status := Status{
		Name: l.Name, Kubeconfig: l.Kubeconfig(), Registry: address, AuditLog: l.AuditLog(), LogDir: l.LogDir(),
		Binaries: binaries, ControlPlaneNamespace: l.ControlPlaneNamespace(), Processes: processes, Up: true,
	}
	for _, p := range processes {
		status.Up = status.Up && p.Running
	}
	for _, n := range l.AllNodes() {
		ns := NodeStatus{Name: n.Name(), Address: n.Address()}
		if err := c.nodeReady(ctx, n); err != nil {
			ns.NotReady, status.Up = err.Error(), false
		}
		status.Nodes = append(status.Nodes, ns)
	}
	pids, err := cgroup.Processes(l.Cgroup())
	if err != nil {
		return Status{}, err
	}
	for _, pid := range pids {
		status.MemoryBytes += process.ProportionalSize(pid)
	}
	return status, nil
}

func (c *Cluster) nodeReady(ctx context.Context, n layout.Node) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	object, err := client.CoreV1().Nodes().Get(ctx, n.Name(), metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("ask the API server: %w", err)
	}
	return node.Ready(object)
}

// Print writes the status for a human.
func (s Status) Print(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range [][2]string{
		{"cluster", s.Name},
		{"kubeconfig", s.Kubeconfig},
		{"registry", s.Registry + " (push to " + s.Registry + "/HOST/REPOSITORY:TAG)"},
		{"audit log", s.AuditLog},
		{"logs", s.LogDir},
		{"binaries", s.Binaries},
		{"memory", mib(s.MemoryBytes)},
	} {
		_, _ = fmt.Fprintf(table, "%s\t%s\n", row[0], row[1])
	}
	_, _ = fmt.Fprintln(table, "\nNODE\tADDRESS\tSTATE")
	for _, n := range s.Nodes {
		state := "Ready"
		if n.NotReady != "" {
			state = "not ready: " + n.NotReady
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\n", n.Name, n.Address, state)
	}
	_, _ = fmt.Fprintln(table, "\nPROCESS\tPID\tSTATE\tMEMORY")
	for _, p := range s.Processes {
		state := "running"
		switch {
		case !p.Running:
			state = "ended"
		case p.Stopped:
			state = "stopped"
		}
		_, _ = fmt.Fprintf(table, "%s\t%d\t%s\t%s\n", p.Name, p.PID, state, mib(p.ResidentBytes))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print the status: %w", err)
	}
	return nil
}

func mib(bytes int64) string { return fmt.Sprintf("%d MiB", bytes>>20) }
