package manager

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/leaderelection"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"seang.org/operator/internal/naming"
)

// leadership is the Lease for which the replicas of the operator compete.
type leadership struct {
	// lock is what the manager competes with.
	lock *renewals
	// reader reads the Lease; it is one of its own since a lock remembers what it
	// read, and mu guards it.
	mu     sync.Mutex
	reader resourcelock.Interface
}

// renewals is a lock that remembers when this process wrote the Lease for the last
// time. Others wait from when they saw that, so it is never too late; and it stands on
// the clock that nobody sets, unlike the time in the Lease.
type renewals struct {
	resourcelock.Interface
	clock clock.PassiveClock
	mu    sync.Mutex
	last  time.Time
}

// Create and Update write the Lease. One whose answer is lost counts as not written.
func (r *renewals) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return r.write(ctx, record, r.Interface.Create)
}

func (r *renewals) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return r.write(ctx, record, r.Interface.Update)
}

func (r *renewals) write(ctx context.Context, record resourcelock.LeaderElectionRecord, write func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	began := r.clock.Now()
	if err := write(ctx, record); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = began
	return nil
}

// age of the last renewal; that of a Lease which was never written is without bound.
func (r *renewals) age() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last.IsZero() {
		return math.MaxInt64
	}
	return r.clock.Since(r.last)
}

// errNotLeading is returned where the Lease names another, or ends too soon.
var errNotLeading = errors.New("this process does not hold the Lease, or not for long enough")

func newLeadership(cfg *rest.Config, o Options) (*leadership, error) {
	lock := func() (resourcelock.Interface, error) {
		return leaderelection.NewResourceLock(rest.CopyConfig(cfg), silent{}, leaderelection.Options{
			LeaderElection: true, LeaderElectionID: naming.LeaderElectionID, LeaderElectionNamespace: o.LeaderNamespace, RenewDeadline: renewDeadline})
	}
	writer, err := lock()
	if err != nil {
		return nil, err
	}
	reader, err := lock()
	return &leadership{lock: &renewals{Interface: writer, clock: clock.RealClock{}}, reader: reader}, err
}

// confirm reads the Lease live, and returns an error unless this process holds it for
// some time more: no other can act before that is over.
func (l *leadership) confirm(ctx context.Context, left time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	held, _, err := l.reader.Get(ctx)
	age := l.lock.age()
	switch {
	case err != nil:
		return fmt.Errorf("read the Lease %s: %w", l.lock.Describe(), err)
	case held.HolderIdentity != l.lock.Identity():
		return fmt.Errorf("%s: %w: %q", l.lock.Describe(), errNotLeading, held.HolderIdentity)
	case age > leaseDuration-left:
		return fmt.Errorf("%s: %w: it was renewed %s ago, and %s must be left", l.lock.Describe(), errNotLeading, age, left)
	}
	return nil
}

// silent sends no Events of elections: the Lease tells who leads.
type silent struct{}

func (silent) GetEventRecorderFor(string) record.EventRecorder { return nil }

func (silent) GetEventRecorder(string) recorder.EventRecorder { return nil }
