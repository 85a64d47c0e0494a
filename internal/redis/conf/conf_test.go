package conf

import (
	"fmt"
	"strings"
	"testing"

	"seang.org/operator/internal/testkit/golden"
)

func TestRender(t *testing.T) {
	for name, in := range map[string]Input{
		"memory":      {MemoryLimit: 256 << 20},
		"persistence": {MemoryLimit: 1 << 30, Persistence: true},
		"directives": {MemoryLimit: 128 << 20, Directives: map[string]string{
			"maxmemory-policy": "allkeys-lru", "hz": "20", "notify-keyspace-events": "", "client-output-buffer-limit-unknown": `a "b c" \d`, "latency-tracking-info-percentiles": "50  99.9"}},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := Render(in)
			if err != nil {
				t.Fatal(err)
			}
			golden.Text(t, name+".conf", text)
		})
	}
}

func TestRenderRefusesWhatCouldUndoARule(t *testing.T) {
	for _, name := range []string{
		"min-replicas-to-write", "min-replicas-max-lag", "min-slaves-to-write", "replica-read-only", "slave-read-only",
		"replica-serve-stale-data", "slave-serve-stale-data", "appendonly", "appendfilename", "appenddirname", "save", "dir", "dbfilename",
		"shutdown-timeout", "shutdown-on-sigterm", "repl-backlog-size", "repl-timeout", "repl-diskless-load", "replicaof", "slaveof",
		"replica-priority", "replica-announce-ip", "user", "aclfile", "requirepass", "masterauth", "masteruser", "include", "loadmodule",
		"rename-command", "maxmemory", "port", "bind", "protected-mode", "tls-port", "cluster-enabled", "enable-debug-command", "daemonize",
		"unixsocket", "logfile", "primaryauth", "primaryuser", "oom-score-adj", "stop-writes-on-bgsave-error", "client-output-buffer-limit",
	} {
		for _, spelling := range []string{name, strings.ToUpper(name)} {
			if text, err := Render(Input{MemoryLimit: 128 << 20, Directives: map[string]string{spelling: "yes"}}); err == nil {
				t.Errorf("%s is accepted: %s", spelling, text)
			}
		}
	}
	for _, value := range []string{"20\nreplicaof no one", "20\r\nreplicaof no one", "a\x00b"} {
		if text, err := Render(Input{MemoryLimit: 128 << 20, Directives: map[string]string{"hz": value}}); err == nil {
			t.Errorf("the value %q is accepted: %s", value, text)
		}
	}
	for _, name := range []string{"hz 20\nreplicaof no one", "hz\r\nport", "two words", "", "#hz", `"port"`, "port\t1", "'port'", "\u00a0port"} {
		if text, err := Render(Input{MemoryLimit: 128 << 20, Directives: map[string]string{name: "20"}}); err == nil {
			t.Errorf("the name %q is accepted: %s", name, text)
		}
	}
}

