// Package oracle writes to a Redis through its Service while something happens
// to it, remembers which writes were acknowledged and which were confirmed by
// WAIT, and tells afterwards which of them are gone.
//
// Each writer appends the numbers 0, 1, 2, … to a list of its own, so that the
// list shows loss, repetition and order alike.
package oracle

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Options of an Oracle.
type Options struct {
	// Name is the prefix of the keys, unique among the oracles of a Redis.
	Name string
	// Plain is the number of writers that write and go on.
	Plain int
	// Confirming is the number of writers that send WAIT 1 with each write.
	Confirming int
	// Pace is the least time between two writes of a writer.
	Pace time.Duration
	// Replicas is where what the confirming writers wrote is read meanwhile; nil reads
	// nowhere.
	Replicas *Target
}

// Oracle is a set of writers at work.
type Oracle struct {
	target  Target
	writers []*writer
	reader  *reader
	clock   clock.PassiveClock
	stop    context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	last    time.Time     // of the last acknowledgement
	longest time.Duration // between two acknowledgements since Mark
	acks    int
	fresh   []connectionStart
	wake    chan struct{} // closed at the next acknowledgement; nil if nobody waits
}

// Start begins to write, and goes on until Verify or the end of ctx.
func Start(ctx context.Context, target Target, options Options) *Oracle {
	ctx, stop := context.WithCancel(ctx)
	o := &Oracle{target: target, clock: clock.RealClock{}, stop: stop}
	o.last = o.clock.Now()
	for i := range options.Plain + options.Confirming {
		w := &writer{
			key: fmt.Sprintf("%s:%d", options.Name, i), confirms: i >= options.Plain,
			pace: max(options.Pace, time.Microsecond), target: target, clock: o.clock, acknowledged: o.acknowledged,
		}
		o.writers = append(o.writers, w)
		o.running.Go(func() { w.run(ctx) })
	}
	if options.Replicas != nil {
		o.reader = &reader{target: *options.Replicas, clock: o.clock}
		for _, w := range o.writers[options.Plain:] {
			o.reader.keys = append(o.reader.keys, w.key)
		}
		o.running.Go(func() { o.reader.run(ctx) })
	}
	return o
}

// connectionStart is when a connection was dialled and, if it ever was of use, when
// it had its first write acknowledged.
type connectionStart struct{ dialled, acknowledged time.Time }

// acknowledged notes a write; the first of a connection says when that was dialled.
func (o *Oracle) acknowledged(dialled time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.clock.Now()
	if !dialled.IsZero() {
		o.fresh = append(o.fresh, connectionStart{dialled, now})
	}
	o.longest = max(o.longest, now.Sub(o.last))
	o.last = now
	o.acks++
	if o.wake != nil {
		close(o.wake)
		o.wake = nil
	}
}

// Await returns once n more writes were acknowledged.
func (o *Oracle) Await(ctx context.Context, n int) error {
	o.mu.Lock()
	goal := o.acks + n
	o.mu.Unlock()
	if err := o.await(ctx, func() bool { return o.acks >= goal }); err != nil {
		return fmt.Errorf("wait for %d acknowledged writes: %w", n, err)
	}
	return nil
}

// FirstSince returns when the first write was acknowledged on a connection that
// was dialled after a time: no process that ended before can have accepted it. It
// waits until there is one, and must not be called for a time before the last Mark.
func (o *Oracle) FirstSince(ctx context.Context, since time.Time) (time.Time, error) {
	var first time.Time
	err := o.await(ctx, func() bool {
		for _, c := range o.fresh {
			if c.dialled.After(since) && (first.IsZero() || c.acknowledged.Before(first)) {
				first = c.acknowledged
			}
		}
		return !first.IsZero()
	})
	if err != nil {
		return first, fmt.Errorf("wait for a write on a new connection: %w", err)
	}
	return first, nil
}

