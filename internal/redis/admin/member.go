package admin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

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
	dead        atomic.Bool
	done        chan struct{}
	ended       sync.Once
	state       atomic.Pointer[string] // fingerprint of the replication state last read
}

// dial connects, logs in and learns the process's run ID.
func dial(ctx context.Context, target Target, pool *Pool) (*Member, error) {
	m := &Member{key: target.Key, address: target.Address, credentials: target.Credentials, pool: pool, done: make(chan struct{})}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", target.Address)
	if err != nil {
		return nil, classify(target.Address, err)
	}
	var used atomic.Bool
	m.client, err = rueidis.NewClient(rueidis.ClientOption{
		InitAddress:       []string{target.Address},
		Username:          target.Credentials.User,
		Password:          target.Credentials.Password,
		ClientName:        "redis-operator",
		ClientSetInfo:     rueidis.DisableClientSetInfo,
		ForceSingleClient: true,
		AlwaysPipelining:  true,
		DisableRetry:      true,
		DisableCache:      true,
		PipelineMultiplex: -1,
		ConnWriteTimeout:  probeTimeout,
		DialCtxFn: func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
			if used.Swap(true) {
				return nil, net.ErrClosed
			}
			return &watchedConn{Conn: conn, ended: m.end}, nil
		},
	})
	if err != nil {
		_ = conn.Close()
		return nil, classify(target.Address, err)
	}
	info, err := m.Info(ctx)
	if err != nil {
		m.close()
		return nil, err
	}
	m.runID = info.RunID
	serve, err := m.ConfigGet(ctx, serveStale)
	if err != nil {
		m.close()
		return nil, err
	}
	m.serving.Store(serve[serveStale] == "yes")
	return m, nil
}

// watchedConn tells at once when the peer ends the connection: the library
// reads all the time.
type watchedConn struct {
	net.Conn
	ended func()
}

func (c *watchedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		c.ended()
	}
	return n, err
}

// end notes that the connection broke and tells the pool's owner, once.
func (m *Member) end() {
	m.ended.Do(func() {
		closedByUs := m.dead.Swap(true)
		close(m.done)
		if !closedByUs && m.runID != "" {
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

// watch asks the process for its replication state now and then, tells of a
// change, and gives up a process that is silent.
func (m *Member) watch() {
	ticker := time.NewTicker(probeInterval)
	defer ticker.Stop()
	for {
		select {
		case <-m.done:
			return
		case <-ticker.C:
		}
		before := m.state.Load()
		ctx, cancel := context.WithTimeout(context.Background(), probeTimeout) //nolint:forbidigo // The watch outlives every pass.
		_, err := m.Info(ctx)
		cancel()
		switch {
		case errors.Is(err, ErrUnreachable):
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
	reply, err := m.text(ctx, m.client.B().Info().Section("server", "replication", "keyspace", "memory", "persistence").Build())
	if err != nil {
		return redis.Info{}, err
	}
	info, err := redis.ParseInfo(reply)
	if err != nil {
		return redis.Info{}, fmt.Errorf("redis at %s %w: %w", m.address, ErrReplied, err)
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

func (m *Member) text(ctx context.Context, command rueidis.Completed) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	reply, err := m.client.Do(ctx, command).ToString()
	return reply, classify(m.address, err)
}

func (m *Member) do(ctx context.Context, words ...string) error {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	return classify(m.address, m.client.Do(ctx, m.client.B().Arbitrary(words...).Build()).Error())
}

// Promote makes the process a primary.
func (m *Member) Promote(ctx context.Context) error { return m.do(ctx, "REPLICAOF", "NO", "ONE") }

// Follow makes the process a replica of the member with that IP.
func (m *Member) Follow(ctx context.Context, ip string) error {
	return m.do(ctx, "REPLICAOF", ip, strconv.Itoa(redis.Port))
}

// Detach makes the process a replica of nobody.
func (m *Member) Detach(ctx context.Context) error {
	return m.do(ctx, "REPLICAOF", nowhereHost, nowherePort)
}

// DemoteAndRead makes the process a replica of the member with that IP and
// returns its state as of that very moment, in one transaction: no write can
// come between (safety rule 6).
func (m *Member) DemoteAndRead(ctx context.Context, ip string) (redis.Info, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	b := m.client.B
	replies := m.client.DoMulti(ctx,
		b().Multi().Build(),
		b().Arbitrary("REPLICAOF", ip, strconv.Itoa(redis.Port)).Build(),
		b().Info().Section("replication").Build(),
		b().Exec().Build(),
	)
	results, err := replies[len(replies)-1].ToArray()
	if err != nil {
		return redis.Info{}, classify(m.address, err)
	}
	if len(results) != 2 {
		return redis.Info{}, fmt.Errorf("redis at %s %w: EXEC gave %d results, want 2", m.address, ErrReplied, len(results))
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

// RequestAcks makes the replicas acknowledge now rather than at their next
// second. It writes nothing.
func (m *Member) RequestAcks(ctx context.Context) error {
	return m.do(ctx, "WAIT", "100", "1")
}

// ConfigGet returns the values of the directives; one that the server does not
// know is absent.
func (m *Member) ConfigGet(ctx context.Context, names ...string) (map[string]string, error) {
	if len(names) == 0 {
		return map[string]string{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	values, err := m.client.Do(ctx, m.client.B().ConfigGet().Parameter(names...).Build()).AsStrMap()
	return values, classify(m.address, err)
}

// ConfigSet sets all of the directives or, with an error, none.
func (m *Member) ConfigSet(ctx context.Context, values map[string]string) error {
	words := []string{"CONFIG", "SET"}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		words = append(words, name, values[name])
	}
	return m.do(ctx, words...)
}

// SetMaxMemory sets maxmemory, in bytes.
func (m *Member) SetMaxMemory(ctx context.Context, bytes int64) error {
	return m.ConfigSet(ctx, map[string]string{"maxmemory": strconv.FormatInt(bytes, 10)})
}

// SetMinReplicas makes the process refuse writes unless so many replicas have
// acknowledged within maxLag seconds.
func (m *Member) SetMinReplicas(ctx context.Context, replicas, maxLag int) error {
	return m.ConfigSet(ctx, map[string]string{
		"min-replicas-max-lag": strconv.Itoa(maxLag), "min-replicas-to-write": strconv.Itoa(replicas)})
}

// SetPassword replaces the password of a user by the one with that SHA-256 hash.
func (m *Member) SetPassword(ctx context.Context, user, hash string) error {
	return m.do(ctx, "ACL", "SETUSER", user, "resetpass", "#"+hash)
}
