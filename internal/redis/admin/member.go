package admin

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis"
)

// nowhere is an address that nobody listens on: a replica of it follows nobody.
const (
	nowhereHost = "127.0.0.1"
	nowherePort = "1"
)

// Member is the one authenticated connection to a process. It is never dialled
// again: once broken it stays so.
type Member struct {
	key         Key
	address     string
	credentials Credentials
	pool        *Pool
	client      rueidis.Client
	runID       string
	serving     atomic.Bool
	minReplicas atomic.Int64                      // as it was set last
	aside       atomic.Bool                       // snapshots go to the file that is kept aside
	listening   atomic.Pointer[map[string]string] // directives of TLS, as they were read or set last
	proof       atomic.Pointer[tls.Config]        // by which the process proves now who it is
	leaf        atomic.Pointer[x509.Certificate]  // that it showed last
	announced   atomic.Bool                       // Connect returned it
	dead        atomic.Bool
	done        chan struct{}
	ended       sync.Once
	state       atomic.Pointer[string] // fingerprint of the replication state last read
}

// Sizes of what the client library keeps for each connection: replies are small
// and few are under way. Its own defaults take more than a megabyte.
const (
	bufferBytes = 8 << 10
	ringScale   = 4
)

// dial connects, logs in and learns the process's run ID, each within patience.
func dial(ctx context.Context, target Target, pool *Pool, patience time.Duration) (*Member, error) {
	conn, err := pool.open(ctx, target.Address, patience)
	if err != nil {
		return nil, classify(target.Address, err)
	}
	login, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	secured, leaf, err := pool.secure(login, conn, target)
	if err != nil {
		if ctx.Err() == nil && login.Err() != nil {
			return nil, fmt.Errorf("redis at %s %w", target.Address, ErrHangs)
		}
		return nil, err
	}
	m, err := logIn(login, target, pool, secured)
	if m != nil {
		m.leaf.Store(leaf)
		m.proof.Store(target.TLS)
	}
	if err != nil && ctx.Err() == nil && login.Err() != nil {
		return nil, fmt.Errorf("redis at %s %w", target.Address, ErrHangs)
	}
	return m, err
}

func logIn(ctx context.Context, target Target, pool *Pool, conn net.Conn) (*Member, error) {
	m := &Member{key: target.Key, address: target.Address, credentials: target.Credentials, pool: pool, done: make(chan struct{})}
	// The library's login knows no context.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	var err error
	m.client, err = rueidis.NewClient(m.options(conn))
	if err != nil {
		_ = conn.Close()
		return nil, classify(target.Address, cmp.Or(ctx.Err(), err))
	}
	if !stop() {
		m.close()
		return nil, classify(target.Address, ctx.Err())
	}
	info, err := m.Info(ctx)
	if err != nil {
		m.close()
		return nil, err
	}
	m.runID = info.RunID
	if err := m.takeOver(ctx); err != nil {
		m.close()
		return nil, err
	}
	serve, err := m.ConfigGet(ctx, serveStale, minReplicas, snapshotFile)
	if err != nil {
		m.close()
		return nil, err
	}
	m.serving.Store(serve[serveStale] == "yes")
	n, err := strconv.ParseInt(serve[minReplicas], 10, 32)
	if err != nil {
		m.close()
		return nil, fmt.Errorf("redis at %s %w: %s: %w", target.Address, ErrReplied, minReplicas, err)
	}
	m.minReplicas.Store(n)
	m.aside.Store(serve[snapshotFile] == naming.FileAside)
	if target.TLS != nil {
		if err := m.readListening(ctx); err != nil {
			m.close()
			return nil, err
		}
	}
	return m, nil
}

