// Package conf renders the configuration of a Redis process. It is pure.
package conf

import (
	_ "embed"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis"
)

// StartScript starts the server in a pod.
//
//go:embed start.sh
var StartScript string

// ExitNoServer is the exit code of StartScript when the image has no server:
// EX_CONFIG of sysexits.h.
const ExitNoServer = 78

// unreadable matches what the supported servers say last where files cannot be
// loaded; newer matches the one case in which the files are good for another version.
var (
	unreadable = regexp.MustCompile(`(?i)reading the append only file|Unable to obtain the AOF file|Internal error in RDB reading|append log file .* doesn't exist|FATAL AOF MANIFEST|Wrong signature trying to load DB|Wrong RDB checksum|Short read or OOM loading DB|rdb file reading failure|Fatal error loading the DB`)
	newer      = regexp.MustCompile(`Can't handle RDB format version`)
)

// Unreadable says whether a log ends with a server that could not load its files
// because they are damaged.
func Unreadable(log string) bool { return unreadable.MatchString(log) && !newer.MatchString(log) }

// Input is what a redis.conf is rendered from.
type Input struct {
	// MemoryLimit of the container in bytes.
	MemoryLimit int64
	// Persistence says that the data is kept on a volume.
	Persistence bool
	// MinReplicas that must acknowledge for a write to be accepted, from the start; 0
	// leaves it to the operator.
	MinReplicas int
	// Secure closes the port without TLS. That with TLS is opened by what the pod mounts.
	Secure bool
	// Directives of the user; none may be owned by the operator.
	Directives map[string]string
}

// defaults are the directives that the user may replace.
var defaults = map[string]string{
	"appendfsync":      "everysec",
	"maxmemory-policy": "noeviction",
	"tcp-keepalive":    "60",
}

// WithDefaults are the user's directives, and the operator's defaults of those that the
// user does not set.
func WithDefaults(directives map[string]string) map[string]string {
	all := maps.Clone(defaults)
	maps.Copy(all, directives)
	return all
}

