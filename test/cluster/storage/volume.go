package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// minimumBytes is the smallest size that mkfs.xfs can make.
	minimumBytes = 16 << 20
	// supportedBytes is the smallest size that mkfs.xfs makes without being told
	// that it is for a test.
	supportedBytes = 300 << 20
)

// Volume is a filesystem of its own in a sparse file.
//
// It is XFS, not ext4: to grow ext4 takes CAP_SYS_RESOURCE, which root in
// a container often lacks, while XFS is content with CAP_SYS_ADMIN as mounts are.
type Volume struct {
	// Dir is where the filesystem is mounted.
	Dir string
}

// volume returns that of a PersistentVolume, in the cluster's directory.
func volume(root, name string) Volume { return Volume{Dir: filepath.Join(root, name)} }

func (v Volume) file() string { return v.Dir + ".img" }

// create makes and mounts the volume with a size in bytes. What an interrupted
// create has left is taken up.
func (v Volume) create(ctx context.Context, bytes int64) error {
	if bytes < minimumBytes {
		return fmt.Errorf("a volume has at least %d bytes, not %d", minimumBytes, bytes)
	}
	if err := os.MkdirAll(filepath.Dir(v.Dir), 0o755); err != nil {
		return fmt.Errorf("make the directory of volumes: %w", err)
	}
	if _, err := os.Stat(v.file()); errors.Is(err, fs.ErrNotExist) {
		if err := v.format(ctx, bytes); err != nil {
			return err
		}
	}
	return v.mount()
}

func (v Volume) format(ctx context.Context, bytes int64) error {
	tmp := v.file() + ".new"
	file, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("make the volume's file: %w", err)
	}
	err = errors.Join(file.Truncate(bytes), file.Close())
	if err != nil {
		return fmt.Errorf("size the volume's file to %d bytes: %w", bytes, err)
	}
	// Without shared extents, which no test needs, more of the size is the user's.
	args := []string{"-q", "-f", "-m", "reflink=0"}
	if bytes < supportedBytes {
		args = append(args, "--unsupported")
	}
	if err := run(ctx, "mkfs.xfs", append(args, tmp)...); err != nil {
		return err
	}
	if err := os.Rename(tmp, v.file()); err != nil {
		return fmt.Errorf("move the volume's file to its place: %w", err)
	}
	return nil
}

func (v Volume) mount() error {
	if mounted, err := v.device(); err != nil || mounted != "" {
		return err
	}
	if err := os.MkdirAll(v.Dir, 0o755); err != nil {
		return fmt.Errorf("make the mount point: %w", err)
	}
	device, err := attachLoop(v.file())
	if err != nil {
		return err
	}
	defer func() { _ = device.Close() }()
	if err := unix.Mount(device.Name(), v.Dir, "xfs", unix.MS_NOATIME, ""); err != nil {
		return fmt.Errorf("mount %s at %s: %w", device.Name(), v.Dir, err)
	}
	return nil
}

// device returns the block device that is mounted at the volume, empty if none.
func (v Volume) device() (string, error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return "", fmt.Errorf("read the mounts: %w", err)
	}
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		if len(fields) > 1 && fields[1] == v.Dir {
			return fields[0], nil
		}
	}
	return "", nil
}

// grow enlarges the mounted filesystem to a size in bytes, while it is in use.
func (v Volume) grow(ctx context.Context, bytes int64) error {
	info, err := os.Stat(v.file())
	if err != nil {
		return fmt.Errorf("find the volume's file: %w", err)
	}
	device, err := v.device()
	if err != nil {
		return err
	}
	if device == "" {
		return fmt.Errorf("the volume is not mounted at %s", v.Dir)
	}
	if info.Size() < bytes {
		if err := os.Truncate(v.file(), bytes); err != nil {
			return fmt.Errorf("grow the volume's file to %d bytes: %w", bytes, err)
		}
	}
	if err := growLoop(device); err != nil {
		return err
	}
	return run(ctx, "xfs_growfs", v.Dir)
}

// remove unmounts the volume and frees its space. The loop device frees itself.
func (v Volume) remove() error {
	if err := unix.Unmount(v.Dir, 0); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("unmount %s: %w", v.Dir, err)
	}
	for _, path := range []string{v.Dir, v.file(), v.file() + ".new"} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the volume: %w", err)
		}
	}
	return nil
}

func run(ctx context.Context, program string, args ...string) error {
	output, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, strings.TrimSpace(string(output)))
	}
	return nil
}