// options make the library use the one connection, never dial another, never
// repeat a command and send nothing of its own: watch asks often enough.
func (m *Member) options(conn net.Conn) rueidis.ClientOption {
	var used atomic.Bool
	return rueidis.ClientOption{
		InitAddress:         []string{m.address},
		Username:            m.credentials.User,
		Password:            m.credentials.Password,
		ClientName:          "redis-operator",
		ClientSetInfo:       rueidis.DisableClientSetInfo,
		ClientNoEvict:       true,
		ForceSingleClient:   true,
		AlwaysPipelining:    true,
		DisableRetry:        true,
		DisableCache:        true,
		PipelineMultiplex:   -1,
		RingScaleEachConn:   ringScale,
		ReadBufferEachConn:  bufferBytes,
		WriteBufferEachConn: bufferBytes,
		ConnWriteTimeout:    probeTimeout,
		Dialer:              net.Dialer{Timeout: commandTimeout, KeepAlive: -1},
		DialCtxFn: func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
			if used.Swap(true) {
				return nil, net.ErrClosed
			}
			return &watchedConn{Conn: conn, ended: m.end}, nil
		},
	}
}

// watchedConn tells at once when the peer ends the connection: the library
// reads all the time.
type watchedConn struct {
	net.Conn
	ended func()
}

func (c *watchedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		c.ended()
	}
	return n, err
}

// end notes that the connection broke and, if it was in use, tells the pool's
// owner, once.
func (m *Member) end() {
	m.ended.Do(func() {
		closedByUs := m.dead.Swap(true)
		close(m.done)
		if !closedByUs && m.announced.Load() {
			go m.pool.changed(m.key)
		}
	})
}

func (m *Member) broken() bool { return m.dead.Load() }

// close ends the connection without telling anybody.
func (m *Member) close() {
	m.dead.Store(true)
	m.client.Close()
	m.end()
}

// watch asks the process for its replication state once it was not heard for a
// while, tells of a change, and gives up a process that is silent.
func (m *Member) watch() {
	timer := time.NewTimer(probeInterval)
	defer timer.Stop()
	for {
		select {
		case <-m.done:
			return
		case <-timer.C:
		}
		if heard := m.pool.SilentFor(m.key); heard < probeInterval {
			// A pass has asked meanwhile, and saw what there is to see.
			timer.Reset(probeInterval - heard)
			continue
		}
		timer.Reset(probeInterval)
		before := m.state.Load()
		ctx, cancel := context.WithTimeout(context.Background(), probeTimeout) //nolint:forbidigo // The watch outlives every pass.
		_, err := m.info(ctx)
		cancel()
		switch {
		case errors.Is(err, ErrUnreachable):
			m.pool.silent(m.key)
			m.end()
			m.client.Close()
			return
		case err == nil && before != nil && *before != *m.state.Load():
			m.pool.changed(m.key)
		}
	}
}

// serveStale is the directive by which a replica answers reads without a link.
const serveStale = "replica-serve-stale-data"

// minReplicas is the directive by which a primary refuses writes without replicas.
const minReplicas = "min-replicas-to-write"

// snapshotFile is the directive that names the file of snapshots.
const snapshotFile = "dbfilename"

// Serving says that the process answers reads while its link is down.
func (m *Member) Serving() bool { return m.serving.Load() }

// Serve makes the process answer reads while its link is down.
func (m *Member) Serve(ctx context.Context) error {
	err := m.ConfigSet(ctx, map[string]string{serveStale: "yes"})
	if err == nil {
		m.serving.Store(true)
	}
	return err
}

// RunID of the process that the connection leads to.
func (m *Member) RunID() string { return m.runID }

// Info reads what the process says of itself.
func (m *Member) Info(ctx context.Context) (redis.Info, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	return m.info(ctx)
}

func (m *Member) info(ctx context.Context) (redis.Info, error) {
	command := m.client.B().Info().Section("server", "replication", "keyspace", "memory", "persistence").Build()
	reply, err := m.client.Do(ctx, command).ToString()
	if err != nil {
		return redis.Info{}, classify(m.address, err)
	}
	m.pool.heard(m.key)
	info, err := redis.ParseInfo(reply)
	if err != nil {
		return redis.Info{}, fmt.Errorf("redis at %s %w: %w", m.address, ErrReplied, err)
	}
	if info.MinReplicas > 0 {
		// INFO says that there is a limit, not which.
		info.MinReplicas = max(1, int(m.minReplicas.Load()))
	}
	m.state.Store(fingerprint(&info))
	return info, nil
}

