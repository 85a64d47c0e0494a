package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/admin"
	"seang.org/operator/internal/redis/plan"
	"seang.org/operator/internal/resources"
)

// errVoid ends a plan that the facts have overtaken.
var errVoid = errors.New("the process that the plan speaks of no longer answers")

// do does one step of a plan.
func (r *RedisClusterReconciler) do(ctx context.Context, s *scope, step plan.Step) error {
	logf.FromContext(ctx).Info("step", "step", stepName(step), "reason", step.Reason())
	if id, command := commandOf(ctx, step); command != nil {
		return r.on(ctx, s, id, command)
	}
	switch step := step.(type) {
	case plan.WriteRecord:
		return r.writeRecord(ctx, s, step.Record)
	case plan.PointService:
		return r.pointService(ctx, s, step.Pod)
	case plan.Label:
		return r.label(ctx, s, step)
	case plan.Switchover:
		return r.switchover(ctx, s, step)
	case plan.KeepAside:
		return r.keepAside(ctx, s, step)
	case plan.Kill:
		return r.kill(ctx, s, step)
	case plan.Replace:
		return r.replace(ctx, s, step)
	}
	return fmt.Errorf("no code does the step %s", stepName(step))
}

// commandOf is the command of a step that is no more than one command to a member;
// nil for other steps.
func commandOf(ctx context.Context, step plan.Step) (v1alpha1.MemberID, func(*admin.Member) error) {
	switch step := step.(type) {
	case plan.Promote:
		return step.Member, func(m *admin.Member) error { return m.Promote(ctx) }
	case plan.Follow:
		return step.Member, func(m *admin.Member) error { return m.Follow(ctx, step.IP, step.TLS) }
	case plan.Detach:
		return step.Member, func(m *admin.Member) error { return m.Detach(ctx) }
	case plan.Serve:
		return step.Member, func(m *admin.Member) error { return m.Serve(ctx) }
	case plan.AppendOnly:
		return step.Member, func(m *admin.Member) error { return m.AppendOnly(ctx) }
	case plan.SetLease:
		return step.Member, func(m *admin.Member) error { return m.SetMinReplicas(ctx, step.Replicas, plan.MaxLagSeconds) }
	}
	return v1alpha1.MemberID{}, nil
}

// on runs a command on the very process that the plan speaks of.
func (r *RedisClusterReconciler) on(ctx context.Context, s *scope, id v1alpha1.MemberID, command func(*admin.Member) error) error {
	pod := s.pods[id.Pod]
	if pod == nil || pod.UID != id.PodUID {
		return fmt.Errorf("%s: %w", id.Pod, errVoid)
	}
	member, err := r.member(ctx, s, id.Pod)
	if err != nil {
		return err
	}
	if member.RunID() != id.RunID {
		return fmt.Errorf("%s: %w", id.Pod, errVoid)
	}
	return command(member)
}

func isMemberError(err error) bool {
	return errors.Is(err, errVoid) || admin.IsMemberError(err)
}

// writeRecord stores the record in the status; a conflict voids the plan.
func (r *RedisClusterReconciler) writeRecord(ctx context.Context, s *scope, record v1alpha1.Record) error {
	next := s.cluster.DeepCopy()
	next.Status.Record = &record
	if err := r.Status().Update(ctx, next); err != nil {
		return fmt.Errorf("store the record of epoch %d: %w", record.Epoch, err)
	}
	s.wrote(next)
	return nil
}

// wrote makes the result of a write of ours the base of the next.
func (s *scope) wrote(cluster *v1alpha1.RedisCluster) {
	s.cluster = cluster
	s.apply.Owner = cluster
	s.memory.wrote(cluster)
}

