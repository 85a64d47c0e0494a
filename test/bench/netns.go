package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// dialWithin connects to an address as seen from the network namespace of a process
// of this machine.
func dialWithin(ctx context.Context, pid int, address string) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result, 1)
	go func() {
		// Never unlocked: the thread, which is in another namespace then, ends
		// with the goroutine. A socket stays in the namespace where it was made.
		runtime.LockOSThread()
		conn, err := dialAfterEntering(ctx, fmt.Sprintf("/proc/%d/ns/net", pid), address)
		done <- result{conn, err}
	}()
	r := <-done
	return r.conn, r.err
}

func dialAfterEntering(ctx context.Context, namespace, address string) (net.Conn, error) {
	file, err := os.Open(namespace)
	if err != nil {
		return nil, fmt.Errorf("open the network namespace: %w", err)
	}
	defer file.Close() //nolint:errcheck // Only read.
	if err := unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, fmt.Errorf("enter the network namespace %s: %w", namespace, err)
	}
	return (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address)
}
