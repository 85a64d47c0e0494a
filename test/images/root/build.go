package root

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"seang.org/operator/test/images/debian"
)

// The server's user and group in the official images.
const (
	UserID  = 999
	GroupID = 999
)

// builder writes chosen files of packages, and the libraries that they need,
// into the filesystem of an image.
type builder struct {
	tree debian.Tree
	dir  string
	// placed has the path of each content that is there, by its SHA-256.
	placed map[[32]byte]string
	// used has the packages that some file came from.
	used map[string]bool
}

// build writes the whole filesystem. Ownership is up to who makes an image.
func (b *builder) build(recipe Recipe) error {
	if err := b.skeleton(recipe); err != nil {
		return err
	}
	for _, name := range recipe.programs(b.tree) {
		if err := b.program("usr/bin/"+name, "usr/local/bin/"+name); err != nil {
			return err
		}
		// The official Valkey images answer to Redis's names.
		if rest, ok := strings.CutPrefix(name, string(Valkey)+"-"); ok {
			if err := os.Symlink(name, filepath.Join(b.dir, "usr/local/bin", string(Redis)+"-"+rest)); err != nil {
				return fmt.Errorf("link %s: %w", name, err)
			}
		}
	}
	for _, name := range b.extras(recipe) {
		if err := b.program(name, name); err != nil {
			return err
		}
	}
	return nil
}

