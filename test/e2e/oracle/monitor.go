package oracle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

const (
	// monitorPace is the time between two writes to a member: 25 a second.
	monitorPace = 40 * time.Millisecond
	// membersPace is the time between two looks at which members there are.
	membersPace = 500 * time.Millisecond
)

// Monitor writes to every member of a Redis over connections of its own, and
// remembers which took a write, and when.
type Monitor struct {
	key     string
	members func(context.Context) ([]Target, error)
	stop    context.CancelFunc
	running sync.WaitGroup

	mu   sync.Mutex
	acks []ack
}

// ack is a write that a member accepted, by the member's clock: the time is read
// before, over the same connection, so the write is not older.
type ack struct {
	member string
	at     time.Time
}

// Watch begins to write to the key at each of the members, which are asked for
// again and again, and goes on until Err or the end of ctx. The clocks of the
// members must agree: those of one machine do.
func Watch(ctx context.Context, key string, members func(context.Context) ([]Target, error)) *Monitor {
	ctx, stop := context.WithCancel(ctx)
	m := &Monitor{key: key, members: members, stop: stop}
	m.running.Go(func() { m.follow(ctx) })
	return m
}

// follow has a client at each member that there is.
func (m *Monitor) follow(ctx context.Context) {
	clients := map[string]context.CancelFunc{}
	ticker := time.NewTicker(membersPace)
	defer ticker.Stop()
	for {
		if targets, err := m.members(ctx); err == nil {
			present := map[string]bool{}
			for _, target := range targets {
				present[target.Address] = true
				if clients[target.Address] == nil {
					client, end := context.WithCancel(ctx)
					clients[target.Address] = end
					m.running.Go(func() { m.write(client, target) })
				}
			}
			for address, end := range clients {
				if !present[address] {
					end()
					delete(clients, address)
				}
			}
		}
		select {
		case <-ctx.Done():
			for _, end := range clients {
				end()
			}
			return
		case <-ticker.C:
		}
	}
}

// write holds a connection to a member, whatever that answers.
func (m *Monitor) write(ctx context.Context, target Target) {
	keepWriting(ctx, monitorPace, func() (*Connection, error) { return Dial(ctx, target) }, func(conn *Connection) bool {
		at, err := conn.stamp(ctx, m.key, target.Address)
		if err == nil {
			m.mu.Lock()
			m.acks = append(m.acks, ack{member: target.Address, at: at})
			m.mu.Unlock()
		}
		var refused *replyError
		return err == nil || errors.As(err, &refused)
	})
}

// Err ends the clients, and is nil if the members that took writes changed no more
// often than there were promotions: where two take writes at a time, they alternate.
func (m *Monitor) Err(promotions int64) error {
	m.stop()
	m.running.Wait()
	if len(m.acks) == 0 {
		return errors.New("no member took a write of the monitor: nothing is shown")
	}
	changes := changes(m.acks)
	if int64(len(changes)) <= promotions {
		return nil
	}
	return fmt.Errorf("the member that takes writes changed %d times, with %d promotions: %v", len(changes), promotions,
		changes[:min(len(changes), lostShown)])
}

// changes tells each time when another member took a write than before.
func changes(acks []ack) []string {
	acks = slices.Clone(acks)
	slices.SortFunc(acks, func(a, b ack) int { return a.at.Compare(b.at) })
	var found []string
	for i := 1; i < len(acks); i++ {
		if before, now := acks[i-1], acks[i]; before.member != now.member {
			found = append(found, fmt.Sprintf("%s at %s, %s at %s", before.member, before.at.Format(stampFormat), now.member, now.at.Format(stampFormat)))
		}
	}
	return found
}

const stampFormat = "15:04:05.000000"

// stamp sets a key, and returns the server's time from just before.
func (c *Connection) stamp(ctx context.Context, key, value string) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	replies := c.client.DoMulti(ctx, c.client.B().Time().Build(), c.client.B().Set().Key(key).Value(value).Build())
	if err := replies[1].Error(); err != nil {
		if reply, ok := rueidis.IsRedisErr(err); ok {
			return time.Time{}, &replyError{text: reply.Error()}
		}
		return time.Time{}, fmt.Errorf("set %s: %w", key, err)
	}
	words, err := replies[0].AsStrSlice()
	if err != nil || len(words) != 2 {
		return time.Time{}, fmt.Errorf("read the time: %q, %w", words, err)
	}
	seconds, errSeconds := strconv.ParseInt(words[0], 10, 64)
	micros, errMicros := strconv.ParseInt(words[1], 10, 64)
	if err := errors.Join(errSeconds, errMicros); err != nil {
		return time.Time{}, fmt.Errorf("read the time: %w", err)
	}
	return time.Unix(seconds, micros*int64(time.Microsecond)), nil
}
