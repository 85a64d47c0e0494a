// Package cgroup makes, empties and removes control groups, on version 1 and 2.
//
// Every process of a cluster, its containers included, is in a group below the
// cluster's. That finds and ends them all even where pid files are lost.
package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const root = "/sys/fs/cgroup"

// trackers are the version 1 hierarchies that can hold a process of ours, in
// order of preference: those that do not limit what a process may use.
var trackers = []string{"freezer", "systemd", "pids"}

// Unified reports whether the machine has control groups of version 2 only.
func Unified() bool {
	_, err := os.Stat(filepath.Join(root, "cgroup.controllers"))
	return err == nil
}

// hierarchies returns the mount points that hold groups: one on version 2.
func hierarchies() []string {
	if Unified() {
		return []string{root}
	}
	files, _ := filepath.Glob(filepath.Join(root, "*", "cgroup.procs"))
	dirs := make([]string, len(files))
	for i, file := range files {
		dirs[i] = filepath.Dir(file)
	}
	return slices.DeleteFunc(dirs, func(dir string) bool {
		info, err := os.Lstat(dir)
		return err != nil || info.Mode()&fs.ModeSymlink != 0 // cpu,cpuacct has links beside it
	})
}

func tracker() (string, error) {
	if Unified() {
		return root, nil
	}
	for _, name := range trackers {
		dir := filepath.Join(root, name)
		if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); err == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("no control group hierarchy of %v is mounted in %s", trackers, root)
}

// Create makes a group, with every controller usable below it, as the kubelet
// wants its cgroupRoot to be.
func Create(path string) error {
	for _, hierarchy := range hierarchies() {
		if Unified() {
			if err := delegate(path); err != nil {
				return err
			}
			continue
		}
		dir := filepath.Join(hierarchy, path)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make control group %s: %w", dir, err)
		}
		if filepath.Base(hierarchy) == "cpuset" {
			if err := fillCpuset(hierarchy, path); err != nil {
				return err
			}
		}
	}
	return nil
}

// delegate enables the controllers of the root in each group down to path.
func delegate(path string) error {
	available, err := os.ReadFile(filepath.Join(root, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("read the controllers of the root control group: %w", err)
	}
	dir := root
	for _, part := range append(strings.Split(path, "/"), "") {
		for controller := range strings.FieldsSeq(string(available)) {
			// One at a time, for a controller that refuses must not keep out the others.
			_ = write(filepath.Join(dir, "cgroup.subtree_control"), "+"+controller)
		}
		if part == "" {
			break
		}
		dir = filepath.Join(dir, part)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make control group %s: %w", dir, err)
		}
	}
	return nil
}

// fillCpuset gives each group down to path its parent's CPUs: a new group has
// none and takes no process.
func fillCpuset(hierarchy, path string) error {
	dir := hierarchy
	for part := range strings.SplitSeq(path, "/") {
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			value, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				return fmt.Errorf("read the CPUs of control group %s: %w", dir, err)
			}
			if err := write(filepath.Join(dir, part, file), strings.TrimSpace(string(value))); err != nil {
				return fmt.Errorf("give control group %s its CPUs: %w", filepath.Join(dir, part), err)
			}
		}
		dir = filepath.Join(dir, part)
	}
	return nil
}

// Join moves the calling process into a group, which is made if need be.
func Join(path string) error {
	hierarchy, err := tracker()
	if err != nil {
		return err
	}
	dir := filepath.Join(hierarchy, path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make control group %s: %w", dir, err)
	}
	if err := write(filepath.Join(dir, "cgroup.procs"), "0"); err != nil {
		return fmt.Errorf("join control group %s: %w", dir, err)
	}
	return nil
}

// Processes returns the ids of all processes in and below a group.
func Processes(path string) ([]int, error) {
	hierarchy, err := tracker()
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, dir := range subtree(filepath.Join(hierarchy, path)) {
		data, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENODEV) {
			return nil, fmt.Errorf("list the processes of control group %s: %w", dir, err)
		}
		for line := range strings.FieldsSeq(string(data)) {
			if pid, err := strconv.Atoi(line); err == nil && pid > 0 {
				pids = append(pids, pid)
			}
		}
	}
	return pids, nil
}

// subtree returns a group and all below it, the deepest first.
func subtree(dir string) []string {
	var dirs []string
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		return nil
	})
	slices.Reverse(dirs)
	return dirs
}

// Kill ends every process in and below a group and waits until none is left.
// Processes that fork meanwhile are found in the next round.
func Kill(ctx context.Context, path string) error {
	for {
		pids, err := Processes(path)
		if err != nil {
			return err
		}
		if len(pids) == 0 {
			return nil
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("end the processes %v of control group %s: %w", pids, path, context.Cause(ctx))
		case <-time.After(20 * time.Millisecond): // no event tells that a version 1 group is empty
		}
	}
}

// Remove removes a group and all below it. They must hold no process.
func Remove(path string) error {
	var errs []error
	for _, hierarchy := range hierarchies() {
		for _, dir := range subtree(filepath.Join(hierarchy, path)) {
			if err := syscall.Rmdir(dir); err != nil && !errors.Is(err, syscall.ENOENT) {
				errs = append(errs, fmt.Errorf("remove control group %s: %w", dir, err))
			}
		}
	}
	return errors.Join(errs...)
}

// Leftovers returns the directories of a group that still exist.
func Leftovers(path string) []string {
	var left []string
	for _, hierarchy := range hierarchies() {
		left = append(left, subtree(filepath.Join(hierarchy, path))...)
	}
	return left
}

func write(file, value string) error {
	return os.WriteFile(file, []byte(value), 0)
}
