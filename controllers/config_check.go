package controllers

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/conf"
	"seang.org/operator/internal/redis/plan"
	"seang.org/operator/internal/redis/versions"
	"seang.org/operator/internal/resources"
)

// checked is what a real server without data made of directives.
type checked struct {
	// of is the hash of the pod that ran it.
	of string
	// values of the directives that were asked for.
	values map[string]string
	// refused is why it did not start; empty if it did.
	refused string
}

// checkConfig has a real server look at the directives before any member gets them,
// where no running member could tell: what is read at the start alone, and what a
// directive that is removed goes back to. It returns the values that were found, and
// holds the pass up while that goes on.
func (r *RedisClusterReconciler) checkConfig(ctx context.Context, s *scope, directives map[string]string) (map[string]string, error) {
	pod := &corev1.Pod{}
	key := client.ObjectKey{Namespace: s.cluster.Namespace, Name: naming.ConfigCheck(s.cluster.Name)}
	if err := client.IgnoreNotFound(r.Get(ctx, key, pod)); err != nil {
		return nil, fmt.Errorf("read pod %s: %w", key, err)
	}
	removed := s.removed(directives)
	if !s.mustCheck(directives, removed) {
		return nil, r.endCheck(ctx, pod)
	}
	text, err := conf.RenderCheck(directives)
	if err != nil {
		return nil, fmt.Errorf("render the directives to check: %w", err)
	}
	in := s.input()
	in.Image = s.image()
	// It must ask for one at least.
	wanted, err := resources.ConfigCheck(in, text, append(removed, "databases"))
	if err != nil {
		return nil, err
	}
	of := partHash(wanted)
	wanted.WithAnnotations(map[string]string{naming.AnnotationTemplate: of})
	if s.memory.checked.of != of {
		if err := r.runCheck(ctx, s, pod, wanted, of); err != nil || s.held {
			return nil, err
		}
	}
	if refused := s.memory.checked.refused; refused != "" {
		s.reject(v1alpha1.ReasonInvalidConfig, fmt.Sprintf("a server of the image %s does not start with config: %s", in.Image, refused))
	}
	s.checkData(s.memory.checked.values)
	return s.memory.checked.values, r.endCheck(ctx, pod)
}

// checkData refuses an image whose server is known to be unable to load what the primary
// has. One of which that is not known is found out by the first replica.
func (s *scope) checkData(checked map[string]string) {
	primary := s.decision.Primary
	flavour, number := conf.CheckedServer(checked)
	if primary == nil || !s.imageChanges() || flavour == "" {
		return
	}
	has := versions.Server{Flavour: primary.Info.Flavour, Version: primary.Info.Version}
	if why := (versions.Server{Flavour: flavour, Version: number}).CannotLoad(has); why != "" {
		s.reject(v1alpha1.ReasonDowngradeRefused, fmt.Sprintf("the image %s cannot load the data: %s; no pod was replaced", s.image(), why))
	}
}

// mustCheck says that a change is asked for which no running member can judge.
func (s *scope) mustCheck(directives map[string]string, removed []string) bool {
	if s.rendered == nil {
		return false
	}
	if !maps.Equal(conf.StartOnly(s.rendered), conf.StartOnly(directives)) || s.imageChanges() {
		return true
	}
	return slices.ContainsFunc(removed, func(name string) bool {
		return slices.ContainsFunc(s.facts.Members, func(m plan.Member) bool {
			p := s.memory.pods[m.PodUID]
			if p == nil || m.Info == nil {
				return false
			}
			_, known := p.defaults[name]
			return !known
		})
	})
}

// removed are the directives that pods start with, and that the spec has no more, nor
// redis.conf without the user's.
func (s *scope) removed(directives map[string]string) []string {
	return dropped(conf.Live(s.rendered), conf.WithDefaults(directives))
}

// imageChanges says that the pods are to get another image.
func (s *scope) imageChanges() bool {
	container := redisContainer(&s.statefulSet.Spec.Template.Spec)
	return container != nil && container.Image != s.image()
}

// runCheck makes the pod, or reads what it found. While it goes on the pass is held.
func (r *RedisClusterReconciler) runCheck(ctx context.Context, s *scope, pod *corev1.Pod, wanted *corev1ac.PodApplyConfiguration, of string) error {
	switch {
	case pod.Name == "":
		s.hold("is about to check the directives")
		return r.child(ctx, s, wanted, &corev1.Pod{})
	case pod.Annotations[naming.AnnotationTemplate] != of:
		s.hold("checks other directives")
		return r.endCheck(ctx, pod)
	}
	result, ended := outcome(pod)
	switch {
	case !ended:
		if trouble := podTrouble(pod); trouble.Reason != "" {
			s.wait(trouble)
		}
		s.hold("checks the directives")
		return nil
	case result == nil:
		s.hold("was ended before it had checked the directives")
		return r.endCheck(ctx, pod)
	}
	result.of = of
	s.memory.checked = *result
	logf.FromContext(ctx).Info("configuration checked", "refused", result.refused)
	return nil
}

// outcome is what the pod's server found, nil if it was ended from outside; and
// whether it ended.
func outcome(pod *corev1.Pod) (result *checked, ended bool) {
	if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
		return nil, false
	}
	for _, container := range pod.Status.ContainerStatuses {
		switch end := container.State.Terminated; {
		case end == nil:
		case end.ExitCode == 0:
			return &checked{values: conf.ParseChecked(end.Message)}, true
		case end.ExitCode == 1:
			return &checked{refused: lastWords(end.Message)}, true
		case end.ExitCode == conf.ExitNoServer:
			return &checked{refused: "it has neither redis-server nor valkey-server on its PATH"}, true
		case end.Reason == "OOMKilled" || pod.Status.Reason == "DeadlineExceeded":
			return &checked{refused: fmt.Sprintf("%s %s", end.Reason, pod.Status.Reason)}, true
		}
	}
	return nil, true
}

// hold leaves all as it is until a server has checked the directives.
func (s *scope) hold(does string) {
	s.held = true
	s.wait(plan.Wait{Reason: v1alpha1.ReasonConfiguring, Message: fmt.Sprintf("a server without data, in the pod %s, %s", naming.ConfigCheck(s.cluster.Name), does)})
}

// The applier reads an object that its cache lacks past it.
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;create

// endCheck deletes the pod, if there is one.
func (r *RedisClusterReconciler) endCheck(ctx context.Context, pod *corev1.Pod) error {
	if pod.Name == "" || !pod.DeletionTimestamp.IsZero() {
		return nil
	}
	if err := client.IgnoreNotFound(r.Delete(ctx, pod, client.Preconditions{UID: &pod.UID})); err != nil {
		return fmt.Errorf("delete pod %s, which checked directives: %w", pod.Name, err)
	}
	return nil
}
