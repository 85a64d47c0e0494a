package oracle

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	testingclock "k8s.io/utils/clock/testing"

	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/admin"
	"seang.org/operator/internal/redis/conf"
	"seang.org/operator/internal/testkit/redisserver"
)

func TestCompareFindsWhatIsLost(t *testing.T) {
	for name, tc := range map[string]struct {
		writer writer
		found  []string
		want   Report
	}{
		"everything is there": {
			writer: writer{confirmed: []int64{0, 2}, unconfirmed: []int64{1}},
			found:  []string{"0", "1", "2"},
			want:   Report{Confirmed: 2, Unconfirmed: 1},
		},
		"the tail is gone": {
			writer: writer{confirmed: []int64{0}, unconfirmed: []int64{1, 2}},
			found:  []string{"0"},
			want:   Report{Confirmed: 1, Unconfirmed: 2, LostUnconfirmed: 2, Lost: []string{"[1]", "[2]"}},
		},
		"a confirmed write is gone": {
			writer: writer{confirmed: []int64{0, 1}},
			found:  []string{"1"},
			want:   Report{Confirmed: 2, LostConfirmed: 1, Lost: []string{"[0]"}},
		},
		"a write without an answer may be there": {
			writer: writer{unconfirmed: []int64{0}, unanswered: 2},
			found:  []string{"0", "1"},
			want:   Report{Unconfirmed: 1, Unanswered: 2},
		},
		"a value is there twice": {
			writer: writer{unconfirmed: []int64{0, 1}},
			found:  []string{"0", "1", "1"},
			want:   Report{Unconfirmed: 2, Misplaced: 1},
		},
		"a value came back after a later one": {
			writer: writer{unconfirmed: []int64{0, 1}},
			found:  []string{"1", "0"},
			want:   Report{Unconfirmed: 2, Misplaced: 1, LostUnconfirmed: 1, Lost: []string{"[0]"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got Report
			tc.writer.compare(tc.found, &got)
			if diff := cmp.Diff(tc.want, got, cmp.Transformer("keys", func(lost []string) int { return len(lost) })); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReportErrTellsPromisedFromUnpromisedLoss(t *testing.T) {
	for name, tc := range map[string]struct {
		report           Report
		planned, wantErr bool
	}{
		"nothing is lost":                                      {Report{Unconfirmed: 9}, true, false},
		"a confirmed write may never be lost":                  {Report{Confirmed: 9, LostConfirmed: 1}, false, true},
		"a crash may lose the unconfirmed tail":                {Report{Unconfirmed: 9, LostUnconfirmed: 1}, false, false},
		"a planned move may not":                               {Report{Unconfirmed: 9, LostUnconfirmed: 1}, true, true},
		"no order may be changed":                              {Report{Unconfirmed: 9, Misplaced: 1}, false, true},
		"without an acknowledged write nothing has been shown": {Report{}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tc.report.Err(tc.planned); (err != nil) != tc.wantErr {
				t.Errorf("Err(%t) = %v, want an error: %t", tc.planned, err, tc.wantErr)
			}
		})
	}
}

// TestOracleSeesALostTail runs on a real server that loses its memory.
func TestOracleSeesALostTail(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	server := redisserver.Start(t, "redis-8.0", conf.Input{MemoryLimit: 64 << 20})
	promote(ctx, t, server)
	target := Target{Address: server.Address(), Username: naming.UserDefault, Password: redisserver.Passwords.Default}

	o := Start(ctx, target, Options{Name: "kept", Plain: 2, Confirming: 1, Pace: time.Millisecond, Replicas: &target})
	if err := o.Await(ctx, 20); err != nil {
		t.Fatal(err)
	}
	report, err := o.Verify(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := report.Err(true); err != nil {
		t.Errorf("nothing has happened to the server: %v", err)
	}

	o = Start(ctx, target, Options{Name: "lost", Plain: 1, Pace: time.Millisecond})
	if err := o.Await(ctx, 10); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	server.Run(t)
	promote(ctx, t, server)
	o.Mark()
	if err := o.Await(ctx, 10); err != nil {
		t.Fatal(err)
	}
	if report, err = o.Verify(ctx); err != nil {
		t.Fatal(err)
	}
	if report.LostUnconfirmed < 10 || report.Err(true) == nil {
		t.Errorf("the server has lost its memory, and the report is %+v", report)
	}
}

func promote(ctx context.Context, t *testing.T, server *redisserver.Server) {
	t.Helper()
	pool := admin.NewPool(func(admin.Key) {})
	t.Cleanup(pool.Close)
	member, err := pool.Connect(ctx, admin.Target{Address: server.Address(),
		Credentials: admin.Credentials{User: naming.UserOperator, Password: redisserver.Passwords.Operator}})
	if err != nil {
		t.Fatal(err)
	}
	if err := member.Promote(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestTheFirstWriteAfterAFaultIsOnANewConnection(t *testing.T) {
	fault := time.Now()
	before, after, later := fault.Add(-time.Second), fault.Add(time.Millisecond), fault.Add(2*time.Millisecond)
	now := testingclock.NewFakePassiveClock(fault.Add(10 * time.Millisecond))
	o := &Oracle{clock: now}
	acknowledged := func(dialled time.Time, at time.Duration) {
		now.SetTime(fault.Add(at))
		o.acknowledged(dialled)
	}
	acknowledged(before, time.Millisecond)
	acknowledged(time.Time{}, 5*time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := o.FirstSince(ctx, fault); err == nil {
		t.Errorf("only an old connection was acknowledged: got %v, want an error", got)
	}
	acknowledged(later, 20*time.Millisecond)
	acknowledged(after, 30*time.Millisecond)
	got, err := o.FirstSince(t.Context(), fault)
	if want := fault.Add(20 * time.Millisecond); err != nil || !got.Equal(want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

func TestReportsAddUp(t *testing.T) {
	total := Report{Confirmed: 1, LostConfirmed: 1, Lost: []string{"a[0]"}}
	total.Add(Report{Confirmed: 2, Unconfirmed: 3, LostUnconfirmed: 1, Unanswered: 4, Misplaced: 5,
		Refused: map[string]int{"READONLY": 6}, Lost: []string{"b[1]"}})
	want := Report{Confirmed: 3, LostConfirmed: 1, Unconfirmed: 3, LostUnconfirmed: 1, Unanswered: 4, Misplaced: 5,
		Refused: map[string]int{"READONLY": 6}, Lost: []string{"a[0]", "b[1]"}}
	if diff := cmp.Diff(want, total); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
