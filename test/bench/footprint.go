package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"seang.org/operator/test/e2e/kubeapi"
)

// footprint measures the operator's image, unpacked, and the resident memory of
// its leader, which must run on this machine. N is the number of clusters.
func footprint(ctx context.Context, s *suite, n int) ([]result, error) {
	if err := s.raise(ctx, n); err != nil {
		return nil, err
	}
	pod, err := s.api.Leader(ctx)
	if err != nil {
		return nil, err
	}
	pids, err := kubeapi.Processes(pod, kubeapi.OperatorProgram)
	if err != nil {
		return nil, err
	}
	if len(pids) == 0 {
		return nil, fmt.Errorf("%s of pod %s: %w", kubeapi.OperatorProgram, pod.Name, kubeapi.ErrElsewhere)
	}
	process := fmt.Sprintf("/proc/%d", pids[0])
	size, err := unpackedSize(process + "/root/")
	if err != nil {
		return nil, err
	}
	status, err := os.ReadFile(process + "/status")
	if err != nil {
		return nil, fmt.Errorf("read the memory of pod %s: %w", pod.Name, err)
	}
	resident, err := kibibytes(string(status), "VmRSS")
	if err != nil {
		return nil, fmt.Errorf("read the memory of pod %s: %w", pod.Name, err)
	}
	s.say("leader %s: image %d bytes, resident %d bytes, %d clusters", pod.Name, size, resident, len(s.fleet))
	return []result{
		figure("MB, image unpacked", 1, float64(size)/1e6, 60),
		figure("MiB, leader resident", len(s.fleet), float64(resident)/(1<<20), 64),
	}, nil
}

// unpackedSize adds up the files of a container's root, in bytes, without what
// is mounted into it. With an image FROM scratch that is the image.
func unpackedSize(root string) (int64, error) {
	own, err := device(root)
	if err != nil {
		return 0, err
	}
	var total int64
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if here, err := device(path); err != nil || here != own {
				return filepath.SkipDir
			}
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return fmt.Errorf("measure %s: %w", path, err)
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Dev == own {
			total += info.Size()
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("measure the files of the operator's image: %w", err)
	}
	return total, nil
}

func device(path string) (uint64, error) {
	var stat syscall.Stat_t
	if err := syscall.Stat(path, &stat); err != nil {
		return 0, fmt.Errorf("find the file system of %s: %w", path, err)
	}
	return stat.Dev, nil
}
