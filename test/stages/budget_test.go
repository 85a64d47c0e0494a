package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseBudgets(t *testing.T) {
	tests := map[string]struct {
		markdown string
		want     map[string]budget
	}{
		"rows of stages are read, header and prose are not": {
			markdown: "| stage | what | warm | cold |\n|---|---|---|---|\n| `lint` | style | 0.5 | 10 |\n| `test-e2e` | a, b | 1 | 2.5 |\n\nText `x` 3.\n",
			want: map[string]budget{
				"lint":     {warm: 30 * time.Second, cold: 10 * time.Minute},
				"test-e2e": {warm: time.Minute, cold: 150 * time.Second},
			},
		},
		"a row without figures is no budget": {
			markdown: "| `lint` | style | fast | slow |\n",
			want:     map[string]budget{},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := parseBudgets(test.markdown)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(budget{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestVerdict(t *testing.T) {
	limits := budget{warm: time.Minute, cold: 5 * time.Minute}
	tests := map[string]struct {
		result result
		want   string
	}{
		"faster than warm":       {result{took: time.Minute, budget: limits}, "within warm"},
		"between warm and cold":  {result{took: 2 * time.Minute, budget: limits}, "within cold"},
		"slower than cold":       {result{took: 6 * time.Minute, budget: limits}, "OVER BUDGET"},
		"failed, however fast":   {result{took: time.Second, budget: limits, failed: true}, "FAILED"},
		"failed and over budget": {result{took: 6 * time.Minute, budget: limits, failed: true}, "FAILED"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.result.verdict(); got != test.want {
				t.Errorf("verdict is %q, want %q", got, test.want)
			}
		})
	}
}

// Every stage that make runs has a budget in the document.
func TestEveryStageHasABudget(t *testing.T) {
	document, err := os.ReadFile("../../" + budgetFile)
	if err != nil {
		t.Fatal(err)
	}
	budgets, err := parseBudgets(string(document))
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	calls := regexp.MustCompile(`(?m)\$\(STAGES\) (.+)$`).FindAllStringSubmatch(string(makefile), -1)
	if len(calls) == 0 {
		t.Fatal("the Makefile runs no stages")
	}
	for _, call := range calls {
		for stage := range strings.FieldsSeq(call[1]) {
			if _, found := budgets[stage]; !found {
				t.Errorf("stage %s has no budget in %s", stage, budgetFile)
			}
		}
	}
}