// pointService makes the primary Service select the pod, in one write.
func (r *RedisClusterReconciler) pointService(ctx context.Context, s *scope, pod string) error {
	in := s.input()
	in.Primary = pod
	wanted := resources.PrimaryService(in)
	_, err := s.apply.Apply(ctx, wanted, &corev1.Service{})
	version := s.apply.Written["Service "+s.cluster.Namespace+"/"+*wanted.GetName()].ResourceVersion
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
		// The way in which the user wants it exposed must not keep it from its primary.
		version, err = r.selectPrimary(ctx, wanted)
	}
	if err != nil {
		return err
	}
	s.facts.Service = pod
	s.memory.service, s.memory.serviceVersion = pod, version
	return nil
}

// selectPrimary writes the selector of a Service of ours, and leaves the rest of it as it
// is. It returns the version that has it.
func (r *RedisClusterReconciler) selectPrimary(ctx context.Context, wanted *corev1ac.ServiceApplyConfiguration) (string, error) {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"selector": wanted.Spec.Selector}})
	if err != nil {
		return "", err
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: *wanted.GetNamespace(), Name: *wanted.GetName()}}
	if err := r.Patch(ctx, service, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(naming.FieldOwner)); err != nil {
		return "", fmt.Errorf("move the selector of Service %s: %w", client.ObjectKeyFromObject(service), err)
	}
	return service.ResourceVersion, nil
}

