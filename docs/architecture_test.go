// Package docs checks that the documentation speaks of what is there.
package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// repositoryPath matches what the pages write as a path of this repository.
var repositoryPath = regexp.MustCompile("`((?:api|controllers|internal|test|config|docs|tools|bundle|catalog|scorecard)/[A-Za-z0-9_./-]*)`")

func TestEveryPathInTheDocumentationExists(t *testing.T) {
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range repositoryPath.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(match[1], "*") {
				continue
			}
			if _, err := os.Stat(filepath.Join("..", match[1])); err != nil {
				t.Errorf("%s names %s, which is not there", page, match[1])
			}
		}
	}
}

func TestEveryConditionAndReasonIsDocumented(t *testing.T) {
	page, err := os.ReadFile("status-conditions.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("../api/v1alpha1/conditions.go")
	if err != nil {
		t.Fatal(err)
	}
	constants := regexp.MustCompile(`(?m)^\t(?:Condition|Reason)\w+ += "(\w+)"`).FindAllStringSubmatch(string(source), -1)
	if len(constants) < 20 {
		t.Fatalf("found %d constants in conditions.go, want them all", len(constants))
	}
	for _, constant := range constants {
		if !strings.Contains(string(page), "`"+constant[1]+"`") {
			t.Errorf("status-conditions.md does not explain %s", constant[1])
		}
	}
}
