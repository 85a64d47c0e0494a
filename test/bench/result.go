package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"
)

// result is one row of the table. What does not apply is nil.
type result struct {
	Name string `json:"name"`
	// Unit says what the figures count, and in which case where a benchmark has several.
	Unit string `json:"unit"`
	N    int    `json:"n"`
	// P50, P99 and Max are of the N samples, P50 and P99 by nearest rank.
	P50 *float64 `json:"p50,omitempty"`
	P99 *float64 `json:"p99,omitempty"`
	Max *float64 `json:"max,omitempty"`
	// Value is the figure that is held against the target.
	Value float64 `json:"value"`
	// Target is absent of what is only to be known.
	Target *float64 `json:"target,omitempty"`
	// Holds says that Value is at most Target or, of a rate, at least.
	Holds bool `json:"holds"`
	// Floor is what the same takes without the operator, and Ratio how many
	// times as much it takes with it.
	Floor   *float64 `json:"floor,omitempty"`
	Ratio   *float64 `json:"ratio,omitempty"`
	Machine machine  `json:"machine"`

	atLeast bool
}

// figure is a result with a single value.
func figure(unit string, n int, value, target float64) result {
	return result{Unit: unit, N: n, Value: round(value), Target: &target, Holds: value <= target}
}

// rate is a result with a single value that is to reach the target.
func rate(unit string, n int, value, target float64) result {
	return result{Unit: unit, N: n, Value: round(value), Target: &target, Holds: value >= target, atLeast: true}
}

// count is a result that no target is set for.
func count(unit string, n, value int) result {
	return result{Unit: unit, N: n, Value: float64(value), Holds: true}
}

// distribution is a result of samples, of which value picks what counts.
func distribution(unit string, samples []float64, target float64, value func(result) *float64) result {
	r := result{Unit: unit, N: len(samples), Target: &target,
		P50: percentile(samples, 50), P99: percentile(samples, 99), Max: percentile(samples, 100)}
	r.Value = *value(r)
	r.Holds = r.Value <= target
	return r
}

// above adds what the same took in the same run without the operator.
func (r result) above(floor []float64) result {
	r.Floor = percentile(floor, 50)
	ratio := round(*r.P50 / *r.Floor)
	r.Ratio = &ratio
	return r
}

func median(r result) *float64  { return r.P50 }
func p99(r result) *float64     { return r.P99 }
func largest(r result) *float64 { return r.Max }

// ratioTarget is how many times as long as without the operator anything may take.
const ratioTarget = 1.15

// comparison is a result of samples against samples that were taken in the same
// run without the operator. The ratio of the medians is held against ratioTarget.
func comparison(unit string, samples, floor []float64) result {
	r := distribution(unit, samples, ratioTarget, median).above(floor)
	r.Value, r.Holds = *r.Ratio, *r.Ratio <= ratioTarget
	return r
}

// percentile by nearest rank: the smallest sample that at least p percent of the
// samples do not exceed. There must be a sample.
func percentile(samples []float64, p float64) *float64 {
	sorted := slices.Sorted(slices.Values(samples))
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	value := round(sorted[max(rank, 1)-1])
	return &value
}

// round keeps three decimals, more than any of the figures is worth.
func round(value float64) float64 { return math.Round(value*1000) / 1000 }

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// printTable shows the results, ordered by name.
func printTable(out io.Writer, results []result) error {
	sorted := slices.SortedStableFunc(slices.Values(results), func(a, b result) int { return cmp.Compare(a.Name, b.Name) })
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tUNIT\tN\tP50\tP99\tMAX\tFLOOR\tVALUE\tTARGET\tHOLDS\tLOAD")
	for _, r := range sorted {
		holds := "yes"
		if !r.Holds {
			holds = "NO"
		}
		target := ""
		switch {
		case r.Target == nil:
			holds = ""
		case r.atLeast:
			target = "≥ " + short(*r.Target)
		default:
			target = "≤ " + short(*r.Target)
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%.1f\n", r.Name, r.Unit, r.N,
			optional(r.P50), optional(r.P99), optional(r.Max), optional(r.Floor), short(r.Value), target, holds, r.Machine.Load)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print the results: %w", err)
	}
	return nil
}

func optional(value *float64) string {
	if value == nil {
		return ""
	}
	return short(*value)
}

func short(value float64) string {
	return strconv.FormatFloat(math.Round(value*100)/100, 'f', -1, 64)
}
