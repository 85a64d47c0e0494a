package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"seang.org/operator/test/e2e/kubeapi"
	"seang.org/operator/test/e2e/oracle"
)

// blockSize is how many faults the same writers see: what they wrote is then
// compared, and removed, so that it does not fill the memory.
const blockSize = 20

// inBlocks does something n times while writers write, and returns what became of
// all their writes. What is lost is printed with the block, and is no error.
func (c *subject) inBlocks(ctx context.Context, n int, options oracle.Options, do func(*oracle.Oracle) error) (oracle.Report, error) {
	var total oracle.Report
	name := options.Name
	for done := 0; done < n; done += blockSize {
		options.Name = fmt.Sprintf("%s-%d", name, done)
		o, err := c.write(ctx, options)
		if err != nil {
			return total, err
		}
		for range min(blockSize, n-done) {
			if err := do(o); err != nil {
				return total, err
			}
		}
		if err := awaitWrites(ctx, o); err != nil {
			return total, err
		}
		report, err := o.Verify(ctx)
		if err != nil {
			return total, err
		}
		c.say("%s to %d: %+v", options.Name, min(done+blockSize, n), report)
		total.Add(report)
		if err := o.Discard(ctx); err != nil {
			return total, err
		}
	}
	return total, nil
}

// durableFailovers kills the primary's process again and again while some writers
// wait for a replica and others do not, and counts what is lost.
func durableFailovers(ctx context.Context, s *suite, n int) ([]result, error) {
	c, err := s.newSubject(ctx, false)
	if err != nil {
		return nil, err
	}
	options := oracle.Options{Name: "durable", Plain: 2, Confirming: 2, Pace: 2 * time.Millisecond}
	report, err := c.inBlocks(ctx, n, options, func(o *oracle.Oracle) error {
		before, err := c.awaitWhole(ctx)
		if err != nil {
			return err
		}
		_, err = c.crashNow(ctx, o, before)
		return err
	})
	return []result{
		figure(fmt.Sprintf("writes lost, of %d that WAIT 1 confirmed", report.Confirmed), n, float64(report.LostConfirmed), 0),
		count(fmt.Sprintf("writes lost, of %d without WAIT", report.Unconfirmed), n, report.LostUnconfirmed),
		figure("values repeated or out of order", n, float64(report.Misplaced), 0),
	}, errors.Join(err, c.remove(ctx))
}

// leaderCrash kills the operator's process that leads, and the primary's at once
// after, and measures until a write through the Service is accepted.
func leaderCrash(ctx context.Context, s *suite, n int) ([]result, error) {
	c, err := s.newSubject(ctx, false)
	if err != nil {
		return nil, err
	}
	o, err := c.write(ctx, oracle.Options{Name: "leader-crash", Plain: 2, Confirming: 1, Pace: 2 * time.Millisecond})
	if err != nil {
		return nil, err
	}
	writable, _, err := s.crashes(n, "leader and primary killed", func() (recovery, error) { return c.crashWithLeader(ctx, o) })
	if err != nil {
		return nil, err
	}
	_, err = c.verify(ctx, o, false)
	return []result{distribution("ms, leader and primary killed → a write accepted through the Service", writable, 5000, largest)},
		errors.Join(err, s.healOperator(ctx), c.remove(ctx))
}

// crashWithLeader kills the leader of the operator and the primary of a calm cluster.
func (c *subject) crashWithLeader(ctx context.Context, o *oracle.Oracle) (recovery, error) {
	if err := c.healOperator(ctx); err != nil {
		return recovery{}, err
	}
	before, err := c.awaitCalm(ctx)
	if err != nil {
		return recovery{}, err
	}
	leader, err := c.leaderProcesses(ctx)
	if err != nil {
		return recovery{}, err
	}
	return c.crashNow(ctx, o, before, leader...)
}

// emptyPrimary kills the primary's process of a cluster without volumes, which then
// restarts empty; every second time the operator is suspended until it has. It
// counts how often the data is gone.
func emptyPrimary(ctx context.Context, s *suite, n int) ([]result, error) {
	c, err := s.newSubject(ctx, false)
	if err != nil {
		return nil, err
	}
	wiped := 0
	for trial := range n {
		kept, err := c.restartEmpty(ctx, trial)
		if err != nil {
			return nil, fmt.Errorf("trial %d: %w", trial, err)
		}
		if !kept {
			wiped++
			s.say("trial %d: the data is GONE", trial)
		}
	}
	s.say("%d trials, in %d of them an empty process was up before the operator acted: %d wiped", n, n/2, wiped)
	return []result{figure("data sets wiped by a primary that restarted empty", n, float64(wiped), 0)}, errors.Join(s.healOperator(ctx), c.remove(ctx))
}