// extras are the files besides the server's own.
func (b *builder) extras(recipe Recipe) []string {
	names := []string{"usr/bin/sh"}
	for name, file := range b.tree {
		part, ok := recipe.parts()[file.Package]
		if ok && strings.HasPrefix(name, part) {
			names = append(names, name)
		}
		if path.Dir(name) == "usr/bin" && slices.Contains(recipe.shell(), file.Package) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// skeleton makes the directories and the user database.
func (b *builder) skeleton(recipe Recipe) error {
	for _, dir := range []string{"data", "dev", "etc", "home", "proc", "root", "run", "sys", "tmp", "usr/bin", "usr/lib", "usr/lib64", "usr/local/bin", "usr/sbin", "var/lib", "var/tmp"} {
		if err := os.MkdirAll(filepath.Join(b.dir, dir), 0o755); err != nil {
			return fmt.Errorf("make /%s: %w", dir, err)
		}
	}
	for _, link := range []string{"bin", "lib", "lib64", "sbin"} {
		if err := os.Symlink("usr/"+link, filepath.Join(b.dir, link)); err != nil {
			return fmt.Errorf("link /%s: %w", link, err)
		}
	}
	user := string(recipe.Flavour)
	for name, content := range map[string]string{
		"etc/passwd": "root:x:0:0:root:/root:/bin/sh\n" + fmt.Sprintf("%s:x:%d:%d::/data:/bin/sh\n", user, UserID, GroupID) +
			"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
		"etc/group":         fmt.Sprintf("root:x:0:\n%s:x:%d:\nnogroup:x:65534:\n", user, GroupID),
		"etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
	} {
		if err := os.WriteFile(filepath.Join(b.dir, name), []byte(content), 0o644); err != nil {
			return fmt.Errorf("write /%s: %w", name, err)
		}
	}
	return nil
}

// program places a program, the loader that it names and its libraries. What is
// no ELF file needs none: the few scripts in these packages are for sh.
func (b *builder) program(from, to string) error {
	file, ok := b.tree.Regular(from)
	if !ok && from == "usr/bin/sh" { // Debian bookworm's link comes from a maintainer script
		file, ok = b.tree.Regular("usr/bin/dash")
	}
	if !ok {
		return fmt.Errorf("no package has /%s", from)
	}
	if err := b.place(file, to); err != nil {
		return err
	}
	return b.libraries(file, to)
}

func (b *builder) libraries(file debian.File, name string) error {
	if !bytes.HasPrefix(file.Data, []byte(elf.ELFMAG)) {
		return nil
	}
	binary, err := elf.NewFile(bytes.NewReader(file.Data))
	if err != nil {
		return fmt.Errorf("read /%s: %w", name, err)
	}
	needed, err := binary.ImportedLibraries()
	if err != nil {
		return fmt.Errorf("read the libraries of /%s: %w", name, err)
	}
	var paths []string
	if loader := interpreter(binary); loader != "" {
		paths = append(paths, debian.Merged(loader))
	}
	for _, soname := range needed {
		found, ok := b.library(soname)
		if !ok {
			return fmt.Errorf("no package has the library %s that /%s needs", soname, name)
		}
		paths = append(paths, found)
	}
	for _, p := range paths {
		library, ok := b.tree.Regular(p)
		if !ok {
			return fmt.Errorf("no package has /%s that /%s needs", p, name)
		}
		if _, err := os.Lstat(filepath.Join(b.dir, p)); err == nil {
			continue
		}
		if err := b.place(library, p); err != nil {
			return err
		}
		if err := b.libraries(library, p); err != nil {
			return err
		}
	}
	return nil
}

// library finds a library in the loader's own directories.
func (b *builder) library(soname string) (string, bool) {
	for name := range b.tree {
		if path.Base(name) != soname {
			continue
		}
		dir := path.Dir(name)
		if dir == "usr/lib" || path.Dir(dir) == "usr/lib" && strings.HasSuffix(dir, "-linux-gnu") {
			return name, true
		}
	}
	return "", false
}

func interpreter(binary *elf.File) string {
	for _, segment := range binary.Progs {
		if segment.Type == elf.PT_INTERP {
			content := make([]byte, segment.Filesz)
			if _, err := segment.ReadAt(content, 0); err == nil {
				return string(bytes.TrimRight(content, "\x00"))
			}
		}
	}
	return ""
}

// place writes a file, as a symbolic link if its content is there already:
// redis-server, redis-check-aof and redis-check-rdb are one program, which
// looks at its name.
func (b *builder) place(file debian.File, to string) error {
	b.used[file.Package] = true
	target := filepath.Join(b.dir, to)
	sum := sha256.Sum256(file.Data)
	err := os.MkdirAll(filepath.Dir(target), 0o755)
	if first, ok := b.placed[sum]; ok && err == nil {
		var link string
		if link, err = filepath.Rel(path.Dir(to), first); err == nil {
			err = os.Symlink(link, target)
		}
		if errors.Is(err, os.ErrExist) {
			return nil
		}
	} else if err == nil {
		b.placed[sum] = to
		err = os.WriteFile(target, file.Data, file.Mode.Perm())
	}
	if err != nil {
		return fmt.Errorf("place /%s: %w", to, err)
	}
	return nil
}

// wrapper runs a program of the root directory on a machine whose own loader
// and libraries may be older. It execs, so the process is the server: signals
// and the process ID are right, though /proc/PID/exe and the name in ps are
// the loader's.
const wrapper = `#!/bin/sh
root="${0%%/*}/../root"
exec "$root%s" --library-path "$root/usr/lib/%s" "$root/usr/local/bin/%s" "$@"
`

func (b *builder) wrap(recipe Recipe, dir string) error {
	server, ok := b.tree.Regular("usr/bin/" + recipe.server())
	if !ok {
		return fmt.Errorf("no package has %s", recipe.server())
	}
	binary, err := elf.NewFile(bytes.NewReader(server.Data))
	if err != nil {
		return fmt.Errorf("read %s: %w", recipe.server(), err)
	}
	libc, ok := b.library("libc.so.6")
	if !ok {
		return errors.New("no package has libc.so.6")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the directory of wrappers: %w", err)
	}
	programs, err := os.ReadDir(filepath.Join(b.dir, "usr/local/bin"))
	if err != nil {
		return fmt.Errorf("list the server's programs: %w", err)
	}
	for _, program := range programs {
		script := fmt.Sprintf(wrapper, interpreter(binary), path.Base(path.Dir(libc)), program.Name())
		if err := os.WriteFile(filepath.Join(dir, program.Name()), []byte(script), 0o755); err != nil {
			return fmt.Errorf("write the wrapper of %s: %w", program.Name(), err)
		}
	}
	return nil
}
