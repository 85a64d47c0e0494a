package network

import (
	"context"
	"fmt"
	"net"

	"github.com/vishvananda/netns"
)

// Dial connects to an IP address and port from within a network namespace.
func Dial(ctx context.Context, namespace, address string) (net.Conn, error) {
	var connection net.Conn
	err := onOwnThread(func() error {
		handle, err := netns.GetFromName(namespace)
		if err != nil {
			return fmt.Errorf("open network namespace %s: %w", namespace, err)
		}
		defer func() { _ = handle.Close() }()
		if err := netns.Set(handle); err != nil {
			return fmt.Errorf("enter network namespace %s: %w", namespace, err)
		}
		connection, err = new(net.Dialer).DialContext(ctx, "tcp", address)
		return err
	})
	return connection, err
}

// Reachable returns nil if a TCP server answers at an address from within
// a network namespace.
func Reachable(ctx context.Context, namespace, address string) error {
	connection, err := Dial(ctx, namespace, address)
	if err != nil {
		return err
	}
	if err := connection.Close(); err != nil {
		return fmt.Errorf("close the connection to %s: %w", address, err)
	}
	return nil
}
