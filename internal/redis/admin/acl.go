package admin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"seang.org/operator/internal/redis/conf"
)

// probeUser is the user under whose name rules are tried. No user of a cluster can have
// that name.
const probeUser = "operator/probe"

// Users returns the users that the process has, with the rules in its own words.
func (m *Member) Users(ctx context.Context) ([]conf.User, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	lines, err := m.client.Do(ctx, m.client.B().AclList().Build()).AsStrSlice()
	if err != nil {
		return nil, classify(m.address, err)
	}
	return conf.ParseACL(strings.Join(lines, "\n")), nil
}

// SetUsers makes the users those that the process has: in one transaction, each is
// replaced as a whole, and then all others are removed, which ends their connections.
// What the process then has is read back.
func (m *Member) SetUsers(ctx context.Context, users, have []conf.User) error {
	var commands [][]string
	for _, user := range users {
		commands = append(commands, append([]string{"ACL", "SETUSER", user.Name, "reset"}, user.Modifiers()...))
	}
	if err := m.users(ctx, commands); err != nil {
		return err
	}
	wanted := byName(users)
	others := []string{"ACL", "DELUSER"}
	for name := range maps.Keys(byName(have)) {
		if _, ok := wanted[name]; !ok {
			others = append(others, name)
		}
	}
	if len(others) > 2 {
		slices.Sort(others[2:])
		if err := m.do(ctx, others...); err != nil {
			return err
		}
	}
	now, err := m.Users(ctx)
	if err != nil {
		return err
	}
	return m.compare(wanted, byName(now))
}

func byName(users []conf.User) map[string]conf.User {
	named := map[string]conf.User{}
	for _, user := range users {
		named[user.Name] = user
	}
	return named
}

// compare says where the users of the process are not those that are wanted.
func (m *Member) compare(wanted, have map[string]conf.User) error {
	for name, user := range wanted {
		if a, b := slices.Sorted(slices.Values(user.Hashes)), slices.Sorted(slices.Values(have[name].Hashes)); !slices.Equal(a, b) {
			return fmt.Errorf("redis at %s %w: its user %s has %d passwords, not the %d wanted", m.address, ErrReplied, name, len(b), len(a))
		}
	}
	if len(have) != len(wanted) {
		return fmt.Errorf("redis at %s %w: it has %d users, not the %d wanted", m.address, ErrReplied, len(have), len(wanted))
	}
	return nil
}

// TryRules has the process read the rules for a user that nobody can log in as, and
// that is gone in the same transaction. A refusal says which rule is wrong.
func (m *Member) TryRules(ctx context.Context, rules string) error {
	err := m.users(ctx, [][]string{
		append([]string{"ACL", "SETUSER", probeUser, "reset"}, strings.Fields(rules)...),
		{"ACL", "DELUSER", probeUser},
	})
	if refused, ok := errors.AsType[*userError](err); ok {
		return fmt.Errorf("redis at %s %w: %s", m.address, ErrReplied, refused.reply)
	}
	return err
}

// userError is what a process replied to a command about a user. The reply may quote
// the hash of a password.
type userError struct{ user, reply string }

func (e *userError) Error() string { return "it refuses the rules of the user " + e.user }

// users does commands about users in one transaction.
func (m *Member) users(ctx context.Context, commands [][]string) error {
	results, err := m.transaction(ctx, commands)
	if err != nil {
		return err
	}
	for i, result := range results {
		if err := result.Error(); err != nil {
			return fmt.Errorf("redis at %s %w: %w", m.address, ErrReplied, &userError{user: commands[i][2], reply: err.Error()})
		}
	}
	return nil
}

// TryLogin logs in on a connection of its own, which it closes: ErrAuth says that the
// process does not let the user in.
func (m *Member) TryLogin(ctx context.Context, user, password string) error {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	conn, _, err := m.pool.secured(ctx, Target{Address: m.address, TLS: m.proof.Load()})
	if err != nil {
		return err
	}
	// The library's login knows no context.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	login := &Member{address: m.address, credentials: Credentials{User: user, Password: password}, pool: m.pool, done: make(chan struct{})}
	options := login.options(conn)
	options.ClientName, options.ClientNoEvict = "", false // Not every user may set them.
	client, err := rueidis.NewClient(options)
	if err != nil {
		_ = conn.Close()
		return classify(m.address, err)
	}
	client.Close()
	return nil
}
