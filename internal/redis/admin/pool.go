// Package admin talks to Redis processes. It is the only importer of the client
// library and speaks in the nouns of package redis.
package admin

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strconv"
	"sync"
	"time"

	"seang.org/operator/internal/naming"
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
type Credentials struct {
	User, Password string
	// Previous is the password before, with which a process that was not told of the
	// new one yet lets us in; empty if there is none.
	Previous string
}

// fit says that a connection that logged in with have needs no new login.
func (c Credentials) fit(have Credentials) bool {
	return have.User == c.User && (have.Password == c.Password || have.Password == c.Previous)
}

// Target is a process to connect to.
type Target struct {
	Key         Key
	Address     string // host:port
	Credentials Credentials
	// TLS says how the process is to prove who it is; nil for a connection without TLS.
	// There is no falling back from one to the other.
	TLS *tls.Config
}

// Address is the address of the member with an IP, with TLS or without.
func Address(ip string, secure bool) string {
	return net.JoinHostPort(ip, strconv.Itoa(redis.PortOf(secure)))
}

// Pool holds one connection to each member.
type Pool struct {
	// Leads confirms live that this process may still act; nil if there is no
	// other that could. It is asked once on each new connection.
	Leads func(context.Context) error
	// Dial opens each connection; nil for TCP. A test counts and cuts what is sent.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Over is put over each connection, inside of TLS, by a test that counts what is sent;
	// nil for nothing.
	Over    func(net.Conn) net.Conn
	changed func(Key)
	mu      sync.Mutex
	pods    map[cluster]map[Key]*pod
}

// cluster is a RedisCluster: a pass looks at the connections of one alone.
type cluster struct{ namespace, name string }

func clusterOf(key Key) cluster {
	name, _ := naming.ClusterOf(key.Pod)
	return cluster{key.Namespace, name}
}

// pod is what is known of a pod's process: its connection, nil if there is none;
// when it was heard last, and whether it was given up for its silence since.
type pod struct {
	member *Member
	heard  time.Time
	silent bool
}

// NewPool returns an empty pool. Changed is called, from another goroutine, at
// once when a connection breaks and when a member's replication state differs
// from what was last read.
func NewPool(changed func(Key)) *Pool {
	return &Pool{changed: changed, pods: map[cluster]map[Key]*pod{}}
}

// open opens a connection within the patience.
func (p *Pool) open(ctx context.Context, address string, patience time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, min(patience, dialTimeout))
	defer cancel()
	if p.Dial != nil {
		return p.Dial(ctx, "tcp", address)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", address)
}

// pod returns what is known of a pod. The caller holds the lock.
func (p *Pool) pod(key Key) *pod {
	of := clusterOf(key)
	if p.pods[of] == nil {
		p.pods[of] = map[Key]*pod{}
	}
	if p.pods[of][key] == nil {
		p.pods[of][key] = &pod{}
	}
	return p.pods[of][key]
}

// SilentFor is how long ago the pod's process was heard; 0 if it never was.
func (p *Pool) SilentFor(key Key) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.pods[clusterOf(key)][key]; known != nil && !known.heard.IsZero() {
		return time.Since(known.heard) //nolint:forbidigo // A fact of the connection, not of a pass.
	}
	return 0
}

func (p *Pool) heard(key Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.pod(key)
	known.heard, known.silent = time.Now(), false //nolint:forbidigo // A fact of the connection, not of a pass.
}

func (p *Pool) silent(key Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pod(key).silent = true
}

// Connect returns the connection to the target, dialling if there is none that
// lives. An error is of the kinds that errors.go names.
func (p *Pool) Connect(ctx context.Context, target Target) (*Member, error) {
	p.mu.Lock()
	known := p.pod(target.Key)
	m, patience := known.member, commandTimeout
	if known.silent {
		patience = silentTimeout
	}
	p.mu.Unlock()
	if m != nil && m.address == target.Address && target.Credentials.fit(m.credentials) && !m.broken() {
		m.proof.Store(target.TLS)
		return m, nil
	}
	if m != nil {
		p.drop(m)
	}
	m, err := p.dial(ctx, target, patience)
	if err != nil {
		if errors.Is(err, ErrUnreachable) {
			p.silent(target.Key)
		}
		return nil, err
	}
	m.announced.Store(true)
	p.mu.Lock()
	known = p.pod(target.Key)
	previous := known.member
	known.member = m
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

// dial connects with the password or, where that is not known yet, with the one before.
func (p *Pool) dial(ctx context.Context, target Target, patience time.Duration) (*Member, error) {
	m, err := dial(ctx, target, p, patience)
	if errors.Is(err, ErrAuth) && target.Credentials.Previous != "" {
		target.Credentials = Credentials{User: target.Credentials.User, Password: target.Credentials.Previous}
		return dial(ctx, target, p, patience)
	}
	return m, err
}

func (p *Pool) drop(m *Member) {
	p.mu.Lock()
	if known := p.pod(m.key); known.member == m {
		known.member = nil
	}
	p.mu.Unlock()
	m.close()
}

// Forget closes the connections to the pods of a cluster.
func (p *Pool) Forget(namespace, name string) { p.Retain(namespace, name, nil) }

// Retain closes the connections to the pods of a cluster that are not in keep.
func (p *Pool) Retain(namespace, name string, keep map[Key]bool) {
	of := cluster{namespace, name}
	p.mu.Lock()
	closing := p.remove(of, keep)
	p.mu.Unlock()
	closeAll(closing)
}

// Close closes every connection.
func (p *Pool) Close() {
	var closing []*Member
	p.mu.Lock()
	for of := range p.pods {
		closing = append(closing, p.remove(of, nil)...)
	}
	p.mu.Unlock()
	closeAll(closing)
}

// remove drops the pods of a cluster that are not in keep, and returns their
// connections. The caller holds the lock.
func (p *Pool) remove(of cluster, keep map[Key]bool) []*Member {
	var removed []*Member
	for key, known := range p.pods[of] {
		if keep[key] {
			continue
		}
		if known.member != nil {
			removed = append(removed, known.member)
		}
		delete(p.pods[of], key)
	}
	if len(p.pods[of]) == 0 {
		delete(p.pods, of)
	}
	return removed
}

func closeAll(members []*Member) {
	for _, m := range members {
		m.close()
	}
}
