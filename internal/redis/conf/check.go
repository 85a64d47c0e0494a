package conf

import (
	_ "embed"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// CheckScript has a real server check directives before a member gets them.
//
//go:embed check.sh
var CheckScript string

// Environment of CheckScript: the directives, as lines of a redis.conf, and the names
// of those to report, with spaces between.
const (
	EnvCheckConf  = "REDIS_CONF"
	EnvCheckNames = "NAMES"
)

// startOnly are the directives that a server reads when it starts and at no other time,
// with the value that it has without them. It is the same in all supported versions,
// which a test asks.
var startOnly = map[string]string{
	"databases":           "16",
	"disable-thp":         "yes",
	"io-threads":          "1",
	"io-threads-do-reads": "no",
	"rdbchecksum":         "yes",
	"tcp-backlog":         "511",
}

// StartOnly has those of the directives that are read at the start, and what the server
// takes for the others of that kind.
func StartOnly(directives map[string]string) map[string]string {
	all := maps.Clone(startOnly)
	for name := range all {
		if value, set := directives[name]; set {
			all[name] = value
		}
	}
	return all
}

// Live has the directives that a running server takes.
func Live(directives map[string]string) map[string]string {
	all := maps.Clone(directives)
	maps.DeleteFunc(all, func(name, _ string) bool { _, start := startOnly[name]; return start })
	return all
}

// Directives reads the user's directives back from a rendered redis.conf, those that
// replace a default of the operator included.
func Directives(redisConf string) map[string]string {
	found := map[string]string{}
	for line := range strings.Lines(redisConf) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if _, own := Owned(name); own || name == "" || strings.HasPrefix(name, "#") || !strings.HasPrefix(value, `"`) {
			continue
		}
		found[name] = unquoted(value)
	}
	return found
}

// unquoted is a value as words took it, but for the number of spaces.
func unquoted(value string) string {
	value = strings.TrimSuffix(strings.TrimPrefix(value, `"`), `"`)
	return strings.NewReplacer(`" "`, " ", `\\`, `\`, `\"`, `"`).Replace(value)
}

// RenderCheck returns the directives as CheckScript takes them. The error is that of
// Render.
func RenderCheck(directives map[string]string) (string, error) {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(directives)) {
		line, err := render(name, directives[name])
		if err != nil {
			return "", err
		}
		b.WriteString(line + "\n")
	}
	return b.String(), nil
}

// server is the name under which CheckScript reports the version, as the server says it.
const server = "server"

var versionLine = regexp.MustCompile(`^(\w+) server v=(\S+)`)

// CheckedServer is the flavour and the version of the server that CheckScript started;
// empty if it said none.
func CheckedServer(checked map[string]string) (flavour, version string) {
	if said := versionLine.FindStringSubmatch(checked[server]); said != nil {
		return strings.ToLower(said[1]), said[2]
	}
	return "", ""
}

// ParseChecked reads what CheckScript reported: names and values, a line each.
func ParseChecked(report string) map[string]string {
	values := map[string]string{}
	lines := strings.Split(report, "\n")
	for i := 0; i+1 < len(lines); i += 2 {
		values[lines[i]] = lines[i+1]
	}
	return values
}
