package oracle

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// Timeouts of a client that wants to notice a failover.
const (
	dialTimeout    = time.Second
	commandTimeout = 3 * time.Second
	// waitTimeout is that of WAIT: below commandTimeout.
	waitTimeout = time.Second
	// pageSize bounds the reply of one read.
	pageSize = 10_000
	// ringScale is the logarithm of the number of commands in flight.
	ringScale   = 4
	bufferBytes = 16 << 10
)

// errNotConfirmed: the write was acknowledged, its WAIT did not answer.
var errNotConfirmed = errors.New("acknowledged, but the connection broke before WAIT answered")

// replyError is an error that Redis answered with.
type replyError struct{ text string }

func (e *replyError) Error() string { return e.text }

// Connection is one TCP connection: it is never dialled again, for WAIT speaks
// of the writes of its own connection only.
type Connection struct{ client rueidis.Client }

// Dial connects and logs in.
func Dial(ctx context.Context, target Target) (*Connection, error) {
	conn, err := target.dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", target.Address, err)
	}
	var used atomic.Bool
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{target.Address}, Username: target.Username, Password: target.Password,
		ForceSingleClient: true, AlwaysPipelining: true, PipelineMultiplex: -1,
		// Small: a client that waits for a failover dials again and again.
		RingScaleEachConn: ringScale, ReadBufferEachConn: bufferBytes, WriteBufferEachConn: bufferBytes,
		DisableRetry: true, DisableCache: true, ClientSetInfo: rueidis.DisableClientSetInfo,
		ConnWriteTimeout: commandTimeout,
		DialCtxFn: func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
			if used.Swap(true) {
				return nil, net.ErrClosed
			}
			return conn, nil
		},
	})
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("log in at %s: %w", target.Address, err)
	}
	return &Connection{client: client}, nil
}

// keepWriting calls write at each tick, with one connection after another, until ctx
// ends. A connection is replaced where write says that it is of no more use; dial may
// wait before it returns that there is none.
func keepWriting(ctx context.Context, pace time.Duration, dial func() (*Connection, error), write func(*Connection) bool) {
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	var conn *Connection
	defer func() { conn.Close() }()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if conn == nil {
			var err error
			if conn, err = dial(); err != nil {
				conn = nil
				continue
			}
		}
		if !write(conn) {
			conn.Close()
			conn = nil
		}
	}
}

// Close ends the connection; nil has none.
func (c *Connection) Close() {
	if c != nil {
		c.client.Close()
	}
}

// Do sends a command and returns its reply as text, lists and maps as their
// words with blanks between.
func (c *Connection) Do(ctx context.Context, words ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	reply, err := c.client.Do(ctx, c.client.B().Arbitrary(words...).Build()).ToAny()
	if err != nil {
		return "", fmt.Errorf("%s: %w", words[0], err)
	}
	return strings.Trim(fmt.Sprint(reply), "[]"), nil
}

// append adds a number to a list, and says whether a replica confirmed it.
func (c *Connection) append(ctx context.Context, key string, n int64, confirm bool) (bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commandTimeout)
	defer cancel()
	commands := rueidis.Commands{c.client.B().Rpush().Key(key).Element(strconv.FormatInt(n, 10)).Build()}
	if confirm {
		// Built by hand: the library gives a blocking command a connection of its own.
		commands = append(commands, c.client.B().Arbitrary("WAIT", "1", strconv.FormatInt(waitTimeout.Milliseconds(), 10)).Build())
	}
	replies := c.client.DoMulti(ctx, commands...)
	if err := replies[0].Error(); err != nil {
		if reply, ok := rueidis.IsRedisErr(err); ok {
			return false, &replyError{text: reply.Error()}
		}
		return false, fmt.Errorf("append to %s: %w", key, err)
	}
	if !confirm {
		return false, nil
	}
	replicas, err := replies[1].AsInt64()
	if err != nil {
		return false, errNotConfirmed
	}
	return replicas >= 1, nil
}

// list reads a whole list.
func (c *Connection) list(ctx context.Context, key string) ([]string, error) {
	var all []string
	for {
		from := int64(len(all))
		ctx, cancel := context.WithTimeout(ctx, commandTimeout)
		page, err := c.client.Do(ctx, c.client.B().Lrange().Key(key).Start(from).Stop(from+pageSize-1).Build()).AsStrSlice()
		cancel()
		if err != nil {
			return nil, fmt.Errorf("read the list %s: %w", key, err)
		}
		all = append(all, page...)
		if len(page) < pageSize {
			return all, nil
		}
	}
}