func TestRenderKeepsAValueOneDirective(t *testing.T) {
	for value, want := range map[string]string{
		"":             `hz ""`,
		"20":           `hz "20"`,
		`"`:            `hz ""`,
		`a"b`:          `hz "a\"b"`,
		`\n`:           `hz "\\n"`,
		`x" "y`:        `hz "x" "y"`,
		`\`:            `hz "\\"`,
		"# not a note": `hz "#" "not" "a" "note"`,
	} {
		text, err := Render(Input{MemoryLimit: 128 << 20, Directives: map[string]string{"hz": value}})
		if err != nil {
			t.Errorf("%q: %v", value, err)
			continue
		}
		got := ""
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "hz ") {
				got += strings.TrimSpace(line)
			}
		}
		if got != want {
			t.Errorf("%q is rendered as %s, want %s", value, got, want)
		}
	}
}

func TestMaxMemoryGrowsWithTheLimitAndStaysBelow(t *testing.T) {
	for _, persistence := range []bool{false, true} {
		last := int64(0)
		for limit := int64(64 << 20); limit < 1<<40; limit += limit / 50 {
			got := MaxMemory(limit, persistence)
			if got < last || got >= limit || got < limit/5 {
				t.Fatalf("MaxMemory of %d with persistence %t is %d, after %d for less", limit, persistence, got, last)
			}
			if rest := limit - got; limit >= 256<<20 && rest < baseline+3*Backlog(limit) {
				t.Fatalf("MaxMemory of %d leaves %d, less than the baseline and the buffers", limit, rest)
			}
			if got > MaxMemory(limit, false) {
				t.Fatalf("persistence leaves more of %d", limit)
			}
			last = got
		}
	}
}

func TestMaxMemoryOfCommonLimits(t *testing.T) {
	for name, c := range map[string]struct {
		limit       int64
		persistence bool
		want        int64
	}{
		"the least":                   {64 << 20, false, 35389440},
		"the least with persistence":  {64 << 20, true, 30670848},
		"a gibibyte":                  {1 << 30, false, 754974720},
		"a gibibyte with persistence": {1 << 30, true, 654311424},
	} {
		t.Run(name, func(t *testing.T) {
			if got := MaxMemory(c.limit, c.persistence); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func TestSameValue(t *testing.T) {
	for name, c := range map[string]struct {
		have, want string
		same       bool
	}{
		"the same text":           {"allkeys-lru", "allkeys-lru", true},
		"another text":            {"allkeys-lru", "noeviction", false},
		"capitals":                {"yes", "YES", true},
		"mebibytes":               {"67108864", "64mb", true},
		"megabytes":               {"64000000", "64M", true},
		"bytes":                   {"64", "64b", true},
		"another size":            {"67108864", "65mb", false},
		"a size that is a text":   {"64mb", "64mb", true},
		"a list with more spaces": {"50 99 99.9", "50  99\t99.9", true},
		"a list in other order":   {"50 99", "99 50", false},
		"nothing":                 {"", `""`, true},
		"quotes":                  {"Ex", `"Ex"`, true},
		"a size that overflows":   {"0", "99999999999999999999gb", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := SameValue(c.have, c.want); got != c.same {
				t.Errorf("SameValue(%q, %q) is %t", c.have, c.want, got)
			}
		})
	}
}

func TestCheckPassword(t *testing.T) {
	for name, c := range map[string]struct {
		password string
		ok       bool
	}{
		"letters":                     {strings.Repeat("a", 16), true},
		"the longest":                 {strings.Repeat("a", 512), true},
		"quotes, signs and backslash": {`aA1"'\#>$~{}[]()%&`, true},
		"letters of other languages":  {"päßwörter-sind-länger", true},
		"too short":                   {strings.Repeat("a", 15), false},
		"too long":                    {strings.Repeat("a", 513), false},
		"empty":                       {"", false},
		"a line break at the end":     {"a-password-of-a-file\n", false},
		"a space":                     {"a password of words", false},
		"a zero byte":                 {"a-password\x00-of-a-file", false},
		"bytes that are no text":      {"a-password-\xff\xfe-of-bytes", false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := CheckPassword([]byte(c.password)); (err == nil) != c.ok {
				t.Errorf("CheckPassword is %v", err)
			} else if err != nil && c.password != "" && strings.Contains(err.Error(), c.password) {
				t.Errorf("the error tells the password: %v", err)
			}
		})
	}
}

func TestACLHasNoPassword(t *testing.T) {
	p := Passwords{Operator: "operator-secret-word", Replication: "replication-secret-word", Default: "default-secret-word"}
	text := RenderACL(p.Users())
	for _, password := range []string{p.Operator, p.Replication, p.Default} {
		if strings.Contains(text, password) {
			t.Errorf("the ACL file has %s in clear", password)
		}
		if !strings.Contains(text, "#"+Hash(password)) {
			t.Errorf("the ACL file lacks the hash of %s", password)
		}
	}
	if got := strings.Count(text, "\n"); got != 3 {
		t.Errorf("the ACL file has %d lines:\n%s", got, text)
	}
}

func TestReplicationIncludeQuotes(t *testing.T) {
	got := ReplicationInclude("replication", `a"b\c`)
	if want := "masteruser replication\nmasterauth \"a\\\"b\\\\c\"\n"; got != want {
		t.Errorf("it is %q, want %q", got, want)
	}
}

func ExampleBacklog() {
	fmt.Println(Backlog(16<<20), Backlog(1<<30), Backlog(1<<40))
	// Output: 1048576 16777216 536870912
}
