package v1alpha1_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestUsers(t *testing.T) {
	const (
		name     = "the name of a user must be"
		taken    = "the names default, operator, replication and system are taken"
		rules    = "the rules of a user may have"
		controls = "the rules of a user must be one line without control characters"
	)
	user := func(name, rules string) string {
		return fmt.Sprintf("auth: {users: [{name: %s, rules: %q}]}", name, rules)
	}
	tests := map[string]admission{
		"a user":                        {with: user("app", "~app:* +@read +set")},
		"a Secret":                      {with: "auth: {users: [{name: app, rules: '+get', secretName: my-password}]}"},
		"all kinds of rules":            {with: user("app", "  ~* %R~a:* %RW~b &news:* +@all -@write +client|setname +json.get -flushall (+get ~c) (%W~d +set ~e)  allkeys ")},
		"two of a name":                 {with: "auth: {users: [{name: app, rules: '+get'}, {name: app, rules: '+set'}]}", want: "Duplicate value"},
		"no rules":                      {with: "auth: {users: [{name: app}]}", want: "spec.auth.users[0].rules: Required value"},
		"no name":                       {with: "auth: {users: [{rules: '+get'}]}", want: "spec.auth.users[0].name: Required value"},
		"upper case":                    {with: user("App", "+get"), want: name},
		"a space":                       {with: user("'a b'", "+get"), want: name},
		"an underscore":                 {with: user("a_b", "+get"), want: name},
		"32 characters":                 {with: user(strings.Repeat("a", 32), "+get")},
		"33 characters":                 {with: user(strings.Repeat("a", 33), "+get"), want: "spec.auth.users[0].name"},
		"1024 characters of rules":      {with: user("app", "~"+strings.Repeat("a", 1023))},
		"1025 characters of rules":      {with: user("app", "~"+strings.Repeat("a", 1024)), want: "spec.auth.users[0].rules"},
		"a Secret of another namespace": {with: "auth: {users: [{name: app, rules: '+get', secretName: other/password}]}", want: "the secretName of a user must be the name of a Secret"},
		"32 users":                      {with: "auth: {users: [" + users(32) + "]}"},
		"33 users":                      {with: "auth: {users: [" + users(33) + "]}", want: "spec.auth.users: Too many"},
		"an overlap of none":            {with: "auth: {overlapSeconds: 0}"},
		"an overlap of a day":           {with: "auth: {overlapSeconds: 86400}"},
		"an overlap of less than none":  {with: "auth: {overlapSeconds: -1}", want: "spec.auth.overlapSeconds"},
		"an overlap of more than a day": {with: "auth: {overlapSeconds: 86401}", want: "spec.auth.overlapSeconds"},
		"rotation each hour":            {with: "auth: {rotateSystemAfterHours: 1}"},
		"rotation after no time":        {with: "auth: {rotateSystemAfterHours: 0}", want: "spec.auth.rotateSystemAfterHours"},
	}
	for _, word := range []string{"default", "operator", "replication", "system"} {
		tests["the name "+word] = admission{with: user(word, "+get"), want: taken}
	}
	for _, word := range []string{">password", "<password", "#5e88", "!5e88", "nopass", "resetpass", "reset", "resetkeys", "on", "off", "skip-sanitize-payload", "get", "(>password)", " "} {
		tests["the rule "+word] = admission{with: user("app", "+get "+word+" "), want: rules}
	}
	tests["the rule  "] = admission{with: user("app", " "), want: rules}
	for _, text := range []string{"+get\n+set", "~a\x00", "~a\t+set"} {
		tests[fmt.Sprintf("the rules %q", text)] = admission{with: user("app", text), want: controls}
	}
	checkAdmission(t, tests)
}

func users(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("{name: user-%d, rules: '+get'}", i)
	}
	return strings.Join(all, ", ")
}
