package oracle

import (
	"context"
	"errors"
	"strings"
	"time"

	"k8s.io/utils/clock"
)

// writer is one client with one connection at a time. Its fields are read after
// it ended.
type writer struct {
	key      string
	confirms bool
	pace     time.Duration
	target   Target
	// acknowledged is called with the time of the dial at the first write of a
	// connection, and with none later.
	acknowledged func(dialled time.Time)
	dialled      time.Time
	clock        clock.PassiveClock

	next        int64
	confirmed   []int64
	confirmedAt []time.Time // of each
	unconfirmed []int64
	unanswered  int
	refused     map[string]int
}

// run writes until ctx ends, through a new connection whenever the last one
// broke or led to a server that takes no writes.
func (w *writer) run(ctx context.Context) {
	w.refused = map[string]int{}
	keepWriting(ctx, w.pace, func() (*Connection, error) {
		w.dialled = w.clock.Now()
		conn, err := Dial(ctx, w.target)
		if err != nil {
			w.awaitRetry(ctx)
		}
		return conn, err
	}, func(conn *Connection) bool { return w.write(ctx, conn) })
}

// retryInterval is the time between two dials, as of an eager client.
const retryInterval = 5 * time.Millisecond

func (w *writer) awaitRetry(ctx context.Context) {
	timer := time.NewTimer(retryInterval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// write appends the next number; false means that the connection is of no more
// use. A number whose fate is unknown is never written again.
func (w *writer) write(ctx context.Context, conn *Connection) bool {
	n := w.next
	confirmed, err := conn.append(ctx, w.key, n, w.confirms)
	code, refused := refusal(err)
	switch {
	case err == nil || errors.Is(err, errNotConfirmed):
		w.next++
		w.acknowledged(w.dialled)
		w.dialled = time.Time{}
		if confirmed {
			w.confirmed, w.confirmedAt = append(w.confirmed, n), append(w.confirmedAt, w.clock.Now())
		} else {
			w.unconfirmed = append(w.unconfirmed, n)
		}
		return err == nil
	case refused:
		w.refused[code]++
		w.awaitRetry(ctx)
		return code != "READONLY"
	}
	w.next++
	w.unanswered++
	return false
}

// refusal is the code of an error that Redis answered with: the write was not
// done.
func refusal(err error) (string, bool) {
	var reply *replyError
	if !errors.As(err, &reply) {
		return "", false
	}
	code, _, _ := strings.Cut(reply.Error(), " ")
	return code, true
}
