package main

import (
	"context"
	"fmt"
	"slices"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/test/e2e/kubeapi"
)

// leaderProcesses are those of the operator that leads.
func (s *suite) leaderProcesses(ctx context.Context) ([]int, error) {
	leader, err := s.api.Leader(ctx)
	if err != nil {
		return nil, err
	}
	return operatorProcesses(leader)
}

// allOperatorProcesses are those of the one that leads and of all that stand by.
func (s *suite) allOperatorProcesses(ctx context.Context) ([]int, error) {
	pods, err := s.api.OperatorPods(ctx)
	if err != nil {
		return nil, err
	}
	var all []int
	for i := range pods {
		processes, err := operatorProcesses(&pods[i])
		if err != nil {
			return nil, err
		}
		all = append(all, processes...)
	}
	return all, nil
}

func operatorProcesses(pod *corev1.Pod) ([]int, error) {
	processes, err := kubeapi.Processes(pod, kubeapi.OperatorProgram)
	if err == nil && len(processes) == 0 {
		err = fmt.Errorf("%s of pod %s: %w", kubeapi.OperatorProgram, pod.Name, kubeapi.ErrElsewhere)
	}
	return processes, err
}

// suspend stops processes at once; resume lets them go on. Those that ended
// meanwhile do not matter.
func suspend(processes []int) error { return kubeapi.SignalProcesses(processes, syscall.SIGSTOP) }

func resume(processes []int) {
	_ = kubeapi.SignalProcesses(processes, syscall.SIGCONT)
}

// healOperator replaces those pods of the operator whose process ended, which the
// kubelet would restart later and later, and waits until all are available.
func (s *suite) healOperator(ctx context.Context) error {
	return s.replaceOperator(ctx, func(pod *corev1.Pod) bool {
		statuses := pod.Status.ContainerStatuses
		return pod.DeletionTimestamp == nil && len(statuses) > 0 && (statuses[0].RestartCount > 0 || statuses[0].State.Terminated != nil)
	}, client.GracePeriodSeconds(1))
}

// restartOperator replaces all pods of the operator, and waits until it is back.
func (s *suite) restartOperator(ctx context.Context) error {
	return s.replaceOperator(ctx, func(*corev1.Pod) bool { return true })
}

func (s *suite) replaceOperator(ctx context.Context, which func(*corev1.Pod) bool, options ...client.DeleteOption) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("the operator is not back within %s", readyTimeout))
	defer cancel()
	pods, err := s.api.OperatorPods(ctx)
	if err != nil {
		return err
	}
	pods = slices.DeleteFunc(pods, func(pod corev1.Pod) bool { return !which(&pod) })
	for i := range pods {
		if err := s.api.Delete(ctx, &pods[i], options...); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete pod %s of the operator: %w", pods[i].Name, err)
		}
	}
	for i := range pods {
		if err := s.api.AwaitGone(ctx, &pods[i]); err != nil {
			return err
		}
	}
	return s.api.AwaitOperator(ctx)
}
