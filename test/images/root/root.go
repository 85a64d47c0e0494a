package root

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"pault.ag/go/debian/version"

	"seang.org/operator/test/images/debian"
)

// layoutVersion changes whenever the content of a root directory does for other
// reasons than new packages, so that older ones are made anew.
const layoutVersion = 2

// Root is a finished root directory:
//
//	root/           the filesystem of an image
//	bin/            its server programs, to be run on this machine
//	versions.json   what it holds
type Root struct {
	Dir string
	Versions
}

// Versions is the content of versions.json.
type Versions struct {
	Name    string  `json:"name"`
	Flavour Flavour `json:"flavour"`
	// Version is the server's own: 8.0.2.
	Version string `json:"version"`
	Suite   string `json:"suite"`
	Layout  int    `json:"layout"`
	// Packages has the Debian version of each package that a file is from.
	Packages map[string]string `json:"packages"`
}

// FS is the directory with the filesystem of an image.
func (r Root) FS() string { return filepath.Join(r.Dir, "root") }

// Program is the path of a server program that runs on this machine, such as
// redis-server, valkey-cli.
func (r Root) Program(name string) string { return filepath.Join(r.Dir, "bin", name) }

// CacheDir is where root directories are kept unless told otherwise.
func CacheDir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache directory: %w", err)
	}
	return filepath.Join(cache, "redis-operator", "redis"), nil
}

// Store keeps root directories below a directory.
type Store struct{ Dir string }

// Find returns a root directory that is there. It needs no network; its error
// is fs.ErrNotExist if the root directory is absent or of an older layout.
func (s Store) Find(recipe Recipe) (Root, error) {
	root := Root{Dir: filepath.Join(s.Dir, recipe.Name)}
	content, err := os.ReadFile(filepath.Join(root.Dir, "versions.json"))
	if err == nil {
		err = json.Unmarshal(content, &root.Versions)
	}
	if err == nil && root.Layout != layoutVersion {
		err = fmt.Errorf("its layout is version %d, not %d: %w", root.Layout, layoutVersion, fs.ErrNotExist)
	}
	if err != nil {
		return Root{}, fmt.Errorf("root directory %s: %w", recipe.Name, err)
	}
	return root, nil
}

// Make returns the root directories of recipes, and makes those that are absent
// (refresh: or whose packages have newer versions). Each appears whole or not
// at all, whatever interrupts; two processes can make them at the same time.
func (s Store) Make(ctx context.Context, refresh bool, recipes ...Recipe) ([]Root, error) {
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the directory of root directories: %w", err)
	}
	unlock, err := s.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	scratch, err := os.MkdirTemp(s.Dir, ".new-")
	if err != nil {
		return nil, fmt.Errorf("make a scratch directory: %w", err)
	}
	defer os.RemoveAll(scratch) //nolint:errcheck // nothing refers to it
	archives := map[string]*debian.Archive{}
	var roots []Root
	for _, recipe := range recipes {
		root, err := s.Find(recipe)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err != nil || refresh {
			if archives[recipe.Suite] == nil {
				if archives[recipe.Suite], err = debian.Open(ctx, filepath.Join(scratch, "apt-"+recipe.Suite), recipe.Suite); err != nil {
					return nil, err
				}
			}
			if root, err = s.make(ctx, scratch, archives[recipe.Suite], recipe); err != nil {
				return nil, fmt.Errorf("make root directory %s: %w", recipe.Name, err)
			}
		}
		roots = append(roots, root)
	}
	return roots, nil
}

func (s Store) make(ctx context.Context, scratch string, archive *debian.Archive, recipe Recipe) (Root, error) {
	packages, err := archive.Download(ctx, recipe.packages()...)
	if err != nil {
		return Root{}, err
	}
	tree, err := debian.Unpack(ctx, packages)
	if err != nil {
		return Root{}, err
	}
	made := Root{Dir: filepath.Join(scratch, recipe.Name)}
	b := builder{tree: tree, dir: made.FS(), placed: map[[32]byte]string{}, used: map[string]bool{}}
	if err := b.build(recipe); err != nil {
		return Root{}, err
	}
	if err := b.wrap(recipe, filepath.Join(made.Dir, "bin")); err != nil {
		return Root{}, err
	}
	made.Versions, err = describe(recipe, packages, b.used)
	if err != nil {
		return Root{}, err
	}
	content, err := json.MarshalIndent(made.Versions, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(made.Dir, "versions.json"), append(content, '\n'), 0o644)
	}
	if err != nil {
		return Root{}, fmt.Errorf("write versions.json: %w", err)
	}
	if old, err := s.Find(recipe); err == nil && maps.Equal(old.Packages, made.Packages) {
		return old, nil // nothing is newer: leave what others may use
	}
	return s.publish(scratch, made)
}

// publish puts a finished root directory in the place of the one before it.
// Servers that run from that one go on: their files live until they end.
func (s Store) publish(scratch string, made Root) (Root, error) {
	final := filepath.Join(s.Dir, made.Name)
	err := os.Rename(final, filepath.Join(scratch, "old-"+strconv.Itoa(os.Getpid())+made.Name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Root{}, fmt.Errorf("put the old root directory away: %w", err)
	}
	if err := os.Rename(made.Dir, final); err != nil {
		return Root{}, fmt.Errorf("publish the root directory: %w", err)
	}
	made.Dir = final
	return made, nil
}

func (s Store) lock() (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(s.Dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the lock: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", file.Name(), err), file.Close())
	}
	return func() { _ = file.Close() }, nil
}

func describe(recipe Recipe, packages []debian.Package, used map[string]bool) (Versions, error) {
	versions := Versions{Name: recipe.Name, Flavour: recipe.Flavour, Suite: recipe.Suite, Layout: layoutVersion, Packages: map[string]string{}}
	for _, p := range packages {
		if used[p.Name] || slices.Contains(recipe.packages(), p.Name) {
			versions.Packages[p.Name] = p.Version
		}
	}
	full := versions.Packages[recipe.server()]
	parsed, err := version.Parse(full)
	if err != nil {
		return Versions{}, fmt.Errorf("version %q of %s: %w", full, recipe.server(), err)
	}
	versions.Version, _, _ = strings.Cut(parsed.Version, "+") // 8.1.1+dfsg1
	if series := strings.TrimPrefix(recipe.Name, string(recipe.Flavour)+"-"); !strings.HasPrefix(versions.Version, series+".") {
		return Versions{}, fmt.Errorf("%s in Debian %s is version %s, not %s: the suite or the name of the recipe is wrong", recipe.Flavour, recipe.Suite, versions.Version, series)
	}
	return versions, nil
}

// server is the name of the server's package and of its program.
func (r Recipe) server() string { return string(r.Flavour) + "-server" }

// programs are the server's own, with the server itself first.
func (r Recipe) programs(tree debian.Tree) []string {
	var names []string
	for name, file := range tree {
		if filepath.Dir(name) == "usr/bin" && slices.Contains(r.servers(), file.Package) {
			names = append(names, filepath.Base(name))
		}
	}
	slices.Sort(names)
	return slices.Compact(append([]string{r.server()}, slices.DeleteFunc(names, func(n string) bool { return n == r.server() })...))
}

// Recipe is what the root directory was made of.
func (r Root) Recipe() Recipe { return Recipe{Name: r.Name, Flavour: r.Flavour, Suite: r.Suite} }
