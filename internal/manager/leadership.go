package manager

import (
	"context"
	"errors"
	"fmt"
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
	lock resourcelock.Interface
	// reader reads the Lease; it is one of its own since a lock remembers what it
	// read, and mu guards it.
	mu     sync.Mutex
	reader resourcelock.Interface
	// clock of this process, which also writes the times into the Lease.
	clock clock.PassiveClock
}

// errNotLeading is returned where the Lease names another, or ends too soon.
var errNotLeading = errors.New("this process does not hold the Lease, or not for long enough")

func newLeadership(cfg *rest.Config, o Options) (*leadership, error) {
	lock := func() (resourcelock.Interface, error) {
		return leaderelection.NewResourceLock(rest.CopyConfig(cfg), silent{}, leaderelection.Options{
			LeaderElection: true, LeaderElectionID: naming.LeaderElectionID, LeaderElectionNamespace: o.LeaderNamespace, RenewDeadline: renewDeadline})
	}
	l := &leadership{clock: clock.RealClock{}}
	var err error
	if l.lock, err = lock(); err != nil {
		return nil, err
	}
	l.reader, err = lock()
	return l, err
}

// confirm reads the Lease live, and returns an error unless this process holds it for
// some time more: no other can act before that is over.
func (l *leadership) confirm(ctx context.Context, left time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	held, _, err := l.reader.Get(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("read the Lease %s: %w", l.lock.Describe(), err)
	case held.HolderIdentity != l.lock.Identity():
		return fmt.Errorf("%s: %w: %q", l.lock.Describe(), errNotLeading, held.HolderIdentity)
	case held.RenewTime.Add(leaseDuration - left).Before(l.clock.Now()):
		return fmt.Errorf("%s: %w: it was not renewed since %s, and %s must be left", l.lock.Describe(), errNotLeading, held.RenewTime.UTC().Format(time.TimeOnly), left)
	}
	return nil
}

// silent sends no Events of elections: the Lease tells who leads.
type silent struct{}

func (silent) GetEventRecorderFor(string) record.EventRecorder { return nil }

func (silent) GetEventRecorder(string) recorder.EventRecorder { return nil }
