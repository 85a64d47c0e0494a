package root

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	tests := map[string]struct {
		content    string
		wantAbsent bool
		wantErr    bool
	}{
		"A finished root directory is found":          {content: fmt.Sprintf(`{"name": "redis-8.0", "version": "8.0.2", "layout": %d}`, layoutVersion)},
		"One that is not there is absent":             {wantAbsent: true, wantErr: true},
		"One of an older layout is as good as absent": {content: `{"name": "redis-8.0", "layout": 0}`, wantAbsent: true, wantErr: true},
		"A broken one is an error":                    {content: `{`, wantErr: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			store := Store{Dir: t.TempDir()}
			dir := filepath.Join(store.Dir, "redis-8.0")
			if test.content != "" {
				if err := os.Mkdir(dir, 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, "versions.json"), []byte(test.content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			found, err := store.Find(Recipe{Name: "redis-8.0"})
			if (err != nil) != test.wantErr || errors.Is(err, fs.ErrNotExist) != test.wantAbsent {
				t.Fatalf("Find() error = %v, want one: %t, for absence: %t", err, test.wantErr, test.wantAbsent)
			}
			if err == nil && (found.Dir != dir || found.Version != "8.0.2") {
				t.Errorf("Find() = %+v, want version 8.0.2 in %s", found, dir)
			}
		})
	}
}

func TestSelectNamesWhatThereIs(t *testing.T) {
	if _, err := Select("redis-9.9"); err == nil || !strings.Contains(err.Error(), "redis-8.0") {
		t.Errorf("Select(redis-9.9) error = %v, want one that lists the names", err)
	}
	all, err := Select()
	if err != nil || len(all) != len(Recipes()) {
		t.Errorf("Select() = %v, %v, want all", all, err)
	}
}

// TestPublishReplacesWhole shows that a newer root directory takes the place of
// the one before it with nothing of that left.
func TestPublishReplacesWhole(t *testing.T) {
	store := Store{Dir: t.TempDir()}
	for _, file := range []string{"old", "new"} {
		scratch := t.TempDir()
		made := Root{Dir: filepath.Join(scratch, "made"), Versions: Versions{Name: "redis-8.0"}}
		if err := os.Mkdir(made.Dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(made.Dir, file), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := store.publish(scratch, made); err != nil {
			t.Fatal(err)
		}
	}
	found, err := filepath.Glob(filepath.Join(store.Dir, "redis-8.0", "*"))
	if err != nil || len(found) != 1 || filepath.Base(found[0]) != "new" {
		t.Errorf("the root directory has %v (%v), want only new", found, err)
	}
}

// TestEveryProgramFindsItsLibraries asks the root's own loader.
func TestEveryProgramFindsItsLibraries(t *testing.T) {
	for _, root := range makeRoots(t) {
		t.Run(root.Name, func(t *testing.T) {
			loaders, err := filepath.Glob(filepath.Join(root.FS(), "usr/lib64/ld-linux-*"))
			if err != nil || len(loaders) != 1 {
				t.Skipf("the loader is elsewhere on this architecture: %v, %v", loaders, err)
			}
			libraries, err := filepath.Glob(filepath.Join(root.FS(), "usr/lib/*-linux-gnu"))
			if err != nil || len(libraries) != 1 {
				t.Fatalf("directories of libraries: %v, %v", libraries, err)
			}
			for _, dir := range []string{"usr/bin", "usr/local/bin"} {
				programs, err := os.ReadDir(filepath.Join(root.FS(), dir))
				if err != nil || len(programs) == 0 {
					t.Fatalf("programs in /%s: %v, %v", dir, programs, err)
				}
				for _, program := range programs {
					file := filepath.Join(root.FS(), dir, program.Name())
					content, err := os.ReadFile(file)
					if err != nil {
						t.Error(err)
					}
					if strings.HasPrefix(string(content), "#!") {
						continue
					}
					out, err := exec.Command(loaders[0], "--library-path", libraries[0], "--inhibit-cache", "--list", file).CombinedOutput()
					if err != nil || strings.Contains(string(out), "not found") {
						t.Errorf("%s: %v: %s", program.Name(), err, out)
					}
					for line := range strings.Lines(string(out)) {
						if at := strings.Index(line, "=> /"); at >= 0 && !strings.HasPrefix(line[at+3:], root.FS()) {
							t.Errorf("%s takes a library of this machine: %s", program.Name(), strings.TrimSpace(line))
						}
					}
				}
			}
		})
	}
}