// datum is the key of the data set.
const datum = "datum"

// restartEmpty makes one trial, and says whether the data was kept.
func (c *subject) restartEmpty(ctx context.Context, trial int) (kept bool, err error) {
	before, err := c.awaitWhole(ctx)
	if err != nil {
		return false, err
	}
	value := strconv.Itoa(trial)
	if err := c.store(ctx, value); err != nil {
		return false, err
	}
	primary, err := c.pod(ctx, before.Status.Primary)
	if err != nil {
		return false, err
	}
	if trial%2 == 1 {
		err = c.killUnseen(ctx, primary, before.Status.Record.Primary.RunID)
	} else {
		err = kubeapi.Kill(primary, redisProgram)
	}
	if err != nil {
		return false, err
	}
	if _, err := c.awaitMoved(ctx, before.Status.Record.Epoch); err != nil {
		return false, err
	}
	if err := c.replace(ctx, primary); err != nil {
		return false, err
	}
	if _, err := c.awaitWhole(ctx); err != nil {
		return false, err
	}
	return c.holds(ctx, value)
}

// killUnseen kills a pod's process with that run ID while the operator is suspended,
// until the next process listens.
func (c *subject) killUnseen(ctx context.Context, pod *corev1.Pod, runID string) error {
	if err := c.healOperator(ctx); err != nil {
		return err
	}
	processes, err := c.allOperatorProcesses(ctx)
	if err != nil {
		return err
	}
	if err := suspend(processes); err != nil {
		return err
	}
	defer resume(processes)
	if err := kubeapi.Kill(pod, redisProgram); err != nil {
		return err
	}
	return c.awaitRestart(ctx, pod, runID)
}

// store puts the data set in every member, through the Service.
func (c *subject) store(ctx context.Context, value string) error {
	connection, err := c.dialPrimary(ctx)
	if err != nil {
		return err
	}
	defer connection.Close()
	if _, err := connection.Do(ctx, "SET", datum, value); err != nil {
		return err
	}
	copies, err := connection.Do(ctx, "WAIT", strconv.Itoa(replicas), "2000")
	if err == nil && copies != strconv.Itoa(replicas) {
		err = fmt.Errorf("%s replicas of %d confirmed the data set", copies, replicas)
	}
	return err
}

// holds says whether every member has the data set.
func (c *subject) holds(ctx context.Context, value string) (bool, error) {
	pods, err := c.others(ctx, "")
	if err != nil {
		return false, err
	}
	for _, pod := range pods {
		if got, err := oracle.Do(ctx, c.at(pod), "GET", datum); err != nil || got != value {
			c.say("%s has %q, want %q: %v", pod.Name, got, value, err)
			return false, nil
		}
	}
	return true, nil
}

// dialPrimary connects through the Service once the proxies lead to the primary.
func (c *subject) dialPrimary(ctx context.Context) (connection *oracle.Connection, err error) {
	late := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, recoveryTimeout, true, func(ctx context.Context) (bool, error) {
		if connection, err = oracle.Dial(ctx, c.service); err == nil {
			if _, err = connection.Do(ctx, "SET", datum, ""); err != nil {
				connection.Close()
			}
		}
		return err == nil, nil
	})
	if late != nil {
		return nil, fmt.Errorf("connect to the primary through the Service: %w", errors.Join(late, err))
	}
	return connection, nil
}

// awaitRestart waits until another process than the one with that run ID listens in
// a pod. Nothing announces it.
func (c *subject) awaitRestart(ctx context.Context, pod *corev1.Pod, runID string) error {
	login, err := oracle.OperatorTarget(ctx, c.api, c.key, pod)
	if err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, recoveryTimeout, true, func(ctx context.Context) (bool, error) {
		server, err := oracle.Do(ctx, login, "INFO", "server")
		return err == nil && property(server, "run_id") != "" && property(server, "run_id") != runID, nil
	})
	if err != nil {
		return fmt.Errorf("wait until %s restarts: %w", pod.Name, err)
	}
	return nil
}

// killAll ends processes at once, in order.
func killAll(processes ...int) error {
	for _, pid := range processes {
		if err := kubeapi.SignalProcesses([]int{pid}, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return nil
}
