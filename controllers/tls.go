package controllers

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/certificate"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis"
	"seang.org/operator/internal/redis/admin"
	"seang.org/operator/internal/redis/plan"
	"seang.org/operator/internal/resources"
)

const (
	// loadInterval is how often a member is asked to load a certificate that the kubelet
	// has not brought yet.
	loadInterval = 500 * time.Millisecond
	// touchInterval is how often the kubelet is made to look: it may look before it knows
	// of the change.
	touchInterval = 5 * time.Second
)

// mountsCertificate says that a pod serves TLS.
func mountsCertificate(pod *corev1.PodSpec) bool {
	return volumeOf(pod, naming.VolumeTLS) != nil
}

// mountsTLS says that pods are to serve TLS. They end to do so once the port without it
// is open everywhere: those that come next have no other.
func (s *scope) mountsTLS() bool {
	if s.cluster.Spec.TLS != nil {
		return !s.tls.Pair.Empty()
	}
	return s.statefulSet != nil && mountsCertificate(&s.statefulSet.Spec.Template.Spec) && !s.plainEverywhere()
}

// secured says that every pod serves TLS, also those that are made from now on.
func (s *scope) secured() bool {
	if s.cluster.Spec.TLS == nil || s.tls.Pair.Empty() || (s.statefulSet != nil && !mountsCertificate(&s.statefulSet.Spec.Template.Spec)) {
		return false
	}
	for _, pod := range s.pods {
		if !mountsCertificate(&pod.Spec) {
			return false
		}
	}
	return true
}

// anySecured says that a pod serves TLS.
func (s *scope) anySecured() bool {
	for _, pod := range s.pods {
		if mountsCertificate(&pod.Spec) {
			return true
		}
	}
	return false
}

// plainEverywhere says that every pod serves connections without TLS.
func (s *scope) plainEverywhere() bool {
	for name, pod := range s.pods {
		if _, open := s.plain.Load(name); mountsCertificate(&pod.Spec) && !open {
			return false
		}
	}
	return true
}

// closesPlain says that the port without TLS is to be closed.
func (s *scope) closesPlain() bool {
	return s.secured() && s.cluster.Spec.TLS.Plaintext != v1alpha1.PlaintextAllowed
}

// ports that the Services have.
func (s *scope) ports() resources.Ports {
	switch {
	case s.closesPlain():
		return resources.PortsSecure
	case s.secured(), s.cluster.Spec.TLS == nil && s.anySecured():
		return resources.PortsBoth
	}
	return resources.PortsPlain
}

// reconcileTLS brings the certificate and the ports into force on every member that
// serves TLS, and sees that each shows it.
func (r *RedisClusterReconciler) reconcileTLS(ctx context.Context, s *scope) error {
	deployed := true
	for i := range s.facts.Members {
		m := &s.facts.Members[i]
		if !m.TLS || s.tls.Pair.Empty() {
			continue
		}
		if m.Info == nil {
			deployed = false
			continue
		}
		done, err := r.secureMember(ctx, s, m)
		if err != nil {
			s.wait(waitForMembers("the certificate is not in force on " + m.Pod))
			if err := r.tolerateCommand(ctx, "secure "+m.Pod, err); err != nil {
				return err
			}
		}
		deployed = deployed && done && err == nil
	}
	if deployed && s.memory.deployed != s.tls.Hash() {
		s.memory.deployed, s.memory.deployedAt = s.tls.Hash(), s.now
	}
	return nil
}

// secureMember does the next thing for one member; true if it has its certificate.
func (r *RedisClusterReconciler) secureMember(ctx context.Context, s *scope, m *plan.Member) (bool, error) {
	member, err := r.member(ctx, s, m.Pod)
	if err != nil {
		return false, err
	}
	done, err := r.load(ctx, s, m, member)
	if err != nil {
		return false, err
	}
	if !done {
		s.wait(waitForMembers(m.Pod + " does not serve the new certificate yet"))
	}
	return done, r.reconcilePlain(ctx, s, m, member)
}

