package storage

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"seang.org/operator/test/cluster/host"
)

const mebi = 1 << 20

func TestVolumeHasItsSizeAndGrowsWhileItIsInUse(t *testing.T) {
	v := newVolume(t)
	if err := v.create(t.Context(), 32*mebi); err != nil {
		t.Fatal(err)
	}
	if size := filesystemBytes(t, v.Dir); size > 32*mebi || size < 28*mebi {
		t.Errorf("the filesystem has %d bytes, want about 32 MiB", size)
	}
	file, err := os.Create(filepath.Join(v.Dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Write(bytes.Repeat([]byte("x"), 40*mebi)); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("writing 40 MiB gives %v, want no space left", err)
	}
	if err := v.grow(t.Context(), 64*mebi); err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write(bytes.Repeat([]byte("x"), 20*mebi)); err != nil {
		t.Errorf("writing 20 MiB more after the growth: %v", err)
	}
}

func TestVolumeRemovesFileMountAndDevice(t *testing.T) {
	v := newVolume(t)
	if err := v.create(t.Context(), 32*mebi); err != nil {
		t.Fatal(err)
	}
	if loops := Loops(filepath.Dir(v.Dir)); len(loops) != 1 {
		t.Fatalf("the volume has loop devices %v, want one", loops)
	}
	if err := v.remove(); err != nil {
		t.Fatal(err)
	}
	if loops := Loops(filepath.Dir(v.Dir)); len(loops) != 0 {
		t.Errorf("loop devices %v are left", loops)
	}
	if entries, err := os.ReadDir(filepath.Dir(v.Dir)); err != nil || len(entries) != 0 {
		t.Errorf("files %v are left, %v", entries, err)
	}
	if err := v.remove(); err != nil {
		t.Errorf("a second removal: %v", err)
	}
}

func TestVolumeIsTakenUpAfterAnInterruptedCreate(t *testing.T) {
	v := newVolume(t)
	if err := v.create(t.Context(), 32*mebi); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(v.Dir, "data"), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Unmount(v.Dir, 0); err != nil {
		t.Fatal(err)
	}
	if err := v.create(t.Context(), 32*mebi); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(filepath.Join(v.Dir, "data")); err != nil || string(content) != "kept" {
		t.Errorf("the file has %q, %v", content, err)
	}
}

func TestVolumeIsNeverTooSmallToFormat(t *testing.T) {
	if err := volume(t.TempDir(), "small").create(t.Context(), mebi); err == nil {
		t.Error("a volume of 1 MiB was made")
	}
}

func newVolume(t *testing.T) Volume {
	t.Helper()
	if testing.Short() {
		t.Skip("needs the programs of a filesystem")
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	if err := host.EnsurePackages(t.Context(), os.Stderr); err != nil {
		t.Fatal(err)
	}
	v := volume(t.TempDir(), "pvc-test")
	t.Cleanup(func() { _ = syscall.Unmount(v.Dir, syscall.MNT_DETACH) })
	return v
}

func filesystemBytes(t *testing.T, dir string) int64 {
	t.Helper()
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil {
		t.Fatal(err)
	}
	return int64(stat.Blocks) * stat.Bsize
}
