package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"seang.org/operator/test/cluster/layout"
)

// Port is a port on the host's loopback, the same in each run. The process that
// serves it lives in a namespace: it inherits the socket, which keeps the
// namespace it was opened in.
type Port struct {
	number int
	file   string
}

// OpenPort returns the port with a name, which is chosen by the kernel once.
func OpenPort(l layout.Layout, name string) (Port, error) {
	p := Port{file: filepath.Join(l.RuntimeDir(), name+".port")}
	data, err := os.ReadFile(p.file)
	if err == nil {
		p.number, err = strconv.Atoi(strings.TrimSpace(string(data)))
	}
	if err == nil {
		return p, nil
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is closed at once
	if err != nil {
		return Port{}, fmt.Errorf("find a free port on loopback: %w", err)
	}
	defer func() { _ = listener.Close() }()
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		return Port{}, fmt.Errorf("loopback has no TCP address but %s", listener.Addr())
	}
	p.number = address.Port
	return p, layout.WriteFile(p.file, []byte(strconv.Itoa(p.number)), 0o644)
}

// Address is that on the host's loopback, and on the control plane's.
func (p Port) Address() string { return fmt.Sprintf("127.0.0.1:%d", p.number) }

// Listen opens the socket in the caller's namespace.
func (p Port) Listen() (*os.File, error) {
	listener, err := net.Listen("tcp", p.Address()) //nolint:noctx // it does not block
	if errors.Is(err, syscall.EADDRINUSE) {
		_ = os.Remove(p.file) // the next run takes another port
		return nil, fmt.Errorf("port %s: %w: run `up` again, which takes another", p.Address(), ErrPortTaken)
	}
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", p.Address(), err)
	}
	defer func() { _ = listener.Close() }()
	tcp, ok := listener.(*net.TCPListener)
	if !ok {
		return nil, fmt.Errorf("listen on %s: not TCP", p.Address())
	}
	file, err := tcp.File()
	if err != nil {
		return nil, fmt.Errorf("share the socket of %s: %w", p.Address(), err)
	}
	return file, nil
}

// Listeners opens addresses in the current namespace, and with inherited takes
// the socket that the starter has opened.
func Listeners(addresses []string, inherited bool) ([]net.Listener, error) {
	var listeners []net.Listener
	if inherited {
		const firstInherited = 3
		listener, err := net.FileListener(os.NewFile(firstInherited, "inherited"))
		if err != nil {
			return nil, fmt.Errorf("take the inherited socket: %w", err)
		}
		listeners = append(listeners, listener)
	}
	for _, address := range addresses {
		listener, err := net.Listen("tcp", address) //nolint:noctx // it does not block
		if err != nil {
			return nil, fmt.Errorf("listen on %s: %w", address, err)
		}
		listeners = append(listeners, listener)
	}
	return listeners, nil
}

// Forward carries connections from all listeners to an address until the
// context ends.
func Forward(ctx context.Context, to string, listeners ...net.Listener) error {
	failed := make(chan error, len(listeners))
	for _, listener := range listeners {
		go func() { failed <- accept(ctx, to, listener) }()
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

func accept(ctx context.Context, to string, listener net.Listener) error {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return fmt.Errorf("accept on %s: %w", listener.Addr(), err)
		}
		go carry(ctx, to, connection)
	}
}

// carry copies both ways and passes on which side has closed.
func carry(ctx context.Context, to string, client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := new(net.Dialer).DialContext(ctx, "tcp", to)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	done := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{client, server}, {server, client}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1])
			if tcp, ok := pair[0].(*net.TCPConn); ok {
				_ = tcp.CloseWrite()
			}
			done <- struct{}{}
		}()
	}
	<-done
	<-done
}