// fingerprint is what of the replication state is worth a look when it changes.
func fingerprint(info *redis.Info) *string {
	var b strings.Builder
	fmt.Fprint(&b, info.Role, info.PrimaryHost, info.LinkUp, info.ReplicationID, info.MinReplicas, info.MaxMemory, info.Loading)
	for _, replica := range info.Replicas {
		fmt.Fprint(&b, replica.IP, replica.State)
	}
	text := b.String()
	return &text
}

func (m *Member) do(ctx context.Context, words ...string) error {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	return classify(m.address, m.client.Do(ctx, m.client.B().Arbitrary(words...).Build()).Error())
}

// Promote makes the process a primary.
func (m *Member) Promote(ctx context.Context) error { return m.do(ctx, "REPLICAOF", "NO", "ONE") }

// Follow makes the process a replica of the member with that IP, with TLS or without.
func (m *Member) Follow(ctx context.Context, ip string, secure bool) error {
	if err := m.secureLinks(ctx, secure); err != nil {
		return err
	}
	if m.aside.Load() {
		if err := m.ConfigSet(ctx, map[string]string{snapshotFile: naming.FileSnapshot, serveStale: "no"}); err != nil {
			return err
		}
		m.serving.Store(false)
		m.aside.Store(false)
	}
	return m.do(ctx, "REPLICAOF", ip, strconv.Itoa(redis.PortOf(secure)))
}

// KeepAside begins to save the data of a replica of nobody in a file of its own; INFO
// tells when that ends. Until it follows another, the process answers reads, without
// which Redis saves nothing.
func (m *Member) KeepAside(ctx context.Context) error {
	if err := m.ConfigSet(ctx, map[string]string{snapshotFile: naming.FileAside, serveStale: "yes"}); err != nil {
		return err
	}
	m.aside.Store(true)
	return m.do(ctx, "BGSAVE")
}

// Detach makes the process a replica of nobody.
func (m *Member) Detach(ctx context.Context) error {
	return m.do(ctx, "REPLICAOF", nowhereHost, nowherePort)
}

// DemoteAndRead makes the process a replica of nobody and returns its state as of
// that very moment, in one transaction: no write can come between (safety rule 6).
// Told to follow its successor at once, it could copy that one before the successor
// has all, and with less than it has now.
func (m *Member) DemoteAndRead(ctx context.Context) (redis.Info, error) {
	results, err := m.transaction(ctx, [][]string{{"REPLICAOF", nowhereHost, nowherePort}, {"INFO", "replication"}})
	if err != nil {
		return redis.Info{}, err
	}
	if err := results[0].Error(); err != nil {
		return redis.Info{}, classify(m.address, err)
	}
	text, err := results[1].ToString()
	if err != nil {
		return redis.Info{}, classify(m.address, err)
	}
	return redis.ParseInfo(text)
}

// PauseWrites holds back the writes of clients for at most d.
func (m *Member) PauseWrites(ctx context.Context, d time.Duration) error {
	return m.do(ctx, "CLIENT", "PAUSE", strconv.FormatInt(d.Milliseconds(), 10), "WRITE")
}

// Unpause ends PauseWrites.
func (m *Member) Unpause(ctx context.Context) error { return m.do(ctx, "CLIENT", "UNPAUSE") }

// KillNormalClients closes the connections of applications.
func (m *Member) KillNormalClients(ctx context.Context) error {
	return m.do(ctx, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
}

// takeOver makes the new connection the only one of an operator (safety rule 13).
// The Lease is read after it was opened: a process that leads no longer and had its
// connections closed cannot act through another.
func (m *Member) takeOver(ctx context.Context) error {
	if m.pool.Leads != nil {
		if err := m.pool.Leads(ctx); err != nil {
			return fmt.Errorf("%w: %w", ErrNotLeading, err)
		}
	}
	return m.killOtherOperators(ctx)
}

// killOtherOperators closes the other connections of the operator's own user,
// which an earlier leader may still hold.
func (m *Member) killOtherOperators(ctx context.Context) error {
	return m.do(ctx, "CLIENT", "KILL", "USER", m.credentials.User, "SKIPME", "yes")
}

// RequestAcks makes the replicas acknowledge now rather than at their next
// second. It writes nothing.
func (m *Member) RequestAcks(ctx context.Context) error {
	return m.do(ctx, "WAIT", "100", "1")
}
