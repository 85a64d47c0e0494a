package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/kube"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/admin"
	"seang.org/operator/internal/redis/plan"
)

// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch;patch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=list;watch;patch;delete

// observe gathers the facts and lets the planner decide.
func (r *RedisClusterReconciler) observe(ctx context.Context, s *scope) error {
	if err := r.observeObjects(ctx, s); err != nil {
		return err
	}
	if err := r.observeRendered(ctx, s); err != nil {
		return err
	}
	claims, err := r.claims(ctx, s)
	if err != nil {
		return err
	}
	members := s.places()
	s.facts = plan.Facts{
		Now:         s.now,
		Wanted:      s.wanted(),
		Persistent:  s.persistent() || slices.ContainsFunc(members, func(m plan.Member) bool { return m.Persistent }),
		InOrder:     s.addsVolumes(members),
		MinReplicas: s.minReplicas(),
		MoveTo:      s.cluster.Annotations[naming.AnnotationSwitchoverTo],
		Accept:      s.cluster.Annotations[naming.AnnotationAcceptDataLoss],
		Record:      s.record(claims),
		Members:     members,
		Gone:        map[types.UID]plan.Proof{},
	}
	if s.facts.Service, err = r.servicePod(ctx, s); err != nil {
		return err
	}
	if s.memory.syncing {
		r.requestAcks(ctx, s)
	}
	if err := r.ask(ctx, s); err != nil {
		return err
	}
	s.compareTemplates()
	// What was read is of this moment at the earliest: a lease counted from the
	// start of the pass would begin before the replicas were detached.
	s.now = r.Clock.Now()
	s.remember(claims)
	s.memory.proxies.note(s.now, s.endpoints())
	s.facts.ProxiesIdle, s.facts.ProxiesFollowed = s.memory.proxies.idle(s.now), s.memory.proxies.followed(s.now)
	r.clocks(s)
	s.decision = plan.Next(s.facts)
	s.memory.syncing = slices.ContainsFunc(s.decision.Waits, func(w plan.Wait) bool { return w.Reason == v1alpha1.ReasonReplicaSyncing })
	s.observed = true
	return nil
}

// requestAcks makes replicas that copy tell the primary now how far they are,
// rather than at their next second.
func (r *RedisClusterReconciler) requestAcks(ctx context.Context, s *scope) {
	if s.facts.Record == nil {
		return
	}
	if member, err := r.member(ctx, s, s.facts.Record.Primary.Pod); err == nil {
		if err := member.RequestAcks(ctx); err != nil {
			logf.FromContext(ctx).V(1).Info("asking for acknowledgements failed", "error", err.Error())
		}
	}
}

// servicePod is the pod that the primary Service selects.
func (r *RedisClusterReconciler) servicePod(ctx context.Context, s *scope) (string, error) {
	service := &corev1.Service{}
	key := client.ObjectKey{Namespace: s.cluster.Namespace, Name: naming.PrimaryService(s.cluster.Name)}
	if err := client.IgnoreNotFound(r.Get(ctx, key, service)); err != nil {
		return "", fmt.Errorf("read Service %s: %w", key, err)
	}
	if kube.Older(service.ResourceVersion, s.memory.serviceVersion) {
		return s.memory.service, nil
	}
	return service.Spec.Selector[naming.LabelPodName], nil
}

// observeObjects reads the StatefulSet and the pods.
func (r *RedisClusterReconciler) observeObjects(ctx context.Context, s *scope) error {
	s.statefulSet = &appsv1.StatefulSet{}
	key := client.ObjectKey{Namespace: s.cluster.Namespace, Name: naming.StatefulSet(s.cluster.Name)}
	if err := r.Get(ctx, key, s.statefulSet); err != nil {
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read StatefulSet %s: %w", key, err)
		}
		s.statefulSet = nil
	}
	pods := &corev1.PodList{}
	if err := r.List(ctx, pods, ofCluster(s.cluster)...); err != nil {
		return fmt.Errorf("list the pods of %s: %w", s.cluster.Name, err)
	}
	s.pods = map[string]*corev1.Pod{}
	keep := map[admin.Key]bool{}
	for i := range pods.Items {
		keep[keyOf(&pods.Items[i])] = true
		if _, ok := naming.Ordinal(s.cluster.Name, pods.Items[i].Name); ok {
			s.pods[pods.Items[i].Name] = &pods.Items[i]
		}
	}
	r.Members.Retain(s.cluster.Namespace, s.cluster.Name, keep)
	return nil
}

func keyOf(pod *corev1.Pod) admin.Key {
	return admin.Key{Namespace: pod.Namespace, Pod: pod.Name, UID: string(pod.UID)}
}

