package plan

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTheRulesAreThoseOfTheDocument compares the table of docs/safety-rules.md
// with the code: the predicates of rules.go, and the comments that name a rule.
func TestTheRulesAreThoseOfTheDocument(t *testing.T) {
	text, err := os.ReadFile("../../../docs/safety-rules.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\S+) \\| .+ \\|$").FindAllStringSubmatch(string(text), -1) {
		documented[row[1]] = row[2]
	}
	if diff := cmp.Diff(rulesInCode(t), documented); diff != "" {
		t.Errorf("docs/safety-rules.md names other rules (-code +document):\n%s", diff)
	}
}

// rulesInCode gives the file of each rule.
func rulesInCode(t *testing.T) map[string]string {
	t.Helper()
	rules := map[string]string{}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`\(rule (\w+)\)`)
	for _, entry := range entries {
		name := entry.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, group := range file.Comments {
			for _, match := range named.FindAllStringSubmatch(strings.Join(strings.Fields(group.Text()), " "), -1) {
				rules[match[1]] = name
			}
		}
		if name == "rules.go" {
			maps.Copy(rules, predicates(file, name))
		}
	}
	return rules
}

func predicates(file *ast.File, name string) map[string]string {
	found := map[string]string{}
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Name.IsExported() {
			found[f.Name.Name] = name
		}
	}
	return found
}
