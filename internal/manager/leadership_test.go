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
}

func (l lock) Identity() string { return l.identity }
func (l lock) Describe() string { return "the Lease" }
func (l lock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &l.record, nil, nil
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
			held := lock{identity: "me", record: resourcelock.LeaderElectionRecord{HolderIdentity: c.holder, RenewTime: metav1.NewTime(noon.Add(-c.age))}}
			l := &leadership{lock: held, reader: held, clock: clocktesting.NewFakePassiveClock(noon)}
			if err := l.confirm(t.Context(), c.left); errors.Is(err, errNotLeading) != c.refused {
				t.Errorf("got %v, want refused %t", err, c.refused)
			}
		})
	}
}
