package conf_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/conf"
	"seang.org/operator/internal/testkit/redisserver"
)

// What servers refuse to change while they run is exactly what is read at the start.
func TestServersReadTheseAtTheStartAlone(t *testing.T) {
	known := conf.StartOnly(nil)
	for _, flavour := range redisserver.Flavours {
		s := redisserver.Start(t, flavour, conf.Input{MemoryLimit: 128 << 20})
		for name, value := range conf.ParseChecked(application(t, s, "ping") + "\n\n" + say(t, s, naming.UserOperator, redisserver.Passwords.Operator, "config", "get", "*")) {
			if _, owned := conf.Owned(name); owned || name == "PONG" {
				continue
			}
			said := say(t, s, naming.UserOperator, redisserver.Passwords.Operator, "config", "set", name, value)
			want, start := known[name]
			if immutable := strings.Contains(said, "immutable"); immutable && !start {
				t.Errorf("%s reads %s=%s at the start alone: %s", flavour, name, value, said)
			}
			if start && value != want {
				t.Errorf("%s has %s=%s by itself, want %s", flavour, name, value, want)
			}
		}
	}
}

func TestDirectivesAreReadBack(t *testing.T) {
	for _, directives := range []map[string]string{
		{},
		{"databases": "32", "maxmemory-policy": "allkeys-lru"},
		{"notify-keyspace-events": "", "slowlog-log-slower-than": "-1", "proto-max-bulk-len": "64mb"},
		{"enable-something": `a "quoted" \ value`},
	} {
		text, err := conf.Render(conf.Input{MemoryLimit: 128 << 20, Directives: directives})
		if err != nil {
			t.Fatal(err)
		}
		got := conf.Directives(text)
		if again, err := conf.Render(conf.Input{MemoryLimit: 128 << 20, Directives: got}); err != nil || again != text {
			t.Errorf("%v is read back as %v (-first +again): %v\n%s", directives, got, err, cmp.Diff(text, again))
		}
	}
}

func TestLiveAndStartOnlyAreAll(t *testing.T) {
	all := map[string]string{"databases": "32", "hz": "20"}
	both := conf.Live(all)
	for name, value := range conf.StartOnly(all) {
		if _, set := all[name]; set {
			both[name] = value
		}
	}
	if !maps.Equal(all, both) {
		t.Errorf("got %v of %v", both, all)
	}
}

// The script that a pod runs before members get directives, with each real server.
func TestARealServerChecksDirectives(t *testing.T) {
	for _, flavour := range redisserver.Flavours {
		for name, c := range map[string]struct {
			directives map[string]string
			names      string
			want       map[string]string
			refused    string
		}{
			"nothing":              {names: "databases hz", want: map[string]string{"databases": "16", "hz": "10"}},
			"good values":          {directives: map[string]string{"databases": "32", "slowlog-max-len": "64"}, names: "databases slowlog-max-len", want: map[string]string{"databases": "32", "slowlog-max-len": "64"}},
			"an empty value":       {directives: map[string]string{"notify-keyspace-events": ""}, names: "notify-keyspace-events hz", want: map[string]string{"notify-keyspace-events": "", "hz": "10"}},
			"a bad value":          {directives: map[string]string{"databases": "none"}, names: "databases", refused: "databases"},
			"an unknown name":      {directives: map[string]string{"no-such": "1"}, names: "no-such", refused: "no-such"},
			"a value out of range": {directives: map[string]string{"io-threads": "100000"}, names: "io-threads", refused: "io-threads"},
		} {
			t.Run(flavour+" "+name, func(t *testing.T) {
				text, err := conf.RenderCheck(c.directives)
				if err != nil {
					t.Fatal(err)
				}
				code, message := redisserver.Check(t, flavour, text, c.names)
				if c.refused != "" {
					if code != 1 || !strings.Contains(message, c.refused) {
						t.Errorf("it is not refused with %s: exit code %d: %s", c.refused, code, message)
					}
					return
				}
				got := conf.ParseChecked(message)
				delete(got, "server")
				if code != 0 || !maps.Equal(got, c.want) {
					t.Errorf("reported %v, want %v: exit code %d: %s", got, c.want, code, message)
				}
			})
		}
	}
}
