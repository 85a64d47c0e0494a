package image

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"seang.org/operator/test/images/reference"
)

// operatorUser is that of the distroless images, which no machine has.
const operatorUser = "65532:65532"

// maxOperatorSize bounds the operator's program, in bytes.
const maxOperatorSize = 60_000_000

// Operator compiles the main package in the directory source and makes the
// operator's image of a version: the static program /manager and nothing else,
// as the Dockerfile at the root of the repository does.
//
// Of sources that never change, commit names the commit: the image is made once.
func (s Store) Operator(ctx context.Context, source, version, commit string) (Built, error) {
	image := reference.Operator
	built := Built{Image: image, References: []string{image.Reference(version)}, File: s.file(image.Reference(version))}
	key := fmt.Sprintf("%d-%s", layoutVersion, commit)
	if commit != "" && madeFrom(built.File, key) {
		return built, nil
	}
	scratch, err := os.MkdirTemp("", "operator-")
	if err != nil {
		return Built{}, fmt.Errorf("make a scratch directory: %w", err)
	}
	defer os.RemoveAll(scratch) //nolint:errcheck // nothing refers to it
	program := filepath.Join(scratch, "manager")
	if err := compile(ctx, source, version, program); err != nil {
		return Built{}, err
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return Built{}, fmt.Errorf("read the operator's program: %w", err)
	}
	if len(content) > maxOperatorSize {
		return Built{}, fmt.Errorf("the operator's program has %d bytes, more than %d: see which package calls methods by name with go build -ldflags=-dumpdep (ReflectMethod)", len(content), maxOperatorSize)
	}
	layer, err := fileLayer("manager", content)
	if err != nil {
		return Built{}, err
	}
	made, err := assemble(layer, v1.Config{
		User:       operatorUser,
		Entrypoint: []string{"/manager"},
		WorkingDir: "/",
		Labels:     map[string]string{"org.opencontainers.image.version": version, keyLabel: key},
	})
	if err != nil {
		return Built{}, fmt.Errorf("make the operator's image: %w", err)
	}
	return s.write(built, made)
}

// compile does as the Dockerfile does: the two must give the same program.
//
// gRPC, which Kubernetes' libraries bring along, traces with HTML templates.
// Those call methods by names found at run time, so with them the linker keeps
// every method of every type: 65 MB in place of 42. The tag leaves them out.
func compile(ctx context.Context, source, version, program string) error {
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-tags", "grpcnotrace",
		"-ldflags", "-s -w -X main.version="+version, "-o", program, ".")
	command.Dir = source
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("compile the operator in %s: %w: %s", source, err, bytes.TrimSpace(out))
	}
	return nil
}
