package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/test/e2e/oracle"
)

// disturbances are what happens to the operator's leader during a planned move.
type disturbances struct {
	random *rand.Rand
	// made, refused and undone count the moves by their end; suspended and killed
	// the leaders.
	made, refused, suspended, killed int
}

// plannedMoves asks for another primary again and again and suspends or kills the
// operator's leader at random moments meanwhile. No acknowledged write may be lost.
func plannedMoves(ctx context.Context, s *suite, n int) ([]result, error) {
	c, err := s.newSubject(ctx, false)
	if err != nil {
		return nil, err
	}
	seed := uint64(s.clock.Now().UnixNano())
	s.say("seed %d", seed)
	d := &disturbances{random: rand.New(rand.NewPCG(seed, seed))} //nolint:gosec // It must be repeatable, not secret.
	options := oracle.Options{Name: "planned", Plain: 3, Confirming: 1, Pace: 2 * time.Millisecond}
	report, err := c.inBlocks(ctx, n, options, func(*oracle.Oracle) error { return c.disturbedMove(ctx, d) })
	s.say("%d requests: %d moves made, %d refused; leaders suspended %d, killed %d; seed %d",
		n, d.made, d.refused, d.suspended, d.killed, seed)
	return []result{
		figure(fmt.Sprintf("acknowledged writes lost, of %d, in %d moves", report.Confirmed+report.Unconfirmed, d.made), n,
			float64(report.LostConfirmed+report.LostUnconfirmed), 0),
		figure("values repeated or out of order", n, float64(report.Misplaced), 0),
		rate("moves made", n, float64(d.made), float64(n)*mostMoves),
	}, errors.Join(err, s.healOperator(ctx), c.remove(ctx))
}

// mostMoves is the part of the moves that must be made: an operator that starts
// anew may say once that it does not know yet who is in sync.
const mostMoves = 0.5

// When the leader is disturbed after a request, and for how long it is suspended:
// most often within the move, and at times past the end of its leadership.
const (
	moveTime        = 120 * time.Millisecond
	shortSuspension = time.Second
	longSuspension  = 8 * time.Second
)

// disturbedMove makes one move of a whole cluster.
func (c *subject) disturbedMove(ctx context.Context, d *disturbances) error {
	before, err := c.awaitWhole(ctx)
	if err != nil {
		return err
	}
	leader, err := c.leaderProcesses(ctx)
	if err != nil {
		return err
	}
	names := members(c.key.Name)
	target := names[d.random.IntN(len(names))]
	if target == before.Status.Primary {
		target = next(before)
	}
	if err := c.askFor(ctx, target); err != nil {
		return err
	}
	if err := c.disturb(ctx, d, leader); err != nil {
		return err
	}
	now, err := c.await(ctx, "led by "+target+", and the request answered", func(now *v1alpha1.RedisCluster) bool {
		_, asked := now.Annotations[naming.AnnotationSwitchoverTo]
		return !asked
	})
	if err != nil {
		return err
	}
	if now.Status.Record.Primary.Pod == target && now.Status.Record.Epoch > before.Status.Record.Epoch {
		d.made++
	} else {
		d.refused++
	}
	return c.healOperator(ctx)
}

// disturb waits for a random moment and suspends or kills the leader then.
func (c *subject) disturb(ctx context.Context, d *disturbances, leader []int) error {
	if err := c.pass(ctx, d.upTo(moveTime)); err != nil {
		return err
	}
	switch kind := d.random.IntN(10); {
	case kind < 5:
		d.suspended++
		return c.suspendFor(ctx, leader, d.upTo(shortSuspension))
	case kind < 7:
		d.suspended++
		return c.suspendFor(ctx, leader, d.upTo(longSuspension))
	case kind < 9:
		d.killed++
		return killAll(leader...)
	}
	return nil
}

func (d *disturbances) upTo(most time.Duration) time.Duration {
	return time.Duration(d.random.Int64N(int64(most)))
}

func (s *suite) suspendFor(ctx context.Context, processes []int, d time.Duration) error {
	if err := suspend(processes); err != nil {
		return err
	}
	defer resume(processes)
	return s.pass(ctx, d)
}
