package admin_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/admin"
	"seang.org/operator/internal/redis/conf"
	"seang.org/operator/internal/testkit/redisserver"
)

const appPassword = "app-password-of-tests"

// withApp are the users of every cluster and one with the rules.
func withApp(t *testing.T, rules string) []conf.User {
	t.Helper()
	safe, err := conf.Restrict(rules)
	if err != nil {
		t.Fatalf("%q: %v", rules, err)
	}
	return append(redisserver.Passwords.Users(), conf.User{Name: "app", Hashes: []string{conf.Hash(appPassword)}, Rules: safe})
}

func setUsers(t *testing.T, m *admin.Member, users []conf.User) {
	t.Helper()
	have, err := m.Users(t.Context())
	if err != nil {
		t.Fatalf("ACL LIST: %v", err)
	}
	if err := m.SetUsers(t.Context(), users, have); err != nil {
		t.Fatalf("set users: %v", err)
	}
}

// client is a connection that says a line and hears the first of the reply.
type client struct {
	net.Conn
	reader *bufio.Reader
}

func dialAs(t *testing.T, s *redisserver.Server, user, password string) *client {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	c := &client{conn, bufio.NewReader(conn)}
	if got := c.say(t, "AUTH "+user+" "+password); got != "+OK" {
		t.Fatalf("AUTH %s: %s", user, got)
	}
	return c
}

func (c *client) say(t *testing.T, line string) string {
	t.Helper()
	if _, err := c.Write([]byte(line + "\r\n")); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return c.hear(t)
}

// hear returns the first line of a reply, and reads the rest of it.
func (c *client) hear(t *testing.T) string {
	t.Helper()
	reply, err := c.reader.ReadString('\n')
	if err != nil {
		t.Fatalf("read a reply: %v", err)
	}
	reply = strings.TrimSpace(reply)
	n, _ := strconv.Atoi(reply[1:])
	switch {
	case reply[0] == '*':
		for range n {
			c.hear(t)
		}
	case reply[0] == '$' && n >= 0:
		if _, err := c.reader.ReadString('\n'); err != nil {
			t.Fatalf("read a reply: %v", err)
		}
	}
	return reply
}

func TestUsersAreReplacedAsAWholeAndTheRemovedOnesCutOff(t *testing.T) {
	redisserver.Each(t, func(t *testing.T, flavour string) {
		servers, connected := members(t, flavour, 1)
		s, m := servers[0], connected[0]
		setUsers(t, m, withApp(t, "~app:* +@read +@write"))
		app := dialAs(t, s, "app", appPassword)
		for line, want := range map[string]string{"SET app:1 a": "+OK", "SET other a": "-NOPERM", "KEYS *": "-NOPERM", "FLUSHALL": "-NOPERM"} {
			if got := app.say(t, line); !strings.HasPrefix(got, want) {
				t.Errorf("%s: %s, want %s", line, got, want)
			}
		}
		setUsers(t, m, withApp(t, "~other +set"))
		for line, want := range map[string]string{"SET app:1 a": "-NOPERM", "SET other a": "+OK", "GET other": "-NOPERM"} {
			if got := app.say(t, line); !strings.HasPrefix(got, want) {
				t.Errorf("with other rules, %s: %s, want %s", line, got, want)
			}
		}
		other := dialAs(t, s, naming.UserDefault, redisserver.Passwords.Default)
		setUsers(t, m, redisserver.Passwords.Users())
		if _, err := app.reader.ReadByte(); !errors.Is(err, io.EOF) {
			t.Errorf("the connection of a user that is gone: %v, want its end", err)
		}
		if got := other.say(t, "PING"); got != "+PONG" {
			t.Errorf("that of another: %s", got)
		}
		users, err := m.Users(t.Context())
		if err != nil || len(users) != 3 {
			t.Errorf("%d users, %v", len(users), err)
		}
	})
}