// places returns a member for each pod and each wanted ordinal, by ordinal.
func (s *scope) places() []plan.Member {
	var members []plan.Member
	for ordinal := range s.wanted() {
		if name := naming.Pod(s.cluster.Name, ordinal); s.pods[name] == nil {
			members = append(members, plan.Member{Pod: name, Ordinal: ordinal})
		}
	}
	for name, pod := range s.pods {
		ordinal, _ := naming.Ordinal(s.cluster.Name, name)
		members = append(members, plan.Member{
			Pod: name, PodUID: pod.UID, Ordinal: ordinal, IP: pod.Status.PodIP,
			Leaving: !pod.DeletionTimestamp.IsZero(), Role: pod.Labels[naming.LabelRole],
			Killed:     pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds <= killGraceSeconds,
			Persistent: onVolume(pod),
			TLS:        mountsCertificate(&pod.Spec),
			Trouble:    podTrouble(pod),
		})
	}
	slices.SortFunc(members, func(a, b plan.Member) int { return a.Ordinal - b.Ordinal })
	return members
}

// ask reads what each process says: first those that may accept writes, then the
// others, so that what these say is newer than the proof that the first ended (rule
// Settled). The silence of a member is a fact; the only error is that another
// operator leads.
func (r *RedisClusterReconciler) ask(ctx context.Context, s *scope) error {
	for _, suspect := range []bool{true, false} {
		var group errgroup.Group
		for i := range s.facts.Members {
			m := &s.facts.Members[i]
			if m.IP == "" || s.facts.MayAcceptWrites(m) != suspect {
				continue
			}
			group.Go(func() error { return r.askOne(ctx, s, m) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	for i := range s.facts.Members {
		m := &s.facts.Members[i]
		if pod := s.pods[m.Pod]; pod != nil && m.Info == nil && ended(pod) {
			m.Proof = plan.ProofTerminated
		}
	}
	return nil
}

// askOne reads what one process says; a connection that broke under the question
// is dialled once more, and what that dial says is the proof, or the answer.
func (r *RedisClusterReconciler) askOne(ctx context.Context, s *scope, m *plan.Member) error {
	for range 2 {
		member, err := r.member(ctx, s, m.Pod)
		switch {
		case errors.Is(err, admin.ErrNotLeading):
			return err
		case errors.Is(err, admin.ErrRefused):
			m.Proof = plan.ProofRefused
		}
		m.Hangs = errors.Is(err, admin.ErrHangs)
		if member == nil {
			return nil
		}
		if info, err := member.Info(ctx); err == nil {
			m.Info, m.Serving = &info, member.Serving()
			s.notePlain(m.Pod, member)
			return nil
		}
	}
	return nil
}

// member returns the connection to a pod's process, dialling if there is none. One
// that was silent is not waited for again in the same pass.
func (r *RedisClusterReconciler) member(ctx context.Context, s *scope, pod string) (*admin.Member, error) {
	p := s.pods[pod]
	if p == nil || p.Status.PodIP == "" {
		return nil, fmt.Errorf("pod %s: %w", pod, admin.ErrUnreachable)
	}
	if err, silent := s.silent.Load(pod); silent {
		return nil, err.(error) //nolint:forcetypeassert // Only errors are stored.
	}
	if mountsCertificate(&p.Spec) && s.proof == nil {
		return nil, fmt.Errorf("pod %s serves TLS, and it is not known with which certificate: %w", pod, admin.ErrUnreachable)
	}
	member, err := r.Members.Connect(ctx, r.target(s, p))
	if errors.Is(err, admin.ErrUnreachable) {
		s.silent.Store(pod, err)
	}
	return member, err
}

// target is how to reach the process of a pod.
func (r *RedisClusterReconciler) target(s *scope, pod *corev1.Pod) admin.Target {
	proof := s.prove(pod)
	return admin.Target{Key: keyOf(pod), Address: admin.Address(pod.Status.PodIP, proof != nil), Credentials: s.credentials, TLS: proof}
}

// remember updates what is kept between passes and adds it to the facts.
func (s *scope) remember(claims map[string]*corev1.PersistentVolumeClaim) {
	memory, record := s.memory, s.facts.Record
	for i := range s.facts.Members {
		m := &s.facts.Members[i]
		m.OldClaim = oldClaim(s.cluster, claims[m.Pod])
		memory.noteUnreadable(m, s.pods[m.Pod])
		if m.PodUID == "" {
			continue
		}
		p := memory.pod(m.PodUID)
		if kube.Older(s.pods[m.Pod].ResourceVersion, p.version) {
			m.Role = p.label
		}
		m.HangsFor = since(&p.hangsSince, s.now, m.Hangs)
		p.seen(m, s.now)
	}
	memory.marks.Apply(&s.facts)
	for uid, p := range memory.pods {
		if s.hasPod(uid) {
			continue
		}
		if p.proof == plan.NotProved && !mentions(record, uid) {
			delete(memory.pods, uid)
			continue
		}
		s.facts.Gone[uid] = p.proof
	}
}
