package storage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// loopMajor is the device number of loop devices.
const loopMajor = 7

// attachAttempts bounds how often a free device may be snatched by another.
const attachAttempts = 20

// attachLoop binds a file to a free loop device and returns the device. The
// device frees itself when the last that uses it, a mount, lets go: it must be
// mounted before the returned file is closed.
func attachLoop(file string) (*os.File, error) {
	backing, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("open the volume's file: %w", err)
	}
	defer func() { _ = backing.Close() }()
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("open the loop driver: %w", err)
	}
	defer func() { _ = control.Close() }()

	for range attachAttempts {
		index, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("find a free loop device: %w", err)
		}
		device, err := openLoop(index)
		if err != nil {
			return nil, err
		}
		config := &unix.LoopConfig{
			Fd:   uint32(backing.Fd()),
			Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR},
		}
		copy(config.Info.File_name[:], file)
		err = unix.IoctlLoopConfigure(int(device.Fd()), config)
		if err == nil {
			return device, nil
		}
		_ = device.Close()
		if !errors.Is(err, unix.EBUSY) {
			return nil, fmt.Errorf("bind %s to a loop device: %w", file, err)
		}
	}
	return nil, fmt.Errorf("bind %s to a loop device: every free one was taken by others", file)
}

// openLoop opens a loop device. Its node is made where nothing else, as in
// a container, makes it.
func openLoop(index int) (*os.File, error) {
	path := fmt.Sprintf("/dev/loop%d", index)
	err := unix.Mknod(path, unix.S_IFBLK|0o660, int(unix.Mkdev(loopMajor, uint32(index))))
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, fmt.Errorf("make %s: %w", path, err)
	}
	device, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return device, nil
}

// growLoop makes a device as large as its file has become.
func growLoop(path string) error {
	device, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	defer func() { _ = device.Close() }()
	if err := unix.IoctlSetInt(int(device.Fd()), unix.LOOP_SET_CAPACITY, 0); err != nil {
		return fmt.Errorf("grow %s: %w", path, err)
	}
	return nil
}

// Loops returns the loop devices whose file is below a directory.
func Loops(dir string) []string {
	var devices []string
	files, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, file := range files {
		backing, err := os.ReadFile(file)
		if err == nil && strings.HasPrefix(string(backing), dir+string(filepath.Separator)) {
			devices = append(devices, "/dev/"+strings.Split(file, string(filepath.Separator))[3])
		}
	}
	return devices
}

// DetachLoops frees the loop devices whose file is below a directory.
func DetachLoops(dir string) error {
	var errs []error
	for _, path := range Loops(dir) {
		device, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			errs = append(errs, fmt.Errorf("open %s: %w", path, err))
			continue
		}
		if err := unix.IoctlSetInt(int(device.Fd()), unix.LOOP_CLR_FD, 0); err != nil && !errors.Is(err, unix.ENXIO) {
			errs = append(errs, fmt.Errorf("free %s: %w", path, err))
		}
		_ = device.Close()
	}
	return errors.Join(errs...)
}