// await looks at each acknowledgement, and now, whether something holds; holds is
// called under the lock.
func (o *Oracle) await(ctx context.Context, holds func() bool) error {
	for {
		o.mu.Lock()
		if holds() {
			o.mu.Unlock()
			return nil
		}
		if o.wake == nil {
			o.wake = make(chan struct{})
		}
		wake := o.wake
		o.mu.Unlock()
		select {
		case <-wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Mark returns the longest time in which no write of any writer was
// acknowledged since the last Mark, and starts anew.
func (o *Oracle) Mark() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.clock.Now()
	longest := max(o.longest, now.Sub(o.last))
	o.longest, o.last, o.fresh = 0, now, nil
	return longest
}

// Report is what became of the writes.
type Report struct {
	// Confirmed by WAIT 1, and those of them that are gone.
	Confirmed     int `json:"confirmed"`
	LostConfirmed int `json:"lostConfirmed"`
	// Unconfirmed but acknowledged, and those of them that are gone.
	Unconfirmed     int `json:"unconfirmed"`
	LostUnconfirmed int `json:"lostUnconfirmed"`
	// Unanswered writes may be there or not.
	Unanswered int `json:"unanswered"`
	// Misplaced values are there twice, or before one that was written earlier.
	Misplaced int `json:"misplaced"`
	// Reads at replicas, those that were too old, and the age of the oldest.
	Reads     int           `json:"reads,omitempty"`
	Stale     int           `json:"stale,omitempty"`
	Staleness time.Duration `json:"stalenessNanoseconds,omitempty"`
	// Backward are reads that went back on one connection, BackwardConfirmed those of
	// them behind a confirmed write.
	Backward          int `json:"backward,omitempty"`
	BackwardConfirmed int `json:"backwardConfirmed,omitempty"`
	// Refused writes, by Redis's error code.
	Refused map[string]int `json:"refused,omitempty"`
	// Lost names some of the lost writes, for a person.
	Lost []string `json:"lost,omitempty"`
}

// Add adds what became of other writes.
func (r *Report) Add(other Report) {
	r.Confirmed += other.Confirmed
	r.LostConfirmed += other.LostConfirmed
	r.Unconfirmed += other.Unconfirmed
	r.LostUnconfirmed += other.LostUnconfirmed
	r.Unanswered += other.Unanswered
	r.Misplaced += other.Misplaced
	r.Reads += other.Reads
	r.Stale += other.Stale
	r.Staleness = max(r.Staleness, other.Staleness)
	r.Backward += other.Backward
	r.BackwardConfirmed += other.BackwardConfirmed
	if r.Refused == nil {
		r.Refused = map[string]int{}
	}
	for code, times := range other.Refused {
		r.Refused[code] += times
	}
	r.Lost = append(r.Lost, other.Lost[:min(len(other.Lost), lostShown-min(lostShown, len(r.Lost)))]...)
}

// Err is nil if nothing that Redis must keep is gone. In a planned move that is
// every acknowledged write, else those that WAIT confirmed.
func (r Report) Err(planned bool) error {
	var errs []error
	if r.LostConfirmed > 0 {
		errs = append(errs, fmt.Errorf("%d of %d writes that WAIT 1 confirmed are gone: %v", r.LostConfirmed, r.Confirmed, r.Lost))
	}
	if planned && r.LostUnconfirmed > 0 {
		errs = append(errs, fmt.Errorf("%d of %d acknowledged writes are gone in a planned move: %v", r.LostUnconfirmed, r.Unconfirmed, r.Lost))
	}
	if r.Misplaced > 0 {
		errs = append(errs, fmt.Errorf("%d values are repeated or out of order", r.Misplaced))
	}
	if r.Confirmed+r.Unconfirmed == 0 {
		errs = append(errs, errors.New("no write was acknowledged: nothing is shown"))
	}
	return errors.Join(append(errs, r.readErr(planned))...)
}

// Verify ends the writers, reads everything back through the same Service and
// compares.
func (o *Oracle) Verify(ctx context.Context) (Report, error) {
	o.stop()
	o.running.Wait()
	report := Report{Refused: map[string]int{}}
	conn, err := Dial(ctx, o.target)
	if err != nil {
		return report, err
	}
	defer conn.Close()
	for _, w := range o.writers {
		found, err := conn.list(ctx, w.key)
		if err != nil {
			return report, fmt.Errorf("read back %s: %w", w.key, err)
		}
		w.compare(found, &report)
		if o.reader != nil && w.confirms {
			o.reader.judge(w, &report)
		}
	}
	if o.reader != nil {
		report.Reads = o.reader.reads
	}
	return report, nil
}

// Discard removes what the writers wrote, after Verify.
func (o *Oracle) Discard(ctx context.Context) error {
	words := []string{"DEL"}
	for _, w := range o.writers {
		words = append(words, w.key)
	}
	_, err := Do(ctx, o.target, words...)
	return err
}

// lostShown bounds the lost writes that a report names.
const lostShown = 10

// compare adds to the report what a list tells about its writer.
func (w *writer) compare(found []string, report *Report) {
	present := make(map[int64]bool, len(found))
	last := int64(-1)
	for _, text := range found {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n <= last {
			report.Misplaced++
			continue
		}
		present[n], last = true, n
	}
	count := func(numbers []int64, total, lost *int) {
		for _, n := range numbers {
			*total++
			if present[n] {
				continue
			}
			*lost++
			if len(report.Lost) < lostShown {
				report.Lost = append(report.Lost, fmt.Sprintf("%s[%d]", w.key, n))
			}
		}
	}
	count(w.confirmed, &report.Confirmed, &report.LostConfirmed)
	count(w.unconfirmed, &report.Unconfirmed, &report.LostUnconfirmed)
	report.Unanswered += w.unanswered
	for code, times := range w.refused {
		report.Refused[code] += times
	}
}
