package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// envEmbedded names the embedded cluster that is worked with, as `cluster exec` does.
const envEmbedded = "CLUSTER_NAME"

// EmbeddedProgram makes, describes and disturbs the embedded Kubernetes, from the
// root of the repository.
const EmbeddedProgram = "bin/cluster"

// ErrNotEmbedded: what was asked for needs an embedded Kubernetes.
var ErrNotEmbedded = fmt.Errorf("%s names no embedded cluster: run this with %s exec", envEmbedded, EmbeddedProgram)

// Embedded disturbs the parts of an embedded Kubernetes, by the arguments of its
// program: "node", "cut", NAME or "process", "kill", NAME.
func Embedded(ctx context.Context, arguments ...string) error {
	name := os.Getenv(envEmbedded)
	if name == "" {
		return ErrNotEmbedded
	}
	program, err := embeddedProgram()
	if err != nil {
		return err
	}
	said, err := exec.CommandContext(ctx, program, append(slices.Clone(arguments), "--name", name)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("cluster %v: %w: %s", arguments, err, said)
	}
	return nil
}

// embeddedProgram looks from the current directory upwards: a test runs in that of
// its package.
func embeddedProgram() (string, error) {
	directory, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find %s: %w", EmbeddedProgram, err)
	}
	for {
		program := filepath.Join(directory, EmbeddedProgram)
		_, err := os.Stat(program)
		switch {
		case err == nil:
			return program, nil
		case !errors.Is(err, os.ErrNotExist) || directory == filepath.Dir(directory):
			return "", fmt.Errorf("find %s here or above: %w", EmbeddedProgram, err)
		}
		directory = filepath.Dir(directory)
	}
}
