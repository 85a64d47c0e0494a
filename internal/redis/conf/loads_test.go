package conf_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"seang.org/operator/internal/redis/conf"
	"seang.org/operator/internal/redis/versions"
	"seang.org/operator/internal/testkit/redisserver"
)

// What the list of versions says of formats is what each server does with the files of
// each other.
func TestTheListOfVersionsKnowsWhichServersLoadWhichFiles(t *testing.T) {
	servers, dumps := map[string]versions.Server{}, map[string]string{}
	for _, flavour := range redisserver.Flavours {
		s := primary(t, flavour, conf.Input{MemoryLimit: 128 << 20})
		set(s, "key")
		s.Do("default", "HSET", "hash", "field", "value")
		s.Do("default", "XADD", "stream", "*", "field", "value")
		s.Do(operator, "BGSAVE")
		until(t, s, "rdb_bgsave_in_progress", "0")
		dumps[flavour] = glob(t, s.Data+"/*.rdb")

		code, message := redisserver.Check(t, flavour, "", "hz")
		name, number := conf.CheckedServer(conf.ParseChecked(message))
		if code != 0 || name == "" {
			t.Fatalf("the check of %s says no version: exit code %d: %s", flavour, code, message)
		}
		if !strings.HasPrefix(flavour, name+"-") || !strings.HasPrefix(number, strings.TrimPrefix(flavour, name+"-")) {
			t.Errorf("the check of %s says that it is %s %s", flavour, name, number)
		}
		servers[flavour] = versions.Server{Flavour: name, Version: number}
	}
	for by, server := range servers {
		for of, dump := range dumps {
			content, err := os.ReadFile(dump)
			if err != nil {
				t.Fatal(err)
			}
			said, err := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(redisserver.Binary(t, by)), "redis-check-rdb"), dump).CombinedOutput()
			why := server.CannotLoad(servers[of])
			if (err == nil) != (why == "") {
				t.Errorf("%s with a file of %s (%s): the list says %q, and it says %v: %s", by, of, content[:9], why, err, said)
			}
			if why != "" && !strings.Contains(why, fmt.Sprintf("writes format %d", number(t, content))) {
				t.Errorf("the file of %s begins with %s, and the list says %q", of, content[:9], why)
			}
		}
	}
}

// number is the format of an RDB file.
func number(t *testing.T, content []byte) int {
	t.Helper()
	var n int
	if _, err := fmt.Sscanf(string(content[5:9]), "%04d", &n); err != nil {
		t.Fatal(err)
	}
	return n
}
