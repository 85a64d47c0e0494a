package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	report = regexp.MustCompile(`\b(?:OT|SPO|VIO|HYP|DF|KB)#\d+`)
	// tests is a file, and then quoted words that stand in it.
	tests  = regexp.MustCompile("`([^`]+_test\\.go)`((?:,? \"[^\"]+\")+)")
	quoted = regexp.MustCompile(`"([^"]+)"`)
)

// TestEveryFieldReportHasItsTest checks that the tests that the page names are there, and
// that each row names one or says what is open.
func TestEveryFieldReportHasItsTest(t *testing.T) {
	rows := reportRows(t)
	if len(rows) < 25 {
		t.Fatalf("found %d rows, want them all", len(rows))
	}
	for _, row := range rows {
		found := tests.FindAllStringSubmatch(row, -1)
		if len(found) == 0 && !strings.Contains(row, "open: ") {
			t.Errorf("no test in %s", row)
		}
		for _, match := range found {
			source, err := os.ReadFile(filepath.Join("..", match[1]))
			if err != nil {
				t.Error(err)
				continue
			}
			for _, words := range quoted.FindAllStringSubmatch(match[2], -1) {
				name := words[1]
				if !strings.Contains(string(source), `"`+name+`"`) && !strings.Contains(string(source), "func "+name+"(") {
					t.Errorf("%s has no test %q", match[1], name)
				}
			}
		}
	}
}

// TestEveryReportThatATestNamesIsInTheIndex finds the reports in the source of tests.
func TestEveryReportThatATestNamesIsInTheIndex(t *testing.T) {
	var page string
	for _, row := range reportRows(t) {
		page += strings.SplitN(row, "|", 3)[1]
	}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, name := range report.FindAllString(string(source), -1) {
			if !regexp.MustCompile(name + `\b`).MatchString(page) {
				t.Errorf("%s names %s, which field-reports.md lacks", path, name)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func reportRows(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile("field-reports.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "| ") && report.MatchString(line) {
			rows = append(rows, line)
		}
	}
	return rows
}
