// Command probe is the program of the test image: one static binary with
// a mode for each thing that a test wants to see from inside a pod.
package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) < 2 {
		fail(errors.New("usage: probe serve ADDRESS | get URL | resolve NAME | fill FILE BYTES | size DIR"))
	}
	modes := map[string]func(args []string) error{
		"serve": serve, "get": get, "resolve": resolve, "fill": fill, "size": size,
	}
	mode, ok := modes[os.Args[1]]
	if !ok {
		fail(fmt.Errorf("mode %q is unknown", os.Args[1]))
	}
	if err := mode(os.Args[2:]); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// serve answers each request with the pod's name until it is told to end.
func serve(args []string) error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	server := &http.Server{
		Addr: args[0], ReadHeaderTimeout: time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) }),
	}
	go func() { <-stop; _ = server.Close() }()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func get(args []string) error {
	client := http.Client{Timeout: 5 * time.Second}
	response, err := client.Get(args[0])
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	_, err = io.Copy(os.Stdout, response.Body)
	return err
}

func resolve(args []string) error {
	addresses, err := net.LookupHost(args[0])
	fmt.Println(strings.Join(addresses, " "))
	return err
}

// fill writes until so many bytes are in the file, and prints how many there are.
func fill(args []string) error {
	wanted, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(args[0], os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	chunk := make([]byte, 1<<20)
	info, err := file.Stat()
	for written := info.Size(); err == nil && written < wanted; {
		var n int
		n, err = file.Write(chunk)
		written += int64(n)
	}
	err = errors.Join(err, file.Sync())
	info, statErr := file.Stat()
	fmt.Print(info.Size())
	return errors.Join(err, statErr)
}

// size prints the size of the filesystem of a directory in bytes.
func size(args []string) error {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(args[0], &stat); err != nil {
		return err
	}
	fmt.Print(int64(stat.Blocks) * stat.Bsize)
	return nil
}
