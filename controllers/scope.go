package controllers

import (
	"crypto/tls"
	"errors"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/kube"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/admin"
	"seang.org/operator/internal/redis/conf"
	"seang.org/operator/internal/redis/plan"
	"seang.org/operator/internal/status"
)

// scope is what one pass knows of one RedisCluster. Each step adds to it; it
// does not outlive the pass.
type scope struct {
	cluster *v1alpha1.RedisCluster
	memory  *memory
	apply   *kube.Applier
	now     time.Time

	defaultImage string
	anyUser      bool
	// template is what the pods are to be made from.
	template map[string]string
	// firstRecord is the record that the pass began with.
	firstRecord *v1alpha1.Record

	// Found by reconcileSecrets: the content of the Secret of the system, and since when
	// there is one.
	credentials admin.Credentials
	system      map[string][]byte
	systemSince time.Time

	// Found by reconcileCertificate: what members have or are about to get, and how they
	// prove that they do.
	tls   conf.TLS
	proof func(host string) *tls.Config

	// Found by observe.
	observed    bool
	statefulSet *appsv1.StatefulSet
	// rendered are the user's directives that pods start with; nil while there are none.
	rendered map[string]string
	pods     map[string]*corev1.Pod
	facts    plan.Facts
	decision plan.Decision
	silent   sync.Map // error by pod, of members that do not answer in this pass
	plain    sync.Map // pods that serve TLS, and connections without it too

	// What other steps than the planner's found.
	limit     int64 // memory limit in bytes to render: the spec's, unless it is refused
	maxMemory int64 // in force on every member, in bytes; 0 if not
	rejected  *status.Problem
	// held says that what the spec asks for is still being checked: children stay as
	// they are.
	held  bool
	waits []plan.Wait
	acted bool
	// missing is why the StatefulSet creates no pods, in its own words.
	missing string
	// ending says that the namespace is being deleted: nothing can be created in it.
	ending bool
	// configChanged says that pods which start from now on get another configuration.
	configChanged bool
	dataLost      bool
	// networkPolicy is the name of the NetworkPolicy; empty for none.
	networkPolicy string
	// postponed says that a change of the status is left to a pass soon.
	postponed bool
	failovers int
	// lookWithin is when at the latest to look again, of itself; 0 if not at all.
	lookWithin time.Duration
}

func (r *RedisClusterReconciler) newScope(cluster *v1alpha1.RedisCluster) *scope {
	memory := r.memories.of(client.ObjectKeyFromObject(cluster))
	cluster = memory.newest(cluster)
	return &scope{
		cluster: cluster,
		memory:  memory,
		apply:   &kube.Applier{Client: r.Client, Live: r.Live, Owner: cluster, Written: memory.children},
		now:     r.Clock.Now(),
		limit:   cluster.Spec.MemoryLimit.Value(),

		defaultImage: r.DefaultImage,
		anyUser:      r.AnyUser,

		networkPolicy: cluster.Status.NetworkPolicy,
		firstRecord:   cluster.Status.Record,
	}
}

func (s *scope) paused() bool {
	return s.cluster.Annotations[naming.AnnotationPaused] == "true"
}

func (s *scope) persistent() bool { return persistent(s.cluster) }

func persistent(cluster *v1alpha1.RedisCluster) bool {
	return ptr.Deref(cluster.Spec.EnablePersistence, false)
}

// minReplicas that must acknowledge for a write to be accepted, whatever happens; 0
// if that depends on who is in sync.
func (s *scope) minReplicas() int {
	d := s.cluster.Spec.Durability
	if d == nil || d.Mode != v1alpha1.DurabilityStrict {
		return 0
	}
	return max(1, int(d.MinReplicas))
}

// wanted is the number of members that the spec asks for.
func (s *scope) wanted() int { return 1 + int(s.cluster.Spec.Replicas) }

// primaryPod is the pod that the primary Service is to select.
func (s *scope) primaryPod() string {
	if s.decision.Service != "" {
		return s.decision.Service
	}
	if record := s.cluster.Status.Record; record != nil && record.Primary.Pod != "" {
		return record.Primary.Pod
	}
	return naming.Pod(s.cluster.Name, 0)
}

// errRejected ends a pass whose spec was rejected; the status says why.
var errRejected = errors.New("the spec is rejected")

// reject notes the first thing that is wrong with the spec.
func (s *scope) reject(reason, message string) {
	if s.rejected == nil {
		s.rejected = &status.Problem{Reason: reason, Message: message}
	}
}

func (s *scope) wait(w plan.Wait) { s.waits = append(s.waits, w) }

// absorb turns errors that the user must mend into facts of the status, so that
// they are not retried in a storm; it returns the others.
func (s *scope) absorb(err error) error {
	switch {
	case err == nil, errors.Is(err, errRejected):
		return nil
	case errors.Is(err, kube.ErrOrphan):
		s.wait(plan.Wait{Reason: v1alpha1.ReasonDeleting, Message: err.Error(), Poll: true})
	case errors.Is(err, kube.ErrNameConflict):
		s.reject(v1alpha1.ReasonNameConflict, err.Error())
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		s.reject(v1alpha1.ReasonRejected, err.Error())
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		s.ending = true
		s.wait(plan.Wait{Reason: v1alpha1.ReasonDeleting, Message: "the namespace is being deleted"})
	default:
		return err
	}
	return nil
}

// listensSoon says that a container runs whose Redis does not answer: it starts,
// or hangs, and nothing will tell when that ends.
func (s *scope) listensSoon() bool {
	return slices.ContainsFunc(s.facts.Members, func(m plan.Member) bool {
		pod := s.pods[m.Pod]
		return pod != nil && m.Info == nil && running(pod)
	})
}

// nextLook is when to look again if no event asks for it sooner.
func (s *scope) nextLook() time.Duration {
	if s.postponed {
		return min(statusDelay, s.nextPoll())
	}
	return s.nextPoll()
}

func (s *scope) nextPoll() time.Duration {
	poll := s.acted || s.listensSoon()
	for _, w := range append(s.decision.Waits, s.waits...) {
		poll = poll || w.Poll
	}
	switch {
	case s.missing != "", s.ending:
		return retryInterval
	case s.paused() || !poll:
		s.memory.polls = 0
		if s.lookWithin > 0 {
			return min(s.lookWithin, idleInterval)
		}
		return idleInterval
	case s.memory.polls == 0:
		s.memory.polls++
		return firstPollInterval
	}
	s.memory.polls++
	if s.memory.polls > 600 {
		return 10 * pollInterval
	}
	return pollInterval
}
