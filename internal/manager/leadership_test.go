package manager

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	clocktesting "k8s.io/utils/clock/testing"
)

// lock is a Lease that does not change.
type lock struct {
	resourcelock.Interface
	identity string
	record   resourcelock.LeaderElectionRecord
	took     func()
	refusal  error
}

func (l lock) Identity() string { return l.identity }
func (l lock) Describe() string { return "the Lease" }
func (l lock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &l.record, nil, nil
}

// Update calls took, which lets the time of a write pass.
func (l lock) Update(context.Context, resourcelock.LeaderElectionRecord) error {
	l.took()
	return l.refusal
}

func TestALeaseCountsWhileEnoughOfItIsLeft(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		holder  string
		age     time.Duration
		left    time.Duration
		refused bool
	}{
		"it is ours and fresh":            {holder: "me", left: 2 * time.Second},
		"it is old, and no more is asked": {holder: "me", age: leaseDuration},
		"it is over":                      {holder: "me", age: leaseDuration + time.Millisecond, refused: true},
		"just enough is left":             {holder: "me", age: leaseDuration - 2*time.Second, left: 2 * time.Second},
		"a little too little is left":     {holder: "me", age: leaseDuration - 2*time.Second + time.Millisecond, left: 2 * time.Second, refused: true},
		"another has it":                  {holder: "another", refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			now := clocktesting.NewFakePassiveClock(noon)
			// The time in the Lease is what a clock says that anybody may set.
			held := lock{identity: "me", took: func() {}, record: resourcelock.LeaderElectionRecord{HolderIdentity: c.holder, RenewTime: metav1.NewTime(noon.Add(time.Hour))}}
			l := &leadership{lock: &renewals{Interface: held, clock: now}, reader: held}
			if err := l.lock.Update(t.Context(), held.record); err != nil {
				t.Fatal(err)
			}
			now.SetTime(noon.Add(c.age))
			if err := l.confirm(t.Context(), c.left); errors.Is(err, errNotLeading) != c.refused {
				t.Errorf("got %v, want refused %t", err, c.refused)
			}
		})
	}
}

func TestARenewalCountsFromWhenItWasBegun(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	now := clocktesting.NewFakePassiveClock(noon)
	held := lock{identity: "me", record: resourcelock.LeaderElectionRecord{HolderIdentity: "me", RenewTime: metav1.NewTime(noon)}}
	held.took = func() { now.SetTime(now.Now().Add(time.Second)) }
	r := &renewals{Interface: held, clock: now}
	l := &leadership{lock: r, reader: held}
	if err := l.confirm(t.Context(), 0); !errors.Is(err, errNotLeading) {
		t.Errorf("a Lease that this process never wrote: got %v, want that it does not count", err)
	}
	if err := r.Update(t.Context(), held.record); err != nil || r.age() != time.Second {
		t.Errorf("got %v and a renewal that is %s old, want 1 s", err, r.age())
	}
	held.refusal = errors.New("the answer was lost")
	r.Interface = held
	if err := r.Update(t.Context(), held.record); err == nil || r.age() != 2*time.Second {
		t.Errorf("after an answer that was lost: got %v and a renewal that is %s old, want the first one, 2 s", err, r.age())
	}
}
