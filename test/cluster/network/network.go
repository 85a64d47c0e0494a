// Package network makes the network of a cluster out of network namespaces: one
// for the control plane with a bridge, one for each node with a link to it. No
// link, address, route or rule is added to the host's network, so removing the
// namespaces removes everything.
package network

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"seang.org/operator/test/cluster/layout"
)

const (
	bridgeName   = "cluster0"
	uplinkName   = "eth0"
	namespaceDir = "/run/netns"
)

// Ensure makes what is missing of the cluster's network, and heals what Cut has
// cut.
func Ensure(l layout.Layout) error {
	control, err := openNamespace(l.ControlPlaneNamespace())
	if err != nil {
		return err
	}
	defer control.close()
	bridge, err := control.ensureBridge()
	if err != nil {
		return err
	}
	if err := control.ensureServiceRoute(bridge); err != nil {
		return err
	}
	for _, node := range l.AllNodes() {
		if err := ensureNode(l, control, bridge, node); err != nil {
			return fmt.Errorf("network of %s: %w", node.Name(), err)
		}
	}
	return nil
}

func ensureNode(l layout.Layout, control *namespace, bridge netlink.Link, node layout.Node) error {
	space, err := openNamespace(node.Namespace())
	if err != nil {
		return err
	}
	defer space.close()
	if err := control.ensureLink(bridge, node, space); err != nil {
		return err
	}
	if err := space.configureUplink(node); err != nil {
		return err
	}
	if err := control.ensureRoute(node.PodSubnet(), node.Address()); err != nil {
		return err
	}
	for _, peer := range l.AllNodes() {
		if peer.Index == node.Index {
			continue
		}
		if err := space.ensureRoute(peer.PodSubnet(), peer.Address()); err != nil {
			return err
		}
	}
	return nil
}

// namespace is a network namespace with a netlink socket in it.
type namespace struct {
	handle netns.NsHandle
	link   *netlink.Handle
}

func (n *namespace) close() {
	n.link.Close()
	_ = n.handle.Close()
}

// openNamespace opens a namespace, which it makes if it does not exist.
func openNamespace(name string) (*namespace, error) {
	if err := createNamespace(name); err != nil {
		return nil, fmt.Errorf("make network namespace %s: %w", name, err)
	}
	handle, err := netns.GetFromName(name)
	if err != nil {
		return nil, fmt.Errorf("open network namespace %s: %w", name, err)
	}
	link, err := netlink.NewHandleAt(handle)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open netlink in namespace %s: %w", name, err), handle.Close())
	}
	space := &namespace{handle: handle, link: link}
	loopback, err := link.LinkByName("lo")
	if err == nil {
		err = link.LinkSetUp(loopback)
	}
	if err != nil {
		space.close()
		return nil, fmt.Errorf("set up loopback in namespace %s: %w", name, err)
	}
	return space, nil
}

// createNamespace makes a namespace that forwards packets, unless it exists.
func createNamespace(name string) error {
	path := filepath.Join(namespaceDir, name)
	if isNamespace(path) {
		return nil
	}
	// A file without a namespace is what an interrupted start has left.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the leftover: %w", err)
	}
	return onOwnThread(func() error {
		handle, err := netns.NewNamed(name)
		if err != nil {
			return err
		}
		defer func() { _ = handle.Close() }()
		// The kernel shows each thread the settings of its own namespace.
		return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0)
	})
}

// onOwnThread runs do on a thread whose namespace it may change. The thread gets
// its own back; if that fails it ends with the goroutine, so nothing else can
// run in a namespace by mistake.
func onOwnThread(do func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		origin, err := netns.Get()
		if err != nil {
			runtime.UnlockOSThread()
			result <- fmt.Errorf("open the current network namespace: %w", err)
			return
		}
		defer func() { _ = origin.Close() }()
		err = do()
		if netns.Set(origin) == nil {
			runtime.UnlockOSThread()
		}
		result <- err
	}()
	return <-result
}

func isNamespace(path string) bool {
	var stat syscall.Statfs_t
	const nsfsMagic = 0x6e736673
	return syscall.Statfs(path, &stat) == nil && stat.Type == nsfsMagic
}

func (n *namespace) ensureBridge() (netlink.Link, error) {
	bridge := &netlink.Bridge{LinkAttrs: netlink.NewLinkAttrs()}
	bridge.Name = bridgeName
	if err := n.link.LinkAdd(bridge); err != nil && !errors.Is(err, syscall.EEXIST) {
		return nil, fmt.Errorf("make bridge %s: %w", bridgeName, err)
	}
	link, err := n.link.LinkByName(bridgeName)
	if err != nil {
		return nil, fmt.Errorf("find bridge %s: %w", bridgeName, err)
	}
	return link, n.configure(link, layout.ControlPlaneAddress)
}

