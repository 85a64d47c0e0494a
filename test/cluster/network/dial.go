package network

import (
	"context"
	"fmt"
	"net"
	"runtime"

	"github.com/vishvananda/netns"
)

// Dial connects to an IP address and port from within a network namespace.
func Dial(ctx context.Context, namespace, address string) (net.Conn, error) {
	type result struct {
		connection net.Conn
		err        error
	}
	done := make(chan result, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends in the namespace
		handle, err := netns.GetFromName(namespace)
		if err != nil {
			done <- result{err: fmt.Errorf("open network namespace %s: %w", namespace, err)}
			return
		}
		defer func() { _ = handle.Close() }()
		if err := netns.Set(handle); err != nil {
			done <- result{err: fmt.Errorf("enter network namespace %s: %w", namespace, err)}
			return
		}
		connection, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		done <- result{connection: connection, err: err}
	}()
	r := <-done
	return r.connection, r.err
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
