package image

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"io"
	"os"
	"path/filepath"
	"testing"

	"seang.org/operator/test/images/reference"
)

func TestTheOperatorIsCrossBuilt(t *testing.T) {
	source := t.TempDir()
	for name, content := range map[string]string{"go.mod": "module operator.test\n\ngo 1.26\n", "main.go": "package main\n\nvar version string\n\nfunc main() { println(version) }\n"} {
		if err := os.WriteFile(filepath.Join(source, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	built, err := Store{Dir: t.TempDir()}.Operator(t.Context(), OperatorSource{Dir: source, Version: "v1", Arch: "arm64"})
	if err != nil {
		t.Fatal(err)
	}
	if want := reference.OperatorReference("v1-arm64"); built.References[0] != want {
		t.Errorf("the image is named %s, want %s", built.References[0], want)
	}
	image := load(t, built.File)
	config, err := image.ConfigFile()
	if err != nil || config.Architecture != "arm64" {
		t.Errorf("the image is for %s, want arm64: %v", config.Architecture, err)
	}
	files(t, image, func(_ *tar.Header, content io.Reader) {
		program, err := io.ReadAll(content)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := elf.NewFile(bytes.NewReader(program))
		if err != nil || parsed.Machine != elf.EM_AARCH64 {
			t.Errorf("the program is for %v, want arm64: %v", parsed, err)
		}
	})
}