// configure gives a link its address in the network of nodes and sets it up.
func (n *namespace) configure(link netlink.Link, address string) error {
	addr := &netlink.Addr{IPNet: &net.IPNet{
		IP:   net.ParseIP(address),
		Mask: net.CIDRMask(layout.NodeSubnetBits, 32),
	}}
	if err := n.link.AddrReplace(link, addr); err != nil {
		return fmt.Errorf("give link %s the address %s: %w", link.Attrs().Name, address, err)
	}
	return n.setUp(link)
}

func (n *namespace) setUp(link netlink.Link) error {
	if err := n.link.LinkSetUp(link); err != nil {
		return fmt.Errorf("set up link %s: %w", link.Attrs().Name, err)
	}
	return nil
}

// ensureLink makes the pair of links between the bridge and a node. The
// bridge's end has the node's name.
func (n *namespace) ensureLink(bridge netlink.Link, node layout.Node, space *namespace) error {
	if link, err := n.link.LinkByName(node.Name()); err == nil {
		return n.setUp(link)
	}
	pair := &netlink.Veth{
		LinkAttrs:     netlink.NewLinkAttrs(),
		PeerName:      uplinkName,
		PeerNamespace: netlink.NsFd(int(space.handle)),
	}
	pair.Name = node.Name()
	pair.MasterIndex = bridge.Attrs().Index
	if err := n.link.LinkAdd(pair); err != nil {
		return fmt.Errorf("make the link to the bridge: %w", err)
	}
	link, err := n.link.LinkByName(node.Name())
	if err != nil {
		return fmt.Errorf("find the link to the bridge: %w", err)
	}
	return n.setUp(link)
}

func (n *namespace) configureUplink(node layout.Node) error {
	uplink, err := n.link.LinkByName(uplinkName)
	if err != nil {
		return fmt.Errorf("find link %s: %w", uplinkName, err)
	}
	if err := n.configure(uplink, node.Address()); err != nil {
		return err
	}
	return n.ensureRoute("0.0.0.0/0", layout.ControlPlaneAddress)
}

func (n *namespace) ensureRoute(subnet, gateway string) error {
	_, destination, err := net.ParseCIDR(subnet)
	if err != nil {
		return fmt.Errorf("parse subnet %s: %w", subnet, err)
	}
	route := &netlink.Route{Dst: destination, Gw: net.ParseIP(gateway)}
	if err := n.link.RouteReplace(route); err != nil {
		return fmt.Errorf("route %s by %s: %w", subnet, gateway, err)
	}
	return nil
}

// ensureServiceRoute lets programs of the control plane send to the addresses of
// Services at all: kube-proxy rewrites only what has a route.
func (n *namespace) ensureServiceRoute(bridge netlink.Link) error {
	_, destination, err := net.ParseCIDR(layout.ServiceSubnet)
	if err != nil {
		return fmt.Errorf("parse subnet %s: %w", layout.ServiceSubnet, err)
	}
	route := &netlink.Route{Dst: destination, LinkIndex: bridge.Attrs().Index, Scope: netlink.SCOPE_LINK}
	if err := n.link.RouteReplace(route); err != nil {
		return fmt.Errorf("route Services %s: %w", layout.ServiceSubnet, err)
	}
	return nil
}

// Cut takes a node off the network, as a pulled cable does. Its processes and
// containers run on.
func Cut(l layout.Layout, node layout.Node) error {
	return setLink(l, node, (*netlink.Handle).LinkSetDown)
}

// Heal undoes Cut.
func Heal(l layout.Layout, node layout.Node) error {
	return setLink(l, node, (*netlink.Handle).LinkSetUp)
}

func setLink(l layout.Layout, node layout.Node, set func(*netlink.Handle, netlink.Link) error) error {
	handle, err := netns.GetFromName(l.ControlPlaneNamespace())
	if err != nil {
		return fmt.Errorf("open network namespace %s (is the cluster up?): %w", l.ControlPlaneNamespace(), err)
	}
	defer func() { _ = handle.Close() }()
	link, err := netlink.NewHandleAt(handle)
	if err != nil {
		return fmt.Errorf("open netlink in namespace %s: %w", l.ControlPlaneNamespace(), err)
	}
	defer link.Close()
	end, err := link.LinkByName(node.Name())
	if err != nil {
		return fmt.Errorf("find the link of %s: %w", node.Name(), err)
	}
	if err := set(link, end); err != nil {
		return fmt.Errorf("set the link of %s: %w", node.Name(), err)
	}
	return nil
}

// Remove removes the cluster's namespaces and with them its whole network.
func Remove(l layout.Layout) error {
	var errs []error
	for _, name := range Namespaces(l) {
		path := filepath.Join(namespaceDir, name)
		if isNamespace(path) {
			if err := syscall.Unmount(path, syscall.MNT_DETACH); err != nil {
				errs = append(errs, fmt.Errorf("release network namespace %s: %w", name, err))
				continue
			}
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove network namespace %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// Namespaces returns the names of the cluster's namespaces that exist.
func Namespaces(l layout.Layout) []string {
	entries, _ := os.ReadDir(namespaceDir) // it does not exist before the first namespace
	var names []string
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), l.NamespacePrefix()) {
			names = append(names, entry.Name())
		}
	}
	return names
}
