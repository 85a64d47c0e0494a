package manager

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
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
}

// errNotLeading is returned where the Lease names another.
var errNotLeading = errors.New("the Lease is held by another")

func newLeadership(cfg *rest.Config, o Options) (*leadership, error) {
	lock := func() (resourcelock.Interface, error) {
		return leaderelection.NewResourceLock(rest.CopyConfig(cfg), silent{}, leaderelection.Options{
			LeaderElection: true, LeaderElectionID: naming.LeaderElectionID, LeaderElectionNamespace: o.LeaderNamespace, RenewDeadline: renewDeadline})
	}
	l := &leadership{}
	var err error
	if l.lock, err = lock(); err != nil {
		return nil, err
	}
	l.reader, err = lock()
	return l, err
}

// confirm reads the Lease live, and returns an error unless this process holds it.
func (l *leadership) confirm(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	held, _, err := l.reader.Get(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("read the Lease %s: %w", l.lock.Describe(), err)
	case held.HolderIdentity != l.lock.Identity():
		return fmt.Errorf("%s: %w: %q", l.lock.Describe(), errNotLeading, held.HolderIdentity)
	}
	return nil
}

// silent sends no Events of elections: the Lease tells who leads.
type silent struct{}

func (silent) GetEventRecorderFor(string) record.EventRecorder { return nil }

func (silent) GetEventRecorder(string) recorder.EventRecorder { return nil }
