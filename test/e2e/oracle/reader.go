package oracle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"
	"k8s.io/utils/clock"

	"seang.org/operator/internal/redis/plan"
)

const (
	// readPace is the time between two reads: 20 a second.
	readPace = 50 * time.Millisecond
	// readerAge is how long a reader keeps a connection: what the operator takes out of
	// the Service, only new connections leave.
	readerAge = time.Second
	// StalenessBound is how old a read may be: the operator's limit, and the time for a
	// look, for kube-proxy and for the connections there are.
	StalenessBound = plan.StalenessLimit*time.Second + readerAge + 4*time.Second
)

// reader reads the last number of each confirming writer through the replicas' Service.
// Its samples are judged after it ended.
type reader struct {
	target  Target
	keys    []string
	clock   clock.PassiveClock
	dialled time.Time
	last    map[string]int64 // on this connection
	samples []sample
	back    []backward
	reads   int
}

// sample is a number that was read, and when that began.
type sample struct {
	key    string
	number int64
	at     time.Time
}

// backward is a read, on the connection of an earlier one, of a smaller number.
type backward struct {
	key      string
	from, to int64
}

func (r *reader) run(ctx context.Context) {
	keepWriting(ctx, readPace, func() (*Connection, error) {
		r.dialled, r.last = r.clock.Now(), map[string]int64{}
		return Dial(ctx, r.target)
	}, func(conn *Connection) bool {
		for _, key := range r.keys {
			if err := r.read(ctx, conn, key); err != nil {
				return false
			}
		}
		return r.clock.Since(r.dialled) < readerAge
	})
}

func (r *reader) read(ctx context.Context, conn *Connection, key string) error {
	at := r.clock.Now()
	number, err := conn.lastOf(ctx, key)
	if err != nil {
		return err
	}
	r.reads++
	if before, again := r.last[key]; again && number < before {
		r.back = append(r.back, backward{key: key, from: before, to: number})
	}
	r.last[key] = number
	r.samples = append(r.samples, sample{key: key, number: number, at: at})
	return nil
}

// lastOf reads the last number of a list; -1 if there is none.
func (c *Connection) lastOf(ctx context.Context, key string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	text, err := c.client.Do(ctx, c.client.B().Lindex().Key(key).Index(-1).Build()).ToString()
	switch {
	case rueidis.IsRedisNil(err):
		return -1, nil
	case err != nil:
		return 0, fmt.Errorf("read the last of %s: %w", key, err)
	}
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read the last of %s: %w", key, err)
	}
	return number, nil
}

// judge adds to the report how old the reads of a writer's numbers were, and which went
// back.
func (r *reader) judge(w *writer, report *Report) {
	for _, s := range r.samples {
		if s.key != w.key {
			continue
		}
		age := w.age(s)
		report.Staleness = max(report.Staleness, age)
		if age > StalenessBound {
			report.Stale++
		}
	}
	for _, b := range r.back {
		if b.key != w.key {
			continue
		}
		report.Backward++
		if slices.ContainsFunc(w.confirmed, func(n int64) bool { return n > b.to && n <= b.from }) {
			report.BackwardConfirmed++
		}
	}
}

// age is how long before a read the first number was confirmed that it lacks; negative
// if that was later.
func (w *writer) age(s sample) time.Duration {
	next, read := slices.BinarySearch(w.confirmed, s.number)
	if read {
		next++
	}
	if next == len(w.confirmed) {
		return 0
	}
	return s.at.Sub(w.confirmedAt[next])
}

// readErr is nil if reads were as fresh as they must be. In a planned move, none goes back.
func (r Report) readErr(planned bool) error {
	var errs []error
	if r.Stale > 0 {
		errs = append(errs, fmt.Errorf("%d of %d reads lacked what had been confirmed %s before, the oldest %s", r.Stale, r.Reads, StalenessBound, r.Staleness))
	}
	if r.BackwardConfirmed > 0 || (planned && r.Backward > 0) {
		errs = append(errs, fmt.Errorf("%d reads went back on one connection, %d of them behind a confirmed write", r.Backward, r.BackwardConfirmed))
	}
	return errors.Join(errs...)
}
