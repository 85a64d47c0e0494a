package conf

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// denied are the commands, and the subcommands of others, that no user of an
// application may have: those that could undo a proof of the operator (safety rule 18)
// or read a secret: CONFIG GET shows masterauth. Of a command with harmless subcommands
// the harmful ones are named, so that those of newer servers stay allowed and an older
// server knows all that are named; a test compares with what each server has.
var denied = strings.Fields("replicaof slaveof failover config acl debug shutdown module replconf psync sync" +
	" bgsave save bgrewriteaof client|kill client|pause client|unpause client|list script|debug")

// deniedRules take denied away: the last rules win.
var deniedRules = "-" + strings.Join(denied, " -")

// askedOnly are the categories that no other brings: they must be named.
var askedOnly = []string{"@admin", "@dangerous", "@scripting"}

// rule matches one rule that a user of an application may have: never a password, nor
// what resets or turns off what the operator sets.
var rule = regexp.MustCompile(`^([+-]@?[A-Za-z0-9._|-]+|~[^\x00-\x20\x7f]+|%(R|W|RW|WR)~[^\x00-\x20\x7f]+|&[^\x00-\x20\x7f]+|allkeys|allchannels|allcommands|nocommands)$`)

// Restrict turns the ACL rules of a user of an application, as they stand in the spec,
// into those that Redis gets: whatever they are, they end with what no application may
// have, and so does each selector. An error names the rule that cannot be used.
func Restrict(rules string) (string, error) {
	var root, selector []string
	var selectors []string
	inside := false
	for word := range strings.FieldsSeq(rules) {
		word, opens := strings.CutPrefix(word, "(")
		if opens {
			if inside {
				return "", fmt.Errorf("a selector stands in another")
			}
			inside, selector = true, nil
		}
		if !inside {
			root = append(root, word)
			continue
		}
		word, closes := strings.CutSuffix(word, ")")
		selector = append(selector, word)
		if closes {
			safe, err := restrict(selector)
			if err != nil {
				return "", err
			}
			selectors = append(selectors, "("+safe+")")
			inside = false
		}
	}
	if inside {
		return "", fmt.Errorf("a selector has no end")
	}
	safe, err := restrict(root)
	return strings.Join(append([]string{safe}, selectors...), " "), err
}

// restrict is one set of rules as Redis gets it.
func restrict(words []string) (string, error) {
	var without []string
	for _, category := range askedOnly {
		if !slices.ContainsFunc(words, func(word string) bool { return strings.EqualFold(word, "+"+category) }) {
			without = append(without, "-"+category)
		}
	}
	var safe []string
	for _, word := range words {
		if !rule.MatchString(word) {
			return "", fmt.Errorf("the rule %q is none about commands, keys or channels", word)
		}
		name, grants := strings.CutPrefix(strings.ToLower(word), "+")
		command, _, _ := strings.Cut(name, "|")
		switch {
		case word == "allcommands", grants && name[0] == '@' && !slices.Contains(askedOnly, name):
			safe = append(append(safe, word), without...)
			continue
		case grants && (slices.Contains(denied, name) || slices.Contains(denied, command)):
			return "", fmt.Errorf("the rule %q grants what no application may have", word)
		}
		safe = append(safe, word)
	}
	return strings.Join(append(safe, deniedRules), " "), nil
}
