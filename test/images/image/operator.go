package image

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"seang.org/operator/test/images/reference"
)

// operatorUser is that of the distroless images, which no machine has.
const operatorUser = "65532:65532"

// maxOperatorSize bounds the operator's program, in bytes.
const maxOperatorSize = 60_000_000

// OperatorSource is what an image of the operator is made from.
type OperatorSource struct {
	// Dir has the main package, Version is the image's tag.
	Dir, Version string
	// Commit of sources that never change: their image is made once. Empty of others.
	Commit string
	// Arch is the architecture, as Go names it. Empty is this machine's; of another the
	// image has the name in its tag, and cannot be run here.
	Arch string
}

// Operator compiles the operator and makes its image: the static program /manager and
// nothing else, as the Dockerfile at the root of the repository does.
func (s Store) Operator(ctx context.Context, from OperatorSource) (Built, error) {
	image, name := reference.Operator, reference.OperatorReference(from.Version)
	if from.Arch == "" {
		from.Arch = runtime.GOARCH
	} else {
		name += "-" + from.Arch
	}
	built := Built{Image: image, References: []string{name}, File: s.file(name)}
	key := fmt.Sprintf("%d-%s", layoutVersion, from.Commit)
	if from.Commit != "" && madeFrom(built.File, key) {
		return built, nil
	}
	scratch, err := os.MkdirTemp("", "operator-")
	if err != nil {
		return Built{}, fmt.Errorf("make a scratch directory: %w", err)
	}
	defer os.RemoveAll(scratch) //nolint:errcheck // nothing refers to it
	program := filepath.Join(scratch, "manager")
	if err := compile(ctx, from, program); err != nil {
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
		Labels:     map[string]string{"org.opencontainers.image.version": from.Version, keyLabel: key},
	})
	if err == nil {
		made, err = forArchitecture(made, from.Arch)
	}
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
func compile(ctx context.Context, from OperatorSource, program string) error {
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-tags", "grpcnotrace",
		"-ldflags", "-s -w -X main.version="+from.Version, "-o", program, ".")
	command.Dir = from.Dir
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+from.Arch)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("compile the operator in %s for %s: %w: %s", from.Dir, from.Arch, err, bytes.TrimSpace(out))
	}
	return nil
}
