package debian

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Archive is the packages of one Debian release.
type Archive struct {
	dir   string
	suite string
}

// Package is a downloaded package.
type Package struct {
	Name string
	// Version has Debian's epoch and revision: 5:8.0.2-3+deb13u3.
	Version string
	// File is the .deb.
	File string
}

// Open reads the package lists of a release over the network into dir, which
// then holds all that apt keeps.
func Open(ctx context.Context, dir, suite string) (*Archive, error) {
	release, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return nil, fmt.Errorf("find this machine's Debian release: %w", err)
	}
	sources, err := Sources("/etc/apt", codename(release), suite)
	if err != nil {
		return nil, err
	}
	a := &Archive{dir: dir, suite: suite}
	for _, sub := range []string{"lists/partial", "archives/partial", "none/partial", "state"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, fmt.Errorf("make apt's directories: %w", err)
		}
	}
	config, err := a.config(ctx)
	if err != nil {
		return nil, err
	}
	// No package counts as installed: so downloads bring the whole closure. The
	// files are for all to read, as apt drops to a user of its own.
	for name, content := range map[string][]byte{"debian.sources": sources, "apt.conf": config, "state/status": nil} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return nil, fmt.Errorf("configure apt for %s: %w", suite, err)
		}
	}
	if _, err := a.run(ctx, "apt-get", "-q", "update"); err != nil {
		return nil, fmt.Errorf("read the package lists of Debian %s: %w", suite, err)
	}
	return a, nil
}

// config is apt's whole configuration: the machine's settings for the network,
// none of its hooks, and directories below the archive's own.
func (a *Archive) config(ctx context.Context) ([]byte, error) {
	network, err := run(ctx, nil, "apt-config", "dump", "--format", `%F "%v";%n`, "Acquire")
	if err != nil {
		return nil, fmt.Errorf("read apt's network settings: %w", err)
	}
	var out bytes.Buffer
	out.Write(network)
	for key, value := range map[string]string{
		"Dir::Etc::parts":            "/dev/null",
		"Dir::Etc::main":             "/dev/null",
		"Dir::Etc::sourcelist":       filepath.Join(a.dir, "debian.sources"),
		"Dir::Etc::sourceparts":      "/dev/null",
		"Dir::Etc::preferences":      "/dev/null",
		"Dir::Etc::preferencesparts": "/dev/null",
		"Dir::State":                 filepath.Join(a.dir, "state"),
		"Dir::State::lists":          filepath.Join(a.dir, "lists"),
		"Dir::State::status":         filepath.Join(a.dir, "state/status"),
		"Dir::Cache":                 a.dir,
		"Dir::Log":                   a.dir,
		"APT::Sandbox::User":         "", // dir may be closed to apt's user
		"Debug::NoLocking":           "true",
		"Acquire::Languages":         "none",
		"APT::Install-Recommends":    "false",
		"Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
	} {
		fmt.Fprintf(&out, "%s %q;\n", key, value)
	}
	return out.Bytes(), nil
}

// Download fetches packages and everything they depend on, sorted by name.
func (a *Archive) Download(ctx context.Context, names ...string) ([]Package, error) {
	install := append([]string{"-q", "-y", "install"}, names...)
	// apt lists only what it has not downloaded yet, so it is shown no downloads.
	listed, err := a.run(ctx, "apt-get", append(install, "--print-uris", "-o", "Dir::Cache::archives="+filepath.Join(a.dir, "none"))...)
	if err == nil {
		_, err = a.run(ctx, "apt-get", append(install, "--download-only")...)
	}
	if err != nil {
		return nil, fmt.Errorf("download %s from Debian %s: %w", strings.Join(names, ", "), a.suite, err)
	}
	var packages []Package
	for line := range strings.Lines(string(listed)) {
		fields := strings.Fields(line) // 'URI' FILE SIZE HASH
		if len(fields) < 3 || !strings.HasPrefix(line, "'") {
			continue
		}
		file := filepath.Join(a.dir, "archives", fields[1])
		shown, err := run(ctx, nil, "dpkg-deb", "--show", "--showformat", "${Package} ${Version}", file)
		if err != nil {
			return nil, fmt.Errorf("read the package in %s: %w", file, err)
		}
		name, version, _ := strings.Cut(string(shown), " ")
		packages = append(packages, Package{Name: name, Version: version, File: file})
	}
	slices.SortFunc(packages, func(a, b Package) int { return strings.Compare(a.Name, b.Name) })
	return packages, nil
}

func (a *Archive) run(ctx context.Context, program string, arguments ...string) ([]byte, error) {
	return run(ctx, []string{"APT_CONFIG=" + filepath.Join(a.dir, "apt.conf")}, program, arguments...)
}

func run(ctx context.Context, environment []string, program string, arguments ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, program, arguments...)
	command.Env = append(append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive"), environment...)
	var said bytes.Buffer
	command.Stderr = &said
	out, err := command.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return nil, fmt.Errorf("%s is missing: this needs a Debian machine with apt and dpkg: %w", program, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", program, err, bytes.TrimSpace(said.Bytes()))
	}
	return out, nil
}

// codename is a release's name in /etc/os-release, such as bookworm.
func codename(release []byte) string {
	for line := range strings.Lines(string(release)) {
		if value, ok := strings.CutPrefix(line, "VERSION_CODENAME="); ok {
			return strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	return ""
}