func TestRulesAreTriedWithoutATrace(t *testing.T) {
	redisserver.Each(t, func(t *testing.T, flavour string) {
		_, connected := members(t, flavour, 1)
		m := connected[0]
		for rules, refused := range map[string]string{
			"~* +@all +@scripting": "", "~a +client|setname (%R~b +get)": "", "+nosuchcommand": "nosuchcommand",
			"~* +@nosuchcategory": "nosuchcategory", "+client|nosuch": "nosuch", "~a (+get ~b (": "(",
		} {
			err := m.TryRules(t.Context(), rules)
			if refused == "" && err != nil {
				t.Errorf("%q: %v", rules, err)
			}
			if refused != "" && (!admin.IsRefusal(err) || !strings.Contains(err.Error(), refused)) {
				t.Errorf("%q: %v, want a refusal that names %s", rules, err, refused)
			}
		}
		if users, err := m.Users(t.Context()); err != nil || len(users) != 3 {
			t.Errorf("it leaves %v, %v", users, err)
		}
	})
}

// Whatever a person asks for, and each server grants by it.
func TestNoRulesGrantWhatNoApplicationMayHave(t *testing.T) {
	refused := []string{
		"REPLICAOF NO ONE", "SLAVEOF NO ONE", "FAILOVER", "CLIENT PAUSE 1 ALL", "CLIENT UNPAUSE", "CLIENT KILL TYPE normal", "CLIENT LIST", "SCRIPT DEBUG YES",
		"CONFIG GET masterauth", "CONFIG SET maxmemory 1", "CONFIG REWRITE", "CONFIG RESETSTAT", "ACL LIST", "ACL SETUSER eve on nopass", "ACL LOAD", "DEBUG SLEEP 0",
		"SHUTDOWN NOSAVE", "MODULE LIST", "REPLCONF ACK 1", "PSYNC ? -1", "SYNC", "SAVE", "BGSAVE", "BGREWRITEAOF",
	}
	redisserver.Each(t, func(t *testing.T, flavour string) {
		servers, connected := members(t, flavour, 1)
		for _, rules := range []string{
			"~* &* +@all +@admin +@dangerous +@scripting", "allkeys allchannels allcommands +@all", "+@all (~* &* +@all +@admin +@dangerous)",
			"+@slow +@fast +@connection +@admin ~*", "+client +script +@dangerous", "(+@admin ~*) (+@dangerous ~*)",
		} {
			setUsers(t, connected[0], withApp(t, rules))
			app := dialAs(t, servers[0], "app", appPassword)
			for _, line := range refused {
				if got := app.say(t, line); !strings.HasPrefix(got, "-NOPERM") && !strings.Contains(got, "DEBUG command not allowed") {
					t.Errorf("with %q, %s is answered: %s", rules, line, got)
				}
			}
			if got := app.say(t, "CLIENT SETNAME app"); got != "+OK" && !strings.HasPrefix(rules, "(+@admin") {
				t.Errorf("with %q, CLIENT SETNAME is answered: %s", rules, got)
			}
		}
	})
}

func TestAllIsWithoutWhatMustBeAsked(t *testing.T) {
	redisserver.Each(t, func(t *testing.T, flavour string) {
		servers, connected := members(t, flavour, 1)
		for rules, want := range map[string]map[string]string{
			"~* +@all":              {"SET a b": "+OK", "KEYS *": "-NOPERM", "FLUSHALL": "-NOPERM", "EVAL return(1) 0": "-NOPERM", "CLIENT SETNAME a": "+OK", "MONITOR": "-NOPERM"},
			"~* +@all +@scripting":  {"SET a b": "+OK", "EVAL return(1) 0": ":1", "FLUSHALL": "-NOPERM"},
			"~* +@all +keys":        {"KEYS *": "*", "FLUSHALL": "-NOPERM"},
			"~* +@all +@dangerous":  {"FLUSHALL": "+OK", "REPLICAOF NO ONE": "-NOPERM", "EVAL return(1) 0": "-NOPERM"},
			"~* +@all -@write +del": {"SET a b": "-NOPERM", "DEL nothing": ":0"},
		} {
			setUsers(t, connected[0], withApp(t, rules))
			connectedAs := dialAs(t, servers[0], "app", appPassword)
			for line, reply := range want {
				if got := connectedAs.say(t, line); !strings.HasPrefix(got, reply) {
					t.Errorf("with %q, %s: %s, want %s", rules, line, got, reply)
				}
			}
		}
	})
}