// directiveName keeps quotes, spaces and line breaks out, with which a name would
// be that of another directive, or more than one.
var directiveName = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_.-]*$`)

// Render returns redis.conf: first what the user may replace, then the user's
// directives, then what belongs to the operator, so that the last word is its.
// A directive that the operator owns, a malformed name, or a value of more than
// one line, is an error.
func Render(in Input) (string, error) {
	var b strings.Builder
	line := func(words ...string) { b.WriteString(strings.Join(words, " ") + "\n") }
	line("# Written by the operator; changes are overwritten.")
	for _, name := range slices.Sorted(maps.Keys(defaults)) {
		line(name, defaults[name])
	}
	for _, name := range slices.Sorted(maps.Keys(in.Directives)) {
		directive, err := render(name, in.Directives[name])
		if err != nil {
			return "", err
		}
		line(directive)
	}
	for _, directive := range owned(in) {
		line(directive)
	}
	return b.String(), nil
}

// render is the line of a directive of the user.
func render(name, value string) (string, error) {
	if !directiveName.MatchString(name) {
		return "", fmt.Errorf("config has %q, which is no name of a directive", name)
	}
	if _, owned := Owned(name); owned {
		return "", fmt.Errorf("config.%s belongs to the operator", name)
	}
	values, err := words(value)
	if err != nil {
		return "", fmt.Errorf("config.%s: %w", name, err)
	}
	return strings.Join(append([]string{name}, values...), " "), nil
}

// owned are the directives of every process. The process boots as a replica of
// a port that nobody listens on, and answers no reads until the operator found
// it in sync (safety rule 1).
func owned(in Input) []string {
	memory := Memory(in.MemoryLimit, in.Persistence)
	port := redis.Port
	if in.Secure {
		port = 0
	}
	lines := []string{
		"bind * -::*",
		fmt.Sprintf("port %d", port),
		"protected-mode no",
		"daemonize no",
		"dir " + naming.MountData,
		// Nobody but the operator has CONFIG; it needs dbfilename.
		"enable-protected-configs yes",
		"aclfile " + naming.MountSystem + "/" + naming.KeyACL,
		"include " + naming.MountSystem + "/" + naming.KeyReplicationConf,
		"replicaof 127.0.0.1 1",
		"replica-read-only yes",
		"replica-serve-stale-data no",
		fmt.Sprintf("min-replicas-to-write %d", in.MinReplicas),
		"min-replicas-max-lag 2",
		"repl-diskless-sync yes",
		"repl-diskless-sync-delay 0",
		// The old data stays until the new is whole.
		"repl-diskless-load disabled",
		"repl-ping-replica-period 1",
		"repl-timeout 60",
		"repl-backlog-size " + memory["repl-backlog-size"],
		"repl-backlog-ttl 0",
		"client-output-buffer-limit " + memory["client-output-buffer-limit"],
		"maxmemory " + memory["maxmemory"],
		"shutdown-timeout 10",
		"stop-writes-on-bgsave-error yes",
	}
	if in.Persistence {
		return append(lines, "save 3600 1 300 100 60 10000", "aof-load-truncated yes", "rdb-del-sync-files no")
	}
	// Nothing outlives the process, not even the file that a copy came in.
	return append(lines, `save ""`, "rdb-del-sync-files yes")
}

// Memory are the directives that follow from the container's limit in bytes: they change
// together, or the buffers of a larger limit would not fit into a smaller one.
func Memory(limit int64, persistence bool) map[string]string {
	backlog := Backlog(limit)
	return map[string]string{
		"maxmemory":                  fmt.Sprint(MaxMemory(limit, persistence)),
		"repl-backlog-size":          fmt.Sprint(backlog),
		"client-output-buffer-limit": fmt.Sprintf("replica %d %d 60", replicaBuffer*backlog, replicaBuffer*backlog/2),
	}
}

// Head-room below the container's limit.
const (
	// backlogShare: 1/64 of the limit. What a replica misses while its link is
	// down fits, if it is less than about 2 % of the data.
	backlogShare = 64
	minBacklog   = 1 << 20
	maxBacklog   = 512 << 20
	// replicaBuffer, in backlogs, is what the primary keeps for a replica that
	// is being copied to: 1/8 of the limit. All replicas share these bytes with
	// the backlog (Redis 7.0, "shared replication buffer"), so they count once.
	// A smaller one breaks the copy off under a high write rate, again and again.
	replicaBuffer = 8
	// baseline is what an empty server takes with its code and its allocator:
	// 10 to 14 MiB resident (measured, 7.0 to 8.1).
	baseline = 16 << 20
)

// Backlog is the size of the replication backlog in bytes.
func Backlog(limit int64) int64 {
	return min(max(limit/backlogShare, minBacklog), maxBacklog)
}

// MaxMemory is the maxmemory in bytes for a container limit of at least 64 MiB.
// The baseline and three backlogs (the backlog and the least that clients'
// buffers take) go off first. Of the rest a quarter is kept for what a fork
// makes Redis copy while it is written to (every full copy forks) and for the
// replicas' buffer, which Redis does not count against maxmemory; with
// persistence a further tenth is kept for the rewrite of the append-only file.
// It is at least a quarter of the limit.
func MaxMemory(limit int64, persistence bool) int64 {
	rest := limit - baseline - 3*Backlog(limit)
	share := rest * 75 / 100
	if persistence {
		share = rest * 65 / 100
	}
	return max(share, limit/4) &^ 0xfff
}

// words splits a value as redis.conf does and quotes each part, so that a value
// stays one directive. Redis reads double quotes with escapes.
func words(value string) ([]string, error) {
	if strings.ContainsAny(value, "\n\r\x00") {
		return nil, fmt.Errorf("the value must be one line")
	}
	if value == "" {
		return []string{`""`}, nil
	}
	var quoted []string
	for word := range strings.FieldsSeq(value) {
		word = strings.Trim(word, `"`)
		quoted = append(quoted, `"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(word)+`"`)
	}
	return quoted, nil
}

// SameValue compares the value of CONFIG GET with one of the spec: Redis turns
// sizes into bytes and writes lists with single spaces.
func SameValue(have, want string) bool {
	have, want = strings.Join(strings.Fields(have), " "), strings.Join(strings.Fields(want), " ")
	return strings.EqualFold(have, strings.Trim(want, `"`)) || have == bytes(want)
}

// bytes turns a size such as 64mb into bytes, as redis.conf reads it; other
// values are returned as they are.
func bytes(value string) string {
	units := []struct {
		suffix string
		size   int64
	}{{"kb", 1 << 10}, {"mb", 1 << 20}, {"gb", 1 << 30}, {"k", 1000}, {"m", 1000_000}, {"g", 1000_000_000}, {"b", 1}}
	lower := strings.ToLower(value)
	for _, unit := range units {
		var n int64
		if digits, ok := strings.CutSuffix(lower, unit.suffix); ok {
			if _, err := fmt.Sscanf(digits, "%d", &n); err == nil && fmt.Sprint(n) == digits {
				return fmt.Sprint(n * unit.size)
			}
		}
	}
	return value
}
