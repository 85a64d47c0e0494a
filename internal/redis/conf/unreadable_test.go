package conf_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/conf"
	"seang.org/operator/internal/testkit/redisserver"
)

// damage overwrites the middle of each file of dir whose name ends so.
func damage(t *testing.T, dir, suffix string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s has no file *%s: %v", dir, suffix, err)
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := len(content) / 3; i < len(content)*2/3; i++ {
			content[i] = 0xfe
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFilesThatAreDamagedAreSetAsideOnceAndOnlyWhereTheOperatorSaysSo(t *testing.T) {
	cases := map[string]func(t *testing.T, data string){
		"append-only file": func(t *testing.T, data string) { damage(t, data+"/appendonlydir", ".incr.aof") },
		"base file":        func(t *testing.T, data string) { damage(t, data+"/appendonlydir", ".base.rdb") },
		"manifest":         func(t *testing.T, data string) { damage(t, data+"/appendonlydir", ".manifest") },
		"a file that is gone": func(t *testing.T, data string) {
			if err := os.Remove(glob(t, data+"/appendonlydir/*.incr.aof")); err != nil {
				t.Fatal(err)
			}
		},
		"snapshot": func(t *testing.T, data string) {
			if err := os.RemoveAll(data + "/appendonlydir"); err != nil {
				t.Fatal(err)
			}
			damage(t, data, "dump.rdb")
		},
	}
	redisserver.Each(t, func(t *testing.T, flavour string) {
		for name, damage := range cases {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := primary(t, flavour, volume)
				for range 3 {
					set(s, strings.Repeat("k", 40), strings.Repeat("l", 40), "m")
				}
				appendOnlyOn(t, s)
				set(s, "n", "o", "p", "q")
				s.Do(operator, "BGSAVE")
				until(t, s, "rdb_bgsave_in_progress", "0")
				killServer(t, s)
				s.Wait(t)
				damage(t, s.Data)

				log := startAlone(t, s)
				if !conf.Unreadable(log) {
					t.Fatalf("not known as unreadable:\n%s", log)
				}
				if _, err := os.Stat(filepath.Join(s.Data, naming.DirUnreadable)); !os.IsNotExist(err) {
					t.Fatalf("files were moved without being told to: %v", err)
				}

				told := redisserver.WithUnreadable("r-0 2026-12-02T10:00:00Z\n")
				s.Run(t, told, redisserver.WithEnv("HOSTNAME=r-0", "PATH="+filepath.Dir(redisserver.Binary(t, flavour))+":/usr/bin:/bin"))
				if keys := info(s, "db0"); keys != "" {
					t.Errorf("it starts with %s", keys)
				}
				if kept := glob(t, s.Data+"/"+naming.DirUnreadable+"/*"); kept == "" {
					t.Error("nothing is kept of the files")
				}
				s.Do(operator, "REPLICAOF", "NO", "ONE")
				set(s, "new")
				killServer(t, s)
				s.Wait(t)
				s.Run(t)
				if keys := info(s, "db0"); !strings.HasPrefix(keys, "keys=1,") {
					t.Errorf("the next start has %q, want the one key that was written since", keys)
				}
			})
		}
	})
}

func glob(t *testing.T, pattern string) string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("nothing at %s: %v", pattern, err)
	}
	return paths[0]
}

// startAlone returns what a start that fails says.
func startAlone(t *testing.T, s *redisserver.Server) string {
	t.Helper()
	command := s.Command(t.Context())
	command.WaitDelay = time.Second
	out, err := command.CombinedOutput()
	if err == nil {
		t.Fatalf("it starts:\n%s", out)
	}
	return string(out)
}
