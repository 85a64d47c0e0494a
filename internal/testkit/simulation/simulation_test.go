package simulation

import (
	"flag"
	"testing"
	"time"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "run this one schedule and print what happens")
	firstFlag = flag.Uint64("first", 1, "the seed to begin with")
	countFlag = flag.Uint64("schedules", 20000, "how many schedules to run")
)

// shortSchedules are run with -short, in a second or two.
const shortSchedules = 1000

func TestNoScheduleBreaksAPromise(t *testing.T) {
	if *seedFlag != 0 {
		w := run(*seedFlag, Rules{}, true)
		t.Log("\n" + w.Trace())
		if err := w.Violation(); err != nil {
			t.Fatal(err)
		}
		return
	}
	count := *countFlag
	if testing.Short() {
		count = min(count, shortSchedules)
	}
	began := time.Now()
	ready := 0
	for seed := *firstFlag; seed < *firstFlag+count; seed++ {
		w := Run(seed, Rules{})
		if err := w.Violation(); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, w.Trace())
		}
		if w.Ready() {
			ready++
		}
	}
	rate := float64(count) / time.Since(began).Seconds()
	t.Logf("%d schedules, of which %d ended ready and the rest at a named copy that is missing; %.0f a second", count, ready, rate)
	if ready*2 < int(count) {
		t.Error("most schedules end without a primary: the planner waits where it could act")
	}
}
