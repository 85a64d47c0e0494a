package redisserver

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"seang.org/operator/internal/redis/conf"
)

// Check runs conf.CheckScript as a pod of that flavour does, and returns its exit code
// and its last words: what it reported, or why not.
func Check(t *testing.T, flavour, directives, names string) (code int, message string) {
	t.Helper()
	// A socket's path must be short.
	dir, err := os.MkdirTemp("", "check")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	log := filepath.Join(dir, "termination-log")
	command := exec.CommandContext(t.Context(), "sh", "-c", conf.CheckScript)
	command.Env = []string{"PATH=" + filepath.Dir(Binary(t, flavour)), "TMPDIR=" + dir, "TERMINATION_LOG=" + log,
		conf.EnvCheckConf + "=" + directives, conf.EnvCheckNames + "=" + names}
	said, err := command.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return exit.ExitCode(), string(said)
	case err != nil:
		t.Fatal(err)
	}
	report, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	return 0, string(report)
}
