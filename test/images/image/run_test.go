package image

import (
	"archive/tar"
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"seang.org/operator/test/images/reference"
)

// restricted runs the script $2 in the filesystem $1, read-only but for a volume
// at /data, as user 12345: as a pod with a read-only root and an arbitrary user.
const restricted = `set -e
mount --bind "$1" "$1"
mount -o remount,bind,ro "$1"
mount --bind /dev "$1/dev"
mount -t tmpfs -o mode=0777 tmpfs "$1/data"
exec chroot --userspec=12345:12345 --groups= "$1" /bin/sh -c "$2"
`

func TestServerRunsReadOnlyAsAnyUser(t *testing.T) {
	store := newTestStore(t)
	if err := exec.Command("unshare", "--mount", "true").Run(); err != nil {
		t.Skipf("needs root and mount namespaces: %v", err)
	}
	for _, image := range []reference.Image{reference.Redis70, reference.Redis80, reference.Valkey81} {
		t.Run(string(image), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "root")
			extract(t, build(t, store, image).File, dir)
			port := freePort(t)
			script := `set -e
				[ "$(id -u)" = 12345 ]
				if touch /etc/written 2>/dev/null; then echo "the root filesystem is writable"; exit 1; fi
				cd /data
				exec redis-server --bind 127.0.0.1 --port ` + port
			server := start(t, dir, script, port)
			for _, line := range []string{"PING", "SET key value", "SAVE", "GET key"} {
				if _, err := fmt.Fprintf(server, "%s\r\n", line); err != nil {
					t.Fatal(err)
				}
			}
			replies := bufio.NewScanner(server)
			for _, want := range []string{"+PONG", "+OK", "+OK", "$5", "value"} {
				if !replies.Scan() || replies.Text() != want {
					t.Fatalf("reply = %q (%v), want %q", replies.Text(), replies.Err(), want)
				}
			}
		})
	}
}

// start runs a script in the filesystem below dir and returns a connection to
// the server that the script becomes.
func start(t *testing.T, dir, script, port string) net.Conn {
	t.Helper()
	command := exec.Command("unshare", "--mount", "sh", "-c", restricted, "sh", dir, script)
	// A container has nothing of this machine's environment; its own may name a locale.
	command.Env = []string{searchPath, "LANG=C.UTF-8"}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stderr = command.Stdout
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ready, ended := make(chan struct{}), make(chan string, 1)
	go func() {
		var said strings.Builder
		for lines := bufio.NewScanner(output); lines.Scan(); {
			said.WriteString(lines.Text() + "\n")
			if strings.Contains(lines.Text(), "Ready to accept connections") {
				close(ready)
			}
		}
		ended <- said.String()
	}()
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		<-ended
		_ = command.Wait()
	})
	select {
	case <-ready:
	case said := <-ended:
		ended <- said
		t.Fatalf("the server ended: %s", said)
	case <-time.After(30 * time.Second):
		t.Fatal("the server is not ready after 30s")
	}
	connection, err := net.DialTimeout("tcp", "127.0.0.1:"+port, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	if err := connection.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return connection
}

func extract(t *testing.T, file, dir string) {
	t.Helper()
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	files(t, load(t, file), func(header *tar.Header, content io.Reader) {
		target := filepath.Join(dir, header.Name)
		mode := header.FileInfo().Mode()
		var err error
		switch header.Typeflag {
		case tar.TypeDir:
			if err = os.MkdirAll(target, 0o755); err == nil {
				err = os.Chmod(target, mode)
			}
		case tar.TypeSymlink:
			err = os.Symlink(header.Linkname, target)
		default:
			var data []byte
			if data, err = io.ReadAll(content); err == nil {
				err = os.WriteFile(target, data, mode.Perm())
			}
		}
		if err == nil {
			err = os.Lchown(target, header.Uid, header.Gid)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
}

func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(port)
}
