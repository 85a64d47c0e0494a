package apiserver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// envPrograms names the directory with the programs, as other tools do too.
const envPrograms = "KUBEBUILDER_ASSETS"

// programsDir finds the directory with kube-apiserver and etcd: the one that the
// environment names, else the newest that test/cluster built into the user's
// cache directory.
func programsDir() (string, error) {
	if dir := os.Getenv(envPrograms); dir != "" {
		return dir, checkPrograms(dir)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache directory: %w", err)
	}
	pattern := filepath.Join(cache, "redis-operator", "kubernetes-*")
	dirs, err := filepath.Glob(pattern)
	if err != nil {
		return "", fmt.Errorf("look for %s: %w", pattern, err)
	}
	var newest string
	var built time.Time
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil || checkPrograms(dir) != nil {
			continue // removed meanwhile, or not complete
		}
		if info.ModTime().After(built) {
			newest, built = dir, info.ModTime()
		}
	}
	if newest == "" {
		return "", fmt.Errorf("no API server in %s: build it with `go run -C test/cluster . build kubernetes`, or set %s to a directory with kube-apiserver and etcd", pattern, envPrograms)
	}
	return newest, nil
}

func checkPrograms(dir string) error {
	for _, program := range []string{"kube-apiserver", "etcd"} {
		if _, err := os.Stat(filepath.Join(dir, program)); err != nil {
			return fmt.Errorf("no API server in %s: %w", dir, err)
		}
	}
	return nil
}

// repositoryRoot is the directory with the go.mod, from the one of the test upwards.
func repositoryRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the working directory: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod in a parent of the working directory")
		}
		dir = parent
	}
}
