package conf

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"seang.org/operator/internal/naming"
)

// Passwords of the users of a cluster.
type Passwords struct {
	// Operator and Replication are the system's, Default the application's.
	Operator, Replication, Default string
}

// User is a user of Redis: a line of the ACL file.
type User struct {
	Name string
	// Hashes of the passwords with which the user can log in, the newest first.
	Hashes []string
	// Rules about commands, keys and channels.
	Rules string
}

// What each user may do. The operator's commands are those that package admin
// sends. An application may do everything but what is denied to all of them.
const (
	operatorRules = "resetkeys resetchannels -@all +ping +hello +auth +info +role +config|get +config|set +replicaof" +
		" +client|pause +client|unpause +client|kill +client|list +client|id +client|setname +client|getname +client|info +client|no-evict" +
		" +wait +bgsave +bgrewriteaof +lastsave +save +shutdown +acl|setuser +acl|getuser +acl|deluser +acl|load +acl|whoami +acl|list +multi +exec +discard"
	replicationRules = "resetkeys resetchannels -@all +psync +replconf +ping"
)

// SystemRules are the rules of the users that every cluster has.
func SystemRules() map[string]string {
	return map[string]string{
		naming.UserDefault:     "~* &* +@all " + deniedRules,
		naming.UserOperator:    operatorRules,
		naming.UserReplication: replicationRules,
	}
}

// Users are the users that every cluster has, each with its one password.
func (p Passwords) Users() []User {
	rules := SystemRules()
	return []User{
		{naming.UserDefault, []string{Hash(p.Default)}, rules[naming.UserDefault]},
		{naming.UserOperator, []string{Hash(p.Operator)}, rules[naming.UserOperator]},
		{naming.UserReplication, []string{Hash(p.Replication)}, rules[naming.UserReplication]},
	}
}

// RenderACL returns the content of the ACL file. Passwords appear as hashes.
func RenderACL(users []User) string {
	var b strings.Builder
	for _, user := range users {
		fmt.Fprintf(&b, "user %s %s\n", user.Name, strings.Join(user.Modifiers(), " "))
	}
	return b.String()
}

// Modifiers are what ACL SETUSER and the ACL file say of the user.
func (u User) Modifiers() []string {
	words := []string{"on"}
	for _, hash := range u.Hashes {
		words = append(words, "#"+hash)
	}
	return append(words, strings.Fields(u.Rules)...)
}

// ParseACL reads what RenderACL wrote, or the lines of ACL LIST: then the rules are in
// Redis's own words. A user that is off has no hashes.
func ParseACL(acl string) []User {
	var users []User
	for line := range strings.Lines(acl) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "user" {
			continue
		}
		user := User{Name: words[1]}
		var rules []string
		for _, word := range words[2:] {
			if hash, ok := strings.CutPrefix(word, "#"); ok {
				user.Hashes = append(user.Hashes, hash)
			} else if word != "on" {
				rules = append(rules, word)
			}
		}
		if slices.Contains(words[2:], "off") {
			user.Hashes = nil
		}
		user.Rules = strings.Join(rules, " ")
		users = append(users, user)
	}
	return users
}

// Hash is the form in which Redis keeps a password.
func Hash(password string) string {
	sum := sha256.Sum256([]byte(password))
	return hex.EncodeToString(sum[:])
}

// ReplicationInclude returns the part of redis.conf with which a replica logs
// in at its primary.
func ReplicationInclude(user, password string) string {
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	return fmt.Sprintf("masteruser %s\nmasterauth \"%s\"\n", user, quote.Replace(password))
}

// Length of a password in bytes.
const (
	minPassword = 16
	maxPassword = 512
)

// CheckPassword says why a password cannot be used; nil if it can.
func CheckPassword(password []byte) error {
	if len(password) < minPassword || len(password) > maxPassword {
		return fmt.Errorf("it has %d bytes, and must have %d to %d", len(password), minPassword, maxPassword)
	}
	for _, r := range string(password) {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) || r == ' ' {
			return fmt.Errorf("it must have printable characters without spaces or line breaks only")
		}
	}
	return nil
}
