package build

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"seang.org/operator/test/cluster/host"
)

// parallelBuilds is how many components are built at a time: while one links,
// which takes one core, another compiles. More would only take memory.
const parallelBuilds = 2

// errorLines is how much of a failed build's output an error carries.
const errorLines = 20

func buildAll(ctx context.Context, sources []source, out io.Writer) error {
	progress := newProgress(out, sources)
	defer progress.stop()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelBuilds)
	for _, s := range sources {
		group.Go(func() error {
			err := s.build(ctx, func(pkg string) { progress.compiled(s.Name, pkg) })
			progress.finished(s.Name, err)
			return err
		})
	}
	return group.Wait()
}

// build makes the component's programs in a directory beside the final one and
// renames it, so that an interrupted build leaves nothing that looks complete.
func (s source) build(ctx context.Context, compiled func(pkg string)) (err error) {
	if err := os.MkdirAll(filepath.Dir(s.target), 0o755); err != nil {
		return fmt.Errorf("make the cache directory: %w", err)
	}
	unlock, err := host.Lock(ctx, filepath.Join(filepath.Dir(s.target), "."+s.Name+".lock"))
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Stat(s.target); err == nil {
		return nil // another process has built it meanwhile
	}
	tmp, err := os.MkdirTemp(filepath.Dir(s.target), "."+filepath.Base(s.target)+"-")
	if err != nil {
		return fmt.Errorf("make a directory for %s: %w", s.Name, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	if err := os.Chmod(tmp, 0o755); err != nil {
		return fmt.Errorf("open %s to all users: %w", tmp, err)
	}
	if err := s.compile(ctx, tmp, compiled); err != nil {
		return err
	}
	for _, link := range s.Links {
		if err := os.Symlink(s.Name, filepath.Join(tmp, link)); err != nil {
			return fmt.Errorf("link %s: %w", link, err)
		}
	}
	if err := os.Rename(tmp, s.target); err != nil {
		return fmt.Errorf("move %s to its place: %w", s.Name, err)
	}
	return nil
}

func (s source) compile(ctx context.Context, out string, compiled func(pkg string)) error {
	cmd := exec.CommandContext(ctx, "go", s.buildArgs(out)...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return fmt.Errorf("build %s: %w", s.Name, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("build %s (is Go installed?): %w", s.Name, err)
	}
	var last []string
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		line := lines.Text()
		if isPackage(line) {
			compiled(line)
			continue
		}
		if last = append(last, line); len(last) > errorLines {
			last = last[1:]
		}
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("build %s in %s: %w\n%s", s.Name, s.dir, err, strings.Join(last, "\n"))
	}
	return nil
}

// isPackage tells the import path that `go build -v` prints for each package
// from messages.
func isPackage(line string) bool {
	return line != "" && !strings.ContainsAny(line, " :#\t")
}
