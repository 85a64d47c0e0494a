package conf_test

import (
	"os/exec"
	"strings"
	"testing"

	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/conf"
	"seang.org/operator/internal/testkit/redisserver"
)

// say sends a command as a user and returns the reply, or its error.
func say(t *testing.T, s *redisserver.Server, user, password string, words ...string) string {
	t.Helper()
	cli := strings.TrimSuffix(redisserver.Binary(t, "redis-7.0"), "server") + "cli"
	command := exec.CommandContext(t.Context(), cli, append([]string{"-h", s.IP, "--user", user, "--no-auth-warning"}, words...)...)
	command.Env = append(command.Environ(), "REDISCLI_AUTH="+password)
	out, err := command.CombinedOutput()
	if err != nil && len(out) == 0 {
		t.Fatalf("%s: %v", words, err)
	}
	return strings.TrimSpace(string(out))
}

func application(t *testing.T, s *redisserver.Server, words ...string) string {
	t.Helper()
	return say(t, s, naming.UserDefault, redisserver.Passwords.Default, words...)
}

func TestServersTakeTheConfiguration(t *testing.T) {
	for _, flavour := range redisserver.Flavours {
		for name, in := range map[string]conf.Input{
			"minimal":     {MemoryLimit: 128 << 20},
			"persistence": {MemoryLimit: 256 << 20, Persistence: true},
			"directives":  {MemoryLimit: 128 << 20, Directives: map[string]string{"maxmemory-policy": "allkeys-lru", "hz": "20", "appendfsync": "always", "client-query-buffer-limit": "32mb", "notify-keyspace-events": "", "slowlog-log-slower-than": "500"}},
		} {
			t.Run(flavour+" "+name, func(t *testing.T) {
				s := redisserver.Start(t, flavour, in)
				for directive, want := range in.Directives {
					got := say(t, s, naming.UserOperator, redisserver.Passwords.Operator, "config", "get", directive)
					if _, value, _ := strings.Cut(got, "\n"); !conf.SameValue(value, want) {
						t.Errorf("%s is %q, want %q", directive, value, want)
					}
				}
				got := say(t, s, naming.UserOperator, redisserver.Passwords.Operator, "info", "replication")
				if !strings.Contains(got, "role:slave") {
					t.Errorf("it does not boot as a replica:\n%s", got)
				}
			})
		}
	}
}

func TestAnApplicationCannotUndoAProof(t *testing.T) {
	for _, flavour := range redisserver.Flavours {
		t.Run(flavour, func(t *testing.T) {
			s := redisserver.Start(t, flavour, conf.Input{MemoryLimit: 128 << 20})
			if got := say(t, s, naming.UserOperator, redisserver.Passwords.Operator, "replicaof", "no", "one"); got != "OK" {
				t.Fatalf("REPLICAOF by the operator: %s", got)
			}
			for _, refused := range []string{
				"replicaof no one", "slaveof no one", "failover", "client pause 10 all", "client unpause", "client kill type normal", "client list", "script debug yes", "eval return(redis.call('config','get','masterauth')) 0",
				"config get maxmemory", "config set maxmemory 1", "config rewrite", "acl list", "acl whoami", "acl setuser eve on", "debug sleep 0", "shutdown nosave",
				"module list", "replconf ack 1", "psync ? -1", "sync", "save", "bgsave", "bgrewriteaof",
			} {
				if got := application(t, s, strings.Fields(refused)...); !strings.Contains(got, "NOPERM") {
					// A server that does not know or allow the command refuses it too.
					if !strings.Contains(got, "ERR unknown") && !strings.Contains(got, "not allowed") {
						t.Errorf("%s is answered: %s", refused, got)
					}
				}
			}
			for _, works := range []string{
				"ping", "set key value", "get key", "client id", "client setname app", "client getname", "client info", "hello 3", "select 1", "info server", "command count",
				"eval return(1) 0", "publish channel message", "wait 0 1", "role", "dbsize", "flushdb", "scan 0", "xadd stream * a 1", "object encoding stream", "latency latest", "memory usage key", "slowlog len",
			} {
				if got := application(t, s, strings.Fields(works)...); strings.Contains(got, "NOPERM") || strings.Contains(got, "ERR") {
					t.Errorf("%s is refused: %s", works, got)
				}
			}
			if got := application(t, s, "client", "setinfo", "lib-name", "app"); strings.Contains(got, "NOPERM") {
				t.Errorf("what client libraries send at their login is refused: %s", got)
			}
			if got := say(t, s, naming.UserReplication, redisserver.Passwords.Replication, "get", "key"); !strings.Contains(got, "NOPERM") {
				t.Errorf("the user of replication may read: %s", got)
			}
		})
	}
}
