package simulation

import (
	"flag"
	"testing"
	"time"

	"seang.org/operator/internal/redis/plan"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "run this one schedule and print what happens")
	countFlag = flag.Uint64("schedules", 3000, "how many schedules to run")
)

func TestNoScheduleBreaksAPromise(t *testing.T) {
	if *seedFlag != 0 {
		w := run(*seedFlag, Rules{}, true)
		t.Log("\n" + w.Trace())
		if err := w.Violation(); err != nil {
			t.Fatal(err)
		}
		return
	}
	began := time.Now()
	ready := 0
	for seed := uint64(1); seed <= *countFlag; seed++ {
		w := Run(seed, Rules{})
		if err := w.Violation(); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, w.Trace())
		}
		if w.Ready() {
			ready++
		}
	}
	rate := float64(*countFlag) / time.Since(began).Seconds()
	t.Logf("%d schedules, of which %d ended ready and the rest at a named copy that is missing; %.0f a second", *countFlag, ready, rate)
	if ready*2 < int(*countFlag) {
		t.Error("most schedules end without a primary: the planner waits where it could act")
	}
}

func TestEachRuleIsNeeded(t *testing.T) {
	for name, rules := range map[string]Rules{
		"fencing: a silent process is taken for one that ended": {Facts: func(f *plan.Facts) {
			for i := range f.Members {
				if m := &f.Members[i]; m.Info == nil && m.PodUID != "" {
					m.Proof = plan.ProofRefused
				}
			}
		}},
		"lease: it is taken to have run out at once": {Facts: func(f *plan.Facts) {
			if f.DetachedFor > 0 || f.SilentFor > 0 {
				f.DetachedFor = plan.Lease
			}
		}},
		"hang: a lease is taken to bind a process that was stopped": {Facts: func(f *plan.Facts) {
			for i := range f.Members {
				f.Members[i].Hangs = false
			}
		}},
		"settle: a silent holder is taken for one that ended": {Facts: func(f *plan.Facts) {
			for i := range f.Members {
				if m := &f.Members[i]; m.Info == nil && m.PodUID != "" && f.Record != nil && m.Pod != f.Record.Primary.Pod {
					m.Proof = plan.ProofRefused
				}
			}
		}},
		"record first: the record is written after the steps that depend on it": {Steps: func(steps []plan.Step) []plan.Step {
			var first, last []plan.Step
			for _, step := range steps {
				if _, ok := step.(plan.WriteRecord); ok {
					last = append(last, step)
				} else {
					first = append(first, step)
				}
			}
			return append(first, last...)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := uint64(1); seed <= 3000; seed++ {
				if w := Run(seed, rules); w.Violation() != nil {
					t.Logf("without it seed %d finds: %v", seed, w.Violation())
					return
				}
			}
			t.Error("without it nothing goes wrong: the rule, or the model, is not worth its name")
		})
	}
}