// rotated are the users with new passwords of the system beside the old, or alone.
func rotated(dropOld bool) ([]conf.User, conf.Passwords) {
	next := redisserver.Passwords
	next.Operator, next.Replication = "another-operator-password", "another-replication-password"
	users := next.Users()
	for i, old := range redisserver.Passwords.Users() {
		if !dropOld && !slices.Equal(users[i].Hashes, old.Hashes) {
			users[i].Hashes = append(users[i].Hashes, old.Hashes...)
		}
	}
	return users, next
}

func TestThePasswordsOfTheSystemChangeWithoutAFullResync(t *testing.T) {
	redisserver.Each(t, func(t *testing.T, flavour string) {
		servers, connected := members(t, flavour, 2)
		both, next := rotated(false)
		for i, m := range connected {
			setUsers(t, m, both)
			if err := m.ConfigSet(t.Context(), map[string]string{"masteruser": naming.UserReplication, "masterauth": next.Replication}); err != nil {
				t.Fatal(err)
			}
			for user, password := range map[string]string{naming.UserOperator: next.Operator, naming.UserReplication: next.Replication, naming.UserDefault: next.Default} {
				if err := connected[i].TryLogin(t.Context(), user, password); err != nil {
					t.Errorf("log in as %s with the new password: %v", user, err)
				}
			}
		}
		alone, _ := rotated(true)
		for _, m := range connected {
			setUsers(t, m, alone)
			for user, password := range map[string]string{naming.UserOperator: redisserver.Passwords.Operator, naming.UserReplication: redisserver.Passwords.Replication} {
				if err := m.TryLogin(t.Context(), user, password); !errors.Is(err, admin.ErrAuth) {
					t.Errorf("log in as %s with the old password: %v, want ErrAuth", user, err)
				}
			}
		}
		if before := info(t, connected[1]); !before.LinkUp {
			t.Error("the link did not survive")
		}
		say := dialAs(t, servers[0], naming.UserOperator, next.Operator)
		before := statOf(t, servers[0])
		if got := say.say(t, "CLIENT KILL TYPE replica"); got != ":1" {
			t.Fatalf("CLIENT KILL: %s", got)
		}
		eventually(t, "the replica is back with its new login, by a partial resync", func() bool {
			now := statOf(t, servers[0])
			if now["sync_full"] != before["sync_full"] {
				t.Fatalf("a full resync: %v, before %v", now, before)
			}
			return now["sync_partial_ok"] != before["sync_partial_ok"] && info(t, connected[1]).LinkUp
		})
	})
}

// statOf reads INFO stats as the application.
func statOf(t *testing.T, s *redisserver.Server) map[string]string {
	t.Helper()
	stats := map[string]string{}
	for line := range strings.Lines(s.Do(naming.UserDefault, "INFO", "stats")) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		stats[name] = value
	}
	return stats
}

// A node may have an old copy of the Secret when a process starts there again.
func TestAProcessThatKnowsTheOldPasswordOnlyIsReached(t *testing.T) {
	redisserver.Each(t, func(t *testing.T, flavour string) {
		pool := admin.NewPool(func(admin.Key) {})
		t.Cleanup(pool.Close)
		s := redisserver.Start(t, flavour, memory)
		old := connect(t, pool, s)
		rotating := target(s)
		rotating.Credentials.Previous, rotating.Credentials.Password = rotating.Credentials.Password, "another-operator-password"
		same, err := pool.Connect(t.Context(), rotating)
		if err != nil || same != old {
			t.Fatalf("the connection is dropped: %v", err)
		}
		s.Run(t)
		eventually(t, "the end of the old process is seen", func() bool { _, err := old.Info(t.Context()); return err != nil })
		again, err := pool.Connect(t.Context(), rotating)
		if err != nil {
			t.Fatalf("after a restart with the old file: %v", err)
		}
		users, _ := rotated(true)
		setUsers(t, again, users)
		pool.Close()
		if _, err := pool.Connect(t.Context(), rotating); err != nil {
			t.Fatalf("with the new password: %v", err)
		}
		rotating.Credentials = admin.Credentials{User: naming.UserOperator, Password: "neither", Previous: redisserver.Passwords.Operator}
		pool.Close()
		if _, err := pool.Connect(t.Context(), rotating); !errors.Is(err, admin.ErrAuth) {
			t.Fatalf("with neither: %v, want ErrAuth", err)
		}
	})
}
