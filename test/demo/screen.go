package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/utils/clock"
)

// screen is what a person sees: each line with the seconds since the start, and
// at the end a table.
type screen struct {
	out   io.Writer
	clock clock.PassiveClock
	began time.Time
	rows  []row
	steps int
}

type row struct{ what, result string }

func newScreen(out io.Writer) *screen {
	s := &screen{out: out, clock: clock.RealClock{}}
	s.began = s.clock.Now()
	return s
}

func (s *screen) title(text string) {
	s.steps++
	fmt.Fprintf(s.out, "\n%d. %s\n", s.steps, text)
}

// line prints one thing that happened.
func (s *screen) line(format string, values ...any) {
	fmt.Fprintf(s.out, "  %6.1fs  %s\n", s.clock.Since(s.began).Seconds(), fmt.Sprintf(format, values...))
}

// command shows what a person would type for what the demo does.
func (s *screen) command(text string) { s.line("$ %s", text) }

// result is a row of the summary.
func (s *screen) result(what, format string, values ...any) {
	s.rows = append(s.rows, row{what: what, result: fmt.Sprintf(format, values...)})
}

func (s *screen) summary() {
	s.result("the whole demo", "%s", seconds(s.clock.Since(s.began)))
	table := tabwriter.NewWriter(s.out, 0, 0, 3, ' ', 0)
	fmt.Fprintf(table, "\nWHAT\tRESULT\n")
	for _, r := range s.rows {
		fmt.Fprintf(table, "%s\t%s\n", r.what, r.result)
	}
	_ = table.Flush()
}

func seconds(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// columns lays out what kubectl get shows.
func columns(values ...any) string {
	var b strings.Builder
	for _, value := range values {
		fmt.Fprintf(&b, "%-14v", value)
	}
	return strings.TrimRight(b.String(), " ")
}
