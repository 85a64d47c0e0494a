package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/redis/plan"
	"seang.org/operator/test/e2e/kubeapi"
	"seang.org/operator/test/e2e/oracle"
)

// lossTarget is what the loss of a node may take, in ms: 3 s until silence is a
// loss, the lease of the old primary, and 1.5 s for the rest.
const lossTarget = 3000 + (plan.MaxLagSeconds+2)*1000 + 1500

// nodeLoss cuts the node of the primary off the network, and measures until a write
// through the Service is accepted. On the cut node, where the old primary runs on, no
// write may be acknowledged from then on.
func nodeLoss(ctx context.Context, s *suite, n int) ([]result, error) {
	c, err := s.newSubject(ctx, false)
	if err != nil {
		return nil, err
	}
	var writable, window []float64
	late := 0
	report, err := c.inBlocks(ctx, n, oracle.Options{Name: "node-loss", Plain: 2, Confirming: 1, Pace: 2 * time.Millisecond},
		func(o *oracle.Oracle) error {
			loss, err := c.loseNode(ctx, o)
			if err != nil {
				return err
			}
			writable, window = append(writable, milliseconds(loss.writable)), append(window, milliseconds(loss.window))
			late += loss.late
			s.say("%s node cut → write accepted %.0f ms; the cut side acknowledged for %.0f ms, %d writes too late",
				loss.at.Format(clockFormat), milliseconds(loss.writable), milliseconds(loss.window), loss.late)
			return nil
		})
	if len(writable) == 0 {
		return nil, err
	}
	return []result{
		distribution("ms, node of the primary cut off → a write accepted through the Service", writable, lossTarget, largest),
		distribution("ms for which the cut side went on to acknowledge", window, (plan.MaxLagSeconds+2)*1000, largest),
		figure("writes acknowledged on the cut side after the first by the new primary", n, float64(late), 0),
		figure(fmt.Sprintf("writes lost, of %d that WAIT 1 confirmed", report.Confirmed), n, float64(report.LostConfirmed), 0),
	}, errors.Join(err, c.remove(ctx))
}

// loss is what was seen when a node was cut off.
type loss struct {
	at time.Time
	// writable is when the new primary accepted a write, window for how long the
	// old one still did, both from the cut on.
	writable, window time.Duration
	// late counts the writes that the old one acknowledged after the new one's first.
	late int
}

// loseNode cuts the primary's node off, measures, heals it and waits until the
// cluster is whole.
func (c *subject) loseNode(ctx context.Context, o *oracle.Oracle) (found loss, err error) {
	before, primary, err := c.awayFromLeader(ctx)
	if err != nil {
		return loss{}, err
	}
	stranded, err := c.strand(ctx, primary)
	if err != nil {
		return loss{}, err
	}
	defer stranded.end()
	if err := awaitWrites(ctx, o); err != nil {
		return loss{}, err
	}
	o.Mark()
	if err := kubeapi.Embedded(ctx, "node", "cut", primary.Spec.NodeName); err != nil {
		return loss{}, err
	}
	cut := c.clock.Now()
	defer func() {
		healed := c.api.HealNode(context.WithoutCancel(ctx), primary.Spec.NodeName)
		if err = errors.Join(err, healed); err == nil {
			_, err = c.awaitCalm(ctx)
		}
	}()
	bounded, cancel := context.WithTimeoutCause(ctx, recoveryTimeout, fmt.Errorf("no write accepted within %s", recoveryTimeout))
	defer cancel()
	first, err := o.FirstSince(bounded, cut)
	if err != nil {
		return loss{}, err
	}
	if _, err := c.awaitMoved(ctx, before.Status.Record.Epoch); err != nil {
		return loss{}, err
	}
	// For as long again, the old one must stay silent.
	if err := c.pass(ctx, first.Sub(cut)); err != nil {
		return loss{}, err
	}
	last, late := stranded.since(first)
	return loss{at: cut, writable: first.Sub(cut), window: max(0, last.Sub(cut)), late: late}, nil
}

// awayFromLeader makes the primary run on another node than the operator's leader,
// which is to see the loss, and waits until all is calm.
func (c *subject) awayFromLeader(ctx context.Context) (*v1alpha1.RedisCluster, *corev1.Pod, error) {
	for {
		now, err := c.awaitCalm(ctx)
		if err != nil {
			return nil, nil, err
		}
		primary, err := c.pod(ctx, now.Status.Primary)
		if err != nil {
			return nil, nil, err
		}
		leader, err := c.api.Leader(ctx)
		if err != nil {
			return nil, nil, err
		}
		if leader.Spec.NodeName != primary.Spec.NodeName {
			return now, primary, nil
		}
		target := next(now)
		if err := c.askFor(ctx, target); err != nil {
			return nil, nil, err
		}
		if err := c.awaitAnswer(ctx, now.Status.Record.Epoch, target); err != nil {
			return nil, nil, err
		}
	}
}

// stranded is a client next to the primary, which stays connected to it when its
// node is cut off.
type stranded struct {
	connection *oracle.Connection
	stop       context.CancelFunc
	writing    sync.WaitGroup
	mu         sync.Mutex
	acks       []time.Time
}

// strandedPace is the time between two writes of a stranded client.
const strandedPace = 5 * time.Millisecond

// strand starts a client within the primary's pod.
func (c *subject) strand(ctx context.Context, primary *corev1.Pod) (*stranded, error) {
	processes, err := kubeapi.Processes(primary, redisProgram)
	if err != nil {
		return nil, err
	}
	target := c.at(primary)
	target.Dial = func(ctx context.Context) (net.Conn, error) { return dialWithin(ctx, processes[0], target.Address) }
	s := &stranded{}
	if s.connection, err = oracle.Dial(ctx, target); err != nil {
		return nil, err
	}
	ctx, s.stop = context.WithCancel(ctx)
	s.writing.Go(func() { s.write(ctx, c.suite) })
	return s, nil
}

func (s *stranded) write(ctx context.Context, suite *suite) {
	ticker := suite.clock.NewTicker(strandedPace)
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		if _, err := s.connection.Do(ctx, "SET", "stranded", strconv.Itoa(n)); err == nil {
			s.mu.Lock()
			s.acks = append(s.acks, suite.clock.Now())
			s.mu.Unlock()
		}
	}
}

// since returns when the last write was acknowledged, and how many were after a time.
func (s *stranded) since(first time.Time) (last time.Time, late int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.acks {
		last = at
		if at.After(first) {
			late++
		}
	}
	return last, late
}

func (s *stranded) end() {
	s.stop()
	s.writing.Wait()
	s.connection.Close()
}