// load makes the member serve the certificate, and says whether it does.
func (r *RedisClusterReconciler) load(ctx context.Context, s *scope, m *plan.Member, member *admin.Member) (bool, error) {
	memory, wanted := s.memory.pod(m.PodUID), s.tls.Directives(member.CertificateDir())
	if change := difference(wanted, member.Listening()); len(change) > 0 {
		if s.now.Sub(memory.loadTried) < loadInterval {
			return false, nil
		}
		memory.loadTried = s.now
		// All of them: Redis reads the files of each again.
		err := member.SetListening(ctx, wanted)
		if admin.IsRefusal(err) {
			return false, r.touch(ctx, s, m, err)
		}
		if err != nil {
			return false, err
		}
		logf.FromContext(ctx).Info("certificate loaded", "pod", m.Pod, "directives", change)
	}
	shown := certificate.Hash(s.tls.Pair.Certificate)
	if memory.shown == shown {
		return true, nil
	}
	leaf, own := member.Certificate(), s.tls.Pair.Leaf()
	if !own.Equal(leaf) {
		pod := s.pods[m.Pod]
		var err error
		if leaf, err = r.Members.Handshake(ctx, r.target(s, pod)); err != nil {
			return false, err
		}
	}
	if !own.Equal(leaf) {
		return false, fmt.Errorf("%s shows the certificate %s and was told to serve %s: %w", m.Pod, leaf.SerialNumber, own.SerialNumber, admin.ErrCertificate)
	}
	memory.shown = shown
	return true, nil
}

// touch makes the kubelet look at what the pod mounts: by itself it would within a
// minute or two.
func (r *RedisClusterReconciler) touch(ctx context.Context, s *scope, m *plan.Member, refusal error) error {
	memory := s.memory.pod(m.PodUID)
	if s.now.Sub(memory.touched) < touchInterval {
		return nil
	}
	memory.touched = s.now
	logf.FromContext(ctx).V(1).Info("the certificate is not there yet", "pod", m.Pod, "error", refusal.Error())
	pod := s.pods[m.Pod].DeepCopy()
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"annotations":{%q:%q}}}`, pod.UID, naming.AnnotationTLS, s.tls.Hash()+"@"+s.now.UTC().Format(time.RFC3339))
	if err := r.Patch(ctx, pod, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(naming.FieldOwner)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("annotate pod %s, for the kubelet to bring its certificate: %w", m.Pod, err)
	}
	memory.version = pod.ResourceVersion
	return nil
}

// reconcilePlain opens or closes the member's port without TLS. It is closed once every
// link has moved to the other.
func (r *RedisClusterReconciler) reconcilePlain(ctx context.Context, s *scope, m *plan.Member, member *admin.Member) error {
	switch {
	case !s.closesPlain() && !member.Plain():
		if err := member.OpenPlain(ctx); err != nil {
			return err
		}
		logf.FromContext(ctx).Info("port without TLS opened", "pod", m.Pod)
	case s.closesPlain() && member.Plain() && !s.linksSecured():
		s.wait(waitForMembers("the port without TLS of " + m.Pod + " is closed once all members are linked with TLS"))
	case s.closesPlain() && member.Plain():
		if err := member.ClosePlain(ctx); err != nil {
			return err
		}
		logf.FromContext(ctx).Info("port without TLS closed", "pod", m.Pod)
	}
	s.notePlain(m.Pod, member)
	return nil
}

// notePlain notes whether the port without TLS is open.
func (s *scope) notePlain(pod string, member *admin.Member) {
	if member.Plain() {
		s.plain.Store(pod, true)
	} else {
		s.plain.Delete(pod)
	}
}

// linksSecured says that every replica follows the primary with TLS.
func (s *scope) linksSecured() bool {
	primary := s.decision.Primary
	for i := range s.facts.Members {
		m := &s.facts.Members[i]
		switch {
		case primary == nil, !m.Answers():
			return false
		case m.Pod != primary.Pod && m.Info.PrimaryPort != redis.PortTLS:
			return false
		}
	}
	return true
}

// appCA is what applications are to trust; nil where they are to use no TLS. They are told
// to use it once all members serve it, and not to once all can be reached without.
func (s *scope) appCA() []byte {
	if s.secured() || (s.cluster.Spec.TLS == nil && s.anySecured() && !s.plainEverywhere()) {
		return s.tls.Pair.CA
	}
	return nil
}
