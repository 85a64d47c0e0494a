package redisserver_test

import (
	"strings"
	"testing"

	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/conf"
	"seang.org/operator/internal/testkit/redisserver"
)

func TestAServerBootsAsAReplicaOfNobodyThatAnswersNoReads(t *testing.T) {
	redisserver.Each(t, func(t *testing.T, flavour string) {
		s := redisserver.Start(t, flavour, conf.Input{MemoryLimit: 64 << 20})
		if got := s.Do(naming.UserOperator, "ROLE"); !strings.HasPrefix(got, "slave\n127.0.0.1\n1\n") {
			t.Errorf("ROLE says %q, want a replica of 127.0.0.1 port 1", got)
		}
		for _, command := range [][]string{{"PING"}, {"GET", "a"}, {"DBSIZE"}} {
			if _, err := s.Try(naming.UserDefault, command...); err == nil || !strings.Contains(err.Error(), "MASTERDOWN") {
				t.Errorf("%s gives %v, want MASTERDOWN", command, err)
			}
		}
		if _, err := s.Try(naming.UserDefault, "SET", "a", "b"); err == nil {
			t.Error("a server without a role accepts a write")
		}
	})
}
