package controllers_test

import (
	"reflect"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/testkit/apiserver"
	"seang.org/operator/internal/testkit/nodes"
)

// jumpyClock is a node's wall clock that jumps before each look. Its monotonic clock does not.
type jumpyClock struct {
	jump  time.Duration
	looks atomic.Int64
}

func (c *jumpyClock) Now() time.Time {
	return jumped(time.Now(), time.Duration(c.looks.Add(1))*c.jump)
}

func (c *jumpyClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// jumped moves the wall clock's reading alone: time.Time.Add would move both. The seconds
// are the upper bits of the first word but one, the nanoseconds its lowest 30.
func jumped(t time.Time, d time.Duration) time.Time {
	wall := (*uint64)(unsafe.Pointer(reflect.ValueOf(&t).Elem().FieldByName("wall").UnsafeAddr()))
	*wall += uint64(int64(d.Seconds())) << 30
	return t
}

func TestTheOperatorsWallClockDecidesNothing(t *testing.T) {
	began := time.Now()
	for _, d := range []time.Duration{time.Hour, -time.Hour} {
		if off := jumped(began, d).Round(0).Sub(began.Round(0)); off != d || jumped(began, d).Sub(began) != 0 {
			t.Fatalf("the wall clock is off by %s and the monotonic one by %s, want %s and 0", off, jumped(began, d).Sub(began), d)
		}
	}
	for name, jump := range map[string]time.Duration{"an hour back at each look": -time.Hour, "an hour forward": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			survives(t, &jumpyClock{jump: jump})
		})
	}
}

// survives is a life in which the operator must wait for times to pass: until what starts
// together is there, a primary hung for long, and kube-proxy can follow a move.
func survives(t *testing.T, clock *jumpyClock) {
	t.Helper()
	server := apiserver.Get(t)
	namespace := server.Namespace(t)
	pods := nodes.Start(t, server.Client, namespace, "redis-7.0")
	operateBy(t, server, namespace, clock)
	c := cluster(namespace, 2, true)
	createReady(t, server.Client, c)
	if c.Status.Record.Epoch != 1 {
		t.Errorf("it failed over while nothing happened: %+v", c.Status.Record)
	}
	hung := pod(t, server.Client, namespace, c.Status.Primary)
	pods.Server(hung.UID).Signal(syscall.SIGSTOP) // It is killed once it was silent for long.
	await(t, server.Client, c, "another primary and Ready", func() bool { return c.Status.Primary != hung.Name && isReady(c) })
	c.Annotations = map[string]string{naming.AnnotationSwitchoverTo: hung.Name}
	if err := server.Client.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	await(t, server.Client, c, "the primary moved back", func() bool { return c.Status.Primary == hung.Name && isReady(c) })
	if c.Status.Record.Epoch != 3 {
		t.Errorf("it moved the primary more often than needed: %+v", c.Status.Record)
	}
	t.Logf("the clock jumped %d times", clock.looks.Load())
}
