package oracle

import (
	"testing"
	"time"
)

func TestReadsAreJudgedAgainstWhatWasConfirmed(t *testing.T) {
	start := time.Now()
	at := start.Add
	// 0, 2 and 3 are confirmed one second after the other; 1 never is.
	w := &writer{key: "k", confirmed: []int64{0, 2, 3}, confirmedAt: []time.Time{at(0), at(time.Second), at(2 * time.Second)}}
	for name, tc := range map[string]struct {
		reader               reader
		stale                int
		staleness            time.Duration
		backward, confirmed  int
		wantErr, wantPlanned bool
	}{
		"the newest is fresh for ever":       {reader: reader{samples: []sample{{"k", 3, at(time.Hour)}}}},
		"the one before is not":              {reader: reader{samples: []sample{{"k", 2, at(time.Hour)}}}, stale: 1, staleness: time.Hour - 2*time.Second, wantErr: true, wantPlanned: true},
		"a little old is allowed":            {reader: reader{samples: []sample{{"k", 2, at(3 * time.Second)}}}, staleness: time.Second},
		"an empty list lacks the first":      {reader: reader{samples: []sample{{"k", 3, at(2 * time.Second)}, {"k", -1, at(time.Minute)}}}, stale: 1, staleness: time.Minute, wantErr: true, wantPlanned: true},
		"another's numbers do not matter":    {reader: reader{samples: []sample{{"other", 0, at(time.Hour)}}, back: []backward{{"other", 3, 0}}}},
		"back behind one that was confirmed": {reader: reader{back: []backward{{"k", 2, 1}}}, backward: 1, confirmed: 1, wantErr: true, wantPlanned: true},
		"back behind one that was not":       {reader: reader{back: []backward{{"k", 1, 0}}}, backward: 1, wantPlanned: true},
	} {
		t.Run(name, func(t *testing.T) {
			report := Report{Unconfirmed: 1}
			tc.reader.judge(w, &report)
			if report.Stale != tc.stale || report.Staleness != tc.staleness || report.Backward != tc.backward || report.BackwardConfirmed != tc.confirmed {
				t.Errorf("the report is %+v", report)
			}
			for planned, want := range map[bool]bool{false: tc.wantErr, true: tc.wantPlanned} {
				if err := report.Err(planned); (err != nil) != want {
					t.Errorf("Err(%t) = %v, want an error: %t", planned, err, want)
				}
			}
		})
	}
}
