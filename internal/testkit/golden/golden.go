// Package golden compares what a test built with a file under testdata.
// Run the test with -update to write the files anew, and read the diff.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

// YAML compares the YAML of an object with testdata/NAME.yaml.
func YAML(t *testing.T, name string, object any) {
	t.Helper()
	got, err := yaml.Marshal(object)
	if err != nil {
		t.Fatalf("encode %s: %v", name, err)
	}
	Text(t, name+".yaml", string(got))
}

// Text compares a text with testdata/FILE.
func Text(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", filepath.FromSlash(file))
	if *update {
		write(t, path, got)
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: run the test with -update to write it", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got); if the change is meant, run the test with -update:\n%s", path, diff)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
