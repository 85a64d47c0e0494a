package conf

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"

	"seang.org/operator/internal/naming"
)

// Passwords of the users of a cluster.
type Passwords struct {
	// Operator and Replication are the system's, Default the application's.
	Operator, Replication, Default string
}

// What each user may do. The operator's commands are those that package admin
// sends. An application may do everything that cannot undo a proof of the
// operator (safety rule 18) or read a secret: CONFIG GET shows masterauth. Of a
// command with harmless subcommands the harmful ones are taken away by name, so
// that those of newer servers stay allowed and an older server knows all that
// are named; a test compares with what each server has.
const (
	operatorRules = "resetkeys resetchannels -@all +ping +hello +auth +info +role +config|get +config|set +replicaof" +
		" +client|pause +client|unpause +client|kill +client|list +client|id +client|setname +client|getname +client|info +client|no-evict" +
		" +wait +bgsave +bgrewriteaof +lastsave +save +shutdown +acl|setuser +acl|getuser +acl|load +acl|whoami +acl|list +multi +exec +discard"
	replicationRules = "resetkeys resetchannels -@all +psync +replconf +ping"
	defaultRules     = "~* &* +@all" +
		" -replicaof -slaveof -failover -config -acl -debug -shutdown -module -replconf -psync -sync" +
		" -bgsave -save -bgrewriteaof -client|kill -client|pause -client|unpause -client|list -script|debug"
)

// RenderACL returns the content of the ACL file. Passwords appear as hashes.
func RenderACL(p Passwords) string {
	var b strings.Builder
	for _, user := range []struct{ name, password, rules string }{
		{naming.UserDefault, p.Default, defaultRules},
		{naming.UserOperator, p.Operator, operatorRules},
		{naming.UserReplication, p.Replication, replicationRules},
	} {
		fmt.Fprintf(&b, "user %s on #%s %s\n", user.name, Hash(user.password), user.rules)
	}
	return b.String()
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
