package image

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"seang.org/operator/test/images/reference"
)

func TestABundleIsSmall(t *testing.T) {
	store := Store{Dir: t.TempDir()}
	if _, err := store.Bundle(reference.OperatorRepository+"-bundle:v0.0.0", "../../../bundle", nil); err != nil {
		t.Errorf("the bundle of the repository: %v", err)
	}
	large := t.TempDir()
	noise := make([]byte, maxBundleSize) // which gzip cannot make smaller
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(large, "a"), noise, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Bundle(reference.OperatorRepository+"-bundle:v0.0.0", large, nil); err == nil || !strings.Contains(err.Error(), "more than 200000") {
		t.Errorf("got %v of a bundle with %d bytes, want it refused", err, len(noise))
	}
}
