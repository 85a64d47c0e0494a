package main

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"text/tabwriter"
	"time"
)

// budget is how long a stage may take: with everything built before, and from nothing.
type budget struct{ warm, cold time.Duration }

type result struct {
	stage  string
	took   time.Duration
	budget budget
	failed bool
}

// verdict compares the time with the budgets. A cold run may exceed the warm one.
func (r result) verdict() string {
	switch {
	case r.failed:
		return "FAILED"
	case r.took > r.budget.cold:
		return "OVER BUDGET"
	case r.took > r.budget.warm:
		return "within cold"
	default:
		return "within warm"
	}
}

// budgetRow matches a row "| `stage` | … | warm | cold |", both in minutes.
var budgetRow = regexp.MustCompile("(?m)^\\| `([a-z0-9-]+)` \\|.*\\| *([0-9.]+) *\\| *([0-9.]+) *\\|$")

// parseBudgets reads the table of budgets in a Markdown text.
func parseBudgets(markdown string) (map[string]budget, error) {
	budgets := map[string]budget{}
	for _, row := range budgetRow.FindAllStringSubmatch(markdown, -1) {
		warm, err := minutes(row[2])
		if err != nil {
			return nil, err
		}
		cold, err := minutes(row[3])
		if err != nil {
			return nil, err
		}
		budgets[row[1]] = budget{warm: warm, cold: cold}
	}
	return budgets, nil
}

func minutes(text string) (time.Duration, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("minutes %q: %w", text, err)
	}
	return time.Duration(n * float64(time.Minute)), nil
}

func printTable(out io.Writer, results []result) {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\nstage\tminutes\twarm\tcold\t\t")
	var sum result
	for _, r := range results {
		printRow(w, r)
		sum.took += r.took
		sum.budget.warm += r.budget.warm
		sum.budget.cold += r.budget.cold
		sum.failed = sum.failed || r.failed
	}
	sum.stage = "sum"
	printRow(w, sum)
	_ = w.Flush()
}

func printRow(w io.Writer, r result) {
	fmt.Fprintf(w, "%s\t%.1f\t%.1f\t%.1f\t%s\t\n",
		r.stage, r.took.Minutes(), r.budget.warm.Minutes(), r.budget.cold.Minutes(), r.verdict())
}