// label sets the role label of a pod, unless the pod was replaced.
func (r *RedisClusterReconciler) label(ctx context.Context, s *scope, step plan.Label) error {
	pod := s.pods[step.Pod]
	if pod == nil {
		return nil
	}
	value := `null`
	if step.Role != "" {
		value = fmt.Sprintf("%q", step.Role)
	}
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"labels":{%q:%s}}}`, pod.UID, naming.LabelRole, value)
	changed := pod.DeepCopy()
	err := r.Patch(ctx, changed, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(naming.FieldOwner))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("label pod %s with role %q: %w", step.Pod, step.Role, err)
	}
	p := s.memory.pod(pod.UID)
	p.label, p.version = step.Role, changed.ResourceVersion
	return nil
}

// killGraceSeconds is the grace of a process that hangs: the least that the
// kubelet counts. With none, the pod object would go before the process ended.
const killGraceSeconds = 1

// kill makes the kubelet end a process that hangs.
func (r *RedisClusterReconciler) kill(ctx context.Context, s *scope, step plan.Kill) error {
	pod := s.pods[step.Pod]
	if pod == nil || pod.UID != step.UID {
		return nil
	}
	if err := r.leads(ctx, 0); err != nil {
		return err
	}
	err := r.Delete(ctx, pod, client.GracePeriodSeconds(killGraceSeconds), client.Preconditions{UID: &step.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete the pod %s, which hangs: %w", step.Pod, err)
	}
	r.event(s.cluster, corev1.EventTypeWarning, eventKilled, "Kill", step.Reason())
	return nil
}

// eventKilled is the reason of the Event that says which process was ended because it hung.
const eventKilled = "ProcessHung"

// eventKeptAside is the reason of the Event that says where data is that no other
// member may have.
const eventKeptAside = "DataKeptAside"

// keepAsideRetry is how often a member that could not save is told to try again.
const keepAsideRetry = 10 * time.Second

// keepAside begins to save what a member has, and says so once a process.
func (r *RedisClusterReconciler) keepAside(ctx context.Context, s *scope, step plan.KeepAside) error {
	if err := r.on(ctx, s, step.Member, func(m *admin.Member) error { return m.KeepAside(ctx) }); err != nil {
		return err
	}
	p := s.memory.pod(step.Member.PodUID)
	if p.keptAside.IsZero() {
		r.event(s.cluster, corev1.EventTypeWarning, eventKeptAside, "KeepAside", fmt.Sprintf("%s: saved in %s of its volume", step.Reason(), naming.FileAside))
	}
	p.keptAside = s.now
	return nil
}

// replace deletes a pod, if nobody changed it since it was read. The StatefulSet
// makes it anew.
func (r *RedisClusterReconciler) replace(ctx context.Context, s *scope, step plan.Replace) error {
	pod := s.pods[step.Pod]
	if pod == nil || pod.UID != step.UID {
		return fmt.Errorf("%s: %w", step.Pod, errVoid)
	}
	if err := r.leads(ctx, 0); err != nil {
		return err
	}
	err := r.Delete(ctx, pod, client.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return fmt.Errorf("%s: %w: %w", step.Pod, errVoid, err)
	}
	if err != nil {
		return fmt.Errorf("delete the pod %s to replace it: %w", step.Pod, err)
	}
	return nil
}

// How long writes stay paused at most, and how long the target of a switchover
// has to reach the offset of the old primary.
const (
	switchoverPause   = 2 * time.Second
	switchoverCatchUp = 1500 * time.Millisecond
)

// switchover hands the primary over in the order of safety rule 6. The record
// already names the new one. Whatever fails, one of the two ends as primary:
// here, or by the next pass.
func (r *RedisClusterReconciler) switchover(ctx context.Context, s *scope, step plan.Switchover) error {
	from, to, err := r.pair(ctx, s, step)
	if err != nil {
		return err
	}
	if err := from.PauseWrites(ctx, switchoverPause); err != nil {
		return err
	}
	if err := r.catchUp(ctx, from, to); err != nil {
		return errors.Join(err, from.Unpause(ctx))
	}
	demoted, err := from.DemoteAndRead(ctx)
	if err != nil {
		return errors.Join(err, from.Unpause(ctx))
	}
	if err := from.Unpause(ctx); err != nil {
		return err
	}
	reached, err := to.Info(ctx)
	if err != nil {
		return err
	}
	if !reached.Has(&demoted) {
		return errors.Join(fmt.Errorf("%s is at %s:%d, not at %s:%d: %w", step.To.Pod, reached.ReplicationID, reached.Offset, demoted.ReplicationID, demoted.Offset, errVoid), from.Promote(ctx))
	}
	if err := to.Promote(ctx); err != nil {
		return err
	}
	if err := from.Follow(ctx, step.ToIP, step.TLS); err != nil {
		return err
	}
	if s.facts.Service != step.To.Pod {
		if err := r.pointService(ctx, s, step.To.Pod); err != nil {
			return err
		}
	}
	return from.KillNormalClients(ctx)
}

// pair are the connections to both members of a switchover, once it is sure that
// nobody else can act before it is over (safety rule 12).
func (r *RedisClusterReconciler) pair(ctx context.Context, s *scope, step plan.Switchover) (from, to *admin.Member, err error) {
	for id, member := range map[v1alpha1.MemberID]**admin.Member{step.From: &from, step.To: &to} {
		if err := r.on(ctx, s, id, func(m *admin.Member) error { *member = m; return nil }); err != nil {
			return nil, nil, err
		}
	}
	if err := r.leads(ctx, switchoverPause); err != nil {
		return nil, nil, err
	}
	return from, to, nil
}

// leads confirms live that nobody else can act for some time: another may have led, and
// deleted a pod or moved the primary, since the plan was made.
func (r *RedisClusterReconciler) leads(ctx context.Context, left time.Duration) error {
	if r.Leads == nil {
		return nil
	}
	if err := r.Leads(ctx, left); err != nil {
		return fmt.Errorf("%w: %w", admin.ErrNotLeading, err)
	}
	return nil
}

// catchUp waits until the target has everything that the paused primary sent.
func (r *RedisClusterReconciler) catchUp(ctx context.Context, from, to *admin.Member) error {
	ctx, cancel := context.WithTimeout(ctx, switchoverCatchUp)
	defer cancel()
	goal, err := from.Info(ctx)
	if err != nil {
		return err
	}
	for {
		have, err := to.Info(ctx)
		if err != nil {
			return fmt.Errorf("the target did not reach offset %d in time: %w", goal.Offset, err)
		}
		if have.Has(&goal) {
			return nil
		}
	}
}
