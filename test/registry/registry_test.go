package registry

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// written are the files that make targets write the name of the registry to, by their
// beginnings; the first has it.
var written = []string{
	"Makefile",
	"config/manager/kustomization.yaml", "config/scorecard/config.yaml", "catalog/install.yaml",
	"test/registry/registry.go", "test/images/reference/reference.go",
	"bundle/manifests/", "bundle/tests/", "catalog/redis-operator/",
}

func TestTheRegistryIsNamedInOnePlace(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(makefile), Host) != 1 || !strings.Contains(string(makefile), ":= "+Host+"\n") {
		t.Errorf("the Makefile does not set the variable REGISTRY, and nothing else, to %s", Host)
	}
	for _, file := range naming(t, Host) {
		if !beginsWithOne(file, written) {
			t.Errorf("%s names the registry %s: use the constants of this package, or have make generate write it", file, Host)
		}
	}
}

// naming are the files of the repository that name something.
func naming(t *testing.T, what string) []string {
	t.Helper()
	git := exec.CommandContext(t.Context(), "git", "grep", "--untracked", "-lF", what)
	git.Dir = "../.."
	out, err := git.Output()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		t.Fatalf("search the repository: %v", err)
	}
	return strings.Fields(string(out))
}

func beginsWithOne(file string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(file, prefix) {
			return true
		}
	}
	return false
}
