package simulation

import (
	"flag"
	"testing"
	"time"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/redis/plan"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "run this one schedule and print it")
	countFlag = flag.Int("schedules", 3000, "how many schedules to run")
)

func TestNoScheduleBreaksAPromise(t *testing.T) {
	if *seedFlag != 0 {
		w := Run(*seedFlag, true, nil, nil)
		t.Logf("\n%s", w.Trace())
		if w.violation != nil {
			t.Fatal(w.violation)
		}
		return
	}
	began := time.Now() //nolint:forbidigo // The figure is for people.
	ready, failures := 0, 0
	for seed := range uint64(*countFlag) {
		w := Run(seed+1, false, nil, nil)
		if w.violation != nil {
			failures++
			t.Errorf("seed %d: %v (run with -seed %d for its trace)", seed+1, w.violation, seed+1)
		}
		if failures == 20 {
			t.Fatal("too many")
		}
		if w.ready {
			ready++
		}
	}
	t.Logf("%d schedules, %d ended ready, %.0f schedules/s", *countFlag, ready, float64(*countFlag)/time.Since(began).Seconds()) //nolint:forbidigo // As above.
}

var _ = plan.Next
var _ = v1alpha1.ReasonNoCandidate
