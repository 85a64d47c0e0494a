// Package admin talks to Redis processes. It is the only importer of the client
// library and speaks in the nouns of package redis.
package admin

import (
	"context"
	"errors"
	"maps"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"seang.org/operator/internal/redis"
)

// Limits of the connections.
const (
	// dialTimeout bounds a dial: longer than a pod network needs, shorter than
	// a pass can wait.
	dialTimeout = time.Second
	// commandTimeout bounds each command.
	commandTimeout = 2 * time.Second
	// probeInterval is how often an idle member is asked for its replication
	// state, and probeTimeout how long the reply may take: a process that hangs
	// is noticed 2 to 3 s after. Forks and slow commands look alike for a while.
	probeInterval = time.Second
	probeTimeout  = 2 * time.Second
	// silentTimeout bounds a dial to a process that was silent before: passes
	// go on meanwhile only if they do not wait for it.
	silentTimeout = 500 * time.Millisecond
)

// Key identifies the pod of a member.
type Key struct{ Namespace, Pod, UID string }

// Credentials log a connection in.
type Credentials struct{ User, Password string }

// Target is a process to connect to.
type Target struct {
	Key         Key
	Address     string // host:port
	Credentials Credentials
}

// Address is the address of the member with an IP.
func Address(ip string) string { return net.JoinHostPort(ip, strconv.Itoa(redis.Port)) }

// Pool holds one connection to each member.
type Pool struct {
	changed func(Key)
	mu      sync.Mutex
	members map[Key]*Member
	hearing map[Key]hearing
}

// hearing is when a pod's process was heard last, and whether it was given up
// for its silence since.
type hearing struct {
	last   time.Time
	silent bool
}

// NewPool returns an empty pool. Changed is called, from another goroutine, at
// once when a connection breaks and when a member's replication state differs
// from what was last read.
func NewPool(changed func(Key)) *Pool {
	return &Pool{changed: changed, members: map[Key]*Member{}, hearing: map[Key]hearing{}}
}

// SilentFor is how long ago the pod's process was heard; 0 if it never was.
func (p *Pool) SilentFor(key Key) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last := p.hearing[key].last; !last.IsZero() {
		return time.Since(last)
	}
	return 0
}

func (p *Pool) heard(key Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hearing[key] = hearing{last: time.Now()}
}

func (p *Pool) silent(key Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hearing[key] = hearing{last: p.hearing[key].last, silent: true}
}

// Connect returns the connection to the target, dialling if there is none that
// lives. An error is of the kinds that errors.go names.
func (p *Pool) Connect(ctx context.Context, target Target) (*Member, error) {
	p.mu.Lock()
	m := p.members[target.Key]
	patience := commandTimeout
	if p.hearing[target.Key].silent {
		patience = silentTimeout
	}
	p.mu.Unlock()
	if m != nil && m.address == target.Address && m.credentials == target.Credentials && !m.broken() {
		return m, nil
	}
	if m != nil {
		p.drop(m)
	}
	m, err := dial(ctx, target, p, patience)
	if err != nil {
		if errors.Is(err, ErrUnreachable) {
			p.silent(target.Key)
		}
		return nil, err
	}
	m.announced.Store(true)
	p.mu.Lock()
	previous := p.members[target.Key]
	p.members[target.Key] = m
	p.mu.Unlock()
	if previous != nil {
		// Another pass dialled at the same time.
		previous.close()
	}
	if m.broken() {
		// It ended before there was anybody to tell.
		return nil, classify(target.Address, net.ErrClosed)
	}
	go m.watch() //nolint:gosec,contextcheck // It outlives the pass that connected.
	return m, nil
}

func (p *Pool) drop(m *Member) {
	p.mu.Lock()
	if p.members[m.key] == m {
		delete(p.members, m.key)
	}
	p.mu.Unlock()
	m.close()
}

// Forget closes the connections to the pods of a cluster.
func (p *Pool) Forget(namespace, cluster string) {
	p.closeIf(func(key Key) bool {
		return key.Namespace == namespace && strings.HasPrefix(key.Pod, cluster+"-") &&
			!strings.Contains(strings.TrimPrefix(key.Pod, cluster+"-"), "-")
	})
}

// Retain closes the connections to the pods of a cluster that are not in keep.
func (p *Pool) Retain(namespace, cluster string, keep map[Key]bool) {
	p.closeIf(func(key Key) bool {
		return key.Namespace == namespace && strings.HasPrefix(key.Pod, cluster+"-") &&
			!strings.Contains(strings.TrimPrefix(key.Pod, cluster+"-"), "-") && !keep[key]
	})
}

// Close closes every connection.
func (p *Pool) Close() { p.closeIf(func(Key) bool { return true }) }

func (p *Pool) closeIf(match func(Key) bool) {
	p.mu.Lock()
	var closing []*Member
	for key, m := range p.members {
		if match(key) {
			closing = append(closing, m)
			delete(p.members, key)
		}
	}
	maps.DeleteFunc(p.hearing, func(key Key, _ hearing) bool { return match(key) })
	p.mu.Unlock()
	for _, m := range closing {
		m.close()
	}
}
