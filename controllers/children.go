package controllers

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/kube"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/conf"
	"seang.org/operator/internal/redis/plan"
	"seang.org/operator/internal/resources"
)

// +kubebuilder:rbac:groups="",resources=configmaps;services,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch

// reconcileConfigMap renders redis.conf and the start script. Pods read them at
// start; what a running member has is the business of reconcileConfig.
func (r *RedisClusterReconciler) reconcileConfigMap(ctx context.Context, s *scope) error {
	if (s.rejected != nil || s.held) && s.statefulSet != nil {
		return nil
	}
	redisConf, err := conf.Render(conf.Input{
		MemoryLimit: s.limit,
		Persistence: s.persistent(),
		MinReplicas: s.minReplicas(),
		Secure:      s.closesPlain(),
		Directives:  s.directives(),
	})
	if err != nil {
		return fmt.Errorf("render redis.conf: %w", err)
	}
	in := s.input()
	in.RedisConf, in.StartScript, in.Unreadable = redisConf, conf.StartScript, s.unreadable()
	wanted := resources.ConfigMap(in)
	changed, err := s.apply.Apply(ctx, wanted, &corev1.ConfigMap{})
	s.configChanged = changed == kube.Updated
	logChange(ctx, wanted, changed)
	return err
}

// reconcileServices keeps the three Services; that of the primary selects the
// primary's pod alone.
func (r *RedisClusterReconciler) reconcileServices(ctx context.Context, s *scope) error {
	if err := r.child(ctx, s, resources.NodesService(s.input()), &corev1.Service{}); err != nil {
		return err
	}
	if err := r.child(ctx, s, resources.ReplicasService(s.input()), &corev1.Service{}); err != nil {
		return err
	}
	return r.child(ctx, s, resources.PrimaryService(s.input()), &corev1.Service{})
}

// reconcileDisruptionBudget lets evictions take one member at a time.
func (r *RedisClusterReconciler) reconcileDisruptionBudget(ctx context.Context, s *scope) error {
	return r.child(ctx, s, resources.PodDisruptionBudget(s.input()), &policyv1.PodDisruptionBudget{})
}

// retryInterval is how often a StatefulSet that cannot create its pods is made
// to try again.
const retryInterval = 20 * time.Second

// reconcileStatefulSet keeps the pods. Its update strategy is OnDelete: the
// operator decides when a pod is replaced.
func (r *RedisClusterReconciler) reconcileStatefulSet(ctx context.Context, s *scope) error {
	if (s.rejected != nil || s.held) && s.statefulSet != nil {
		return nil
	}
	in := s.input()
	in.Image, in.StorageSize, in.Template = s.image(), s.storageSize(), encoded(s.template)
	if s.statefulSet != nil {
		if err := r.keepMembers(ctx, s, &in); err != nil {
			return err
		}
		if done, err := r.reconcileClaimTemplate(ctx, s, in); !done || err != nil {
			return err
		}
	}
	wanted, err := resources.StatefulSet(in)
	if err != nil {
		return err
	}
	s.awaitRoll()
	if s.podsMissing() {
		if s.missing = r.missingPods(ctx, s); s.missing != "" {
			// The StatefulSet controller backs off for minutes; a change of the
			// object makes it try at once.
			wanted.WithAnnotations(map[string]string{naming.AnnotationRetry: s.now.Truncate(retryInterval).UTC().Format(time.RFC3339)})
		}
	}
	return r.child(ctx, s, wanted, &appsv1.StatefulSet{})
}

// keepMembers leaves members in place that are not wanted, while they cannot be removed.
func (r *RedisClusterReconciler) keepMembers(ctx context.Context, s *scope, in *resources.Input) error {
	have := ptr.Deref(s.statefulSet.Spec.Replicas, 1) - 1
	switch {
	case have <= in.Replicas:
		return nil
	case s.decision.Removable:
		return r.leads(ctx, 0)
	}
	s.wait(plan.Wait{Reason: v1alpha1.ReasonScaling, Poll: true, Message: "members are removed once those that stay are in sync"})
	in.Replicas = have
	return nil
}

// input is what the builders of child objects need; what only that of the
// StatefulSet needs is added there.
func (s *scope) input() resources.Input {
	return resources.Input{
		Cluster:     s.cluster,
		AnyUser:     s.anyUser,
		TLS:         s.mountsTLS(),
		Ports:       s.ports(),
		CA:          s.appCA(),
		Primary:     s.primaryPod(),
		Replicas:    s.cluster.Spec.Replicas,
		Persistent:  s.persistent(),
		MemoryLimit: *resource.NewQuantity(s.limit, resource.BinarySI),
	}
}

// child applies one child object and logs what changed.
func (r *RedisClusterReconciler) child(ctx context.Context, s *scope, wanted kube.Configuration, current client.Object) error {
	changed, err := s.apply.Apply(ctx, wanted, current)
	if err != nil {
		return err
	}
	logChange(ctx, wanted, changed)
	return nil
}

func logChange(ctx context.Context, wanted any, changed kube.Changed) {
	if changed != kube.Unchanged {
		logf.FromContext(ctx).Info("child applied", "child", fmt.Sprintf("%T", wanted), "change", string(changed))
	}
}
