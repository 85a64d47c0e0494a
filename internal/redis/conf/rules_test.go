package conf

import (
	"strings"
	"testing"
)

func TestRestrict(t *testing.T) {
	for name, c := range map[string]struct{ rules, want string }{
		"commands":                     {"~app:* +get +set", "~app:* +get +set " + deniedRules},
		"all is without what is asked": {"~* +@all", "~* +@all -@admin -@dangerous -@scripting " + deniedRules},
		"so is each category":          {"+@read +@slow", "+@read -@admin -@dangerous -@scripting +@slow -@admin -@dangerous -@scripting " + deniedRules},
		"in other words":               {"allkeys allcommands", "allkeys allcommands -@admin -@dangerous -@scripting " + deniedRules},
		"in capitals":                  {"~* +@ALL +@Admin", "~* +@ALL -@dangerous -@scripting +@Admin " + deniedRules},
		"what is asked is there":       {"~* +@scripting +@all +keys", "~* +@scripting +@all -@admin -@dangerous +keys " + deniedRules},
		"what is denied may be denied": {"~* +@read -config -acl|list", "~* +@read -@admin -@dangerous -@scripting -config -acl|list " + deniedRules},
		"a harmless subcommand":        {"+client|setname +client|id", "+client|setname +client|id " + deniedRules},
		"keys to read and channels":    {"%R~a:* %RW~b:* &news:* +get", "%R~a:* %RW~b:* &news:* +get " + deniedRules},
		"a selector":                   {"+get ~a (+@all ~b) &c", "+get ~a &c " + deniedRules + " (+@all -@admin -@dangerous -@scripting ~b " + deniedRules + ")"},
		"two selectors":                {"(+get ~a) (+set ~b)", deniedRules + " (+get ~a " + deniedRules + ") (+set ~b " + deniedRules + ")"},
		"a key with an end of brace":   {"~a) +get", "~a) +get " + deniedRules},
		"spaces":                       {"  +get    ~a ", "+get ~a " + deniedRules},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := Restrict(c.rules); err != nil || got != c.want {
				t.Errorf("got %q, %v\nwant %q", got, err, c.want)
			}
		})
	}
}

func TestRestrictRefuses(t *testing.T) {
	for _, rules := range []string{
		"+config", "+config|get", "+CONFIG|GET", "+acl", "+acl|whoami", "+replicaof", "+slaveof", "+Debug", "+client|kill", "+CLIENT|KILL", "+script|debug",
		"+shutdown", "+module|load", "+psync", "+sync", "+failover", "(+config ~a)", "+get (~a +acl)",
		"on", "off", "nopass", "NOPASS", "resetpass", "reset", "resetkeys", "resetchannels", "clearselectors", "sanitize-payload", "skip-sanitize-payload",
		">password", "<password", "#5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8", "!5e88", "(>password)", "(+get",
		"(+get (+set))", "()", "(", ")", "+", "~", "%X~a", "%R", "get", "user eve on nopass",
	} {
		if got, err := Restrict(rules); err == nil {
			t.Errorf("%q is taken as %q", rules, got)
		}
	}
	for _, rules := range []string{"+get\nuser eve on nopass ~* +@all", "~a\ruser", "~a\x00"} {
		got, err := Restrict(rules)
		if err == nil && strings.ContainsAny(got, "\n\r\x00") {
			t.Errorf("%q is taken as %q", rules, got)
		}
	}
}

func TestParseACLReadsWhatRenderACLWrote(t *testing.T) {
	users := append(Passwords{Operator: "a", Replication: "b", Default: "c"}.Users(), User{"app", []string{Hash("new"), Hash("old")}, "~a +get (+set ~b)"})
	got := ParseACL(RenderACL(users))
	if len(got) != len(users) {
		t.Fatalf("%d users, want %d", len(got), len(users))
	}
	for i := range users {
		if a, b := strings.Join(got[i].Modifiers(), " "), strings.Join(users[i].Modifiers(), " "); a != b || got[i].Name != users[i].Name {
			t.Errorf("%s: %s\nwant %s: %s", got[i].Name, a, users[i].Name, b)
		}
	}
	if off := ParseACL("user eve off #" + Hash("x") + " ~* +@all"); len(off) != 1 || len(off[0].Hashes) != 0 {
		t.Errorf("a user that is off has passwords: %v", off)
	}
}
