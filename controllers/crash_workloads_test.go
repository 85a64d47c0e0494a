package controllers_test

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis"
	"seang.org/operator/internal/testkit/authority"
)

// workload is one thing that a person asks for, or that happens.
type workload struct {
	name string
	// begin asks for it.
	begin func(l *lane)
	// done says what is still to come; nil if nothing is.
	done func(l *lane, pods map[string]*corev1.Pod) error
	// unplanned ones may lose what was acknowledged a moment before.
	unplanned bool
}

func pending(isPending bool, format string, arguments ...any) error {
	if isPending {
		return fmt.Errorf(format, arguments...)
	}
	return nil
}

func create() workload {
	return workload{name: "create",
		begin: func(l *lane) {
			if err := l.client.Create(l.t.Context(), l.wanted.DeepCopy()); err != nil {
				l.t.Fatalf("create: %v", err)
			}
		},
		done: func(l *lane, pods map[string]*corev1.Pod) error {
			// Each creation makes another password.
			password, err := l.secretValue(naming.AppSecret("cache"), naming.KeyPassword)
			if err != nil {
				return err
			}
			l.password = password
			return pending(l.cluster == nil || len(pods) < 2, "no RedisCluster")
		}}
}

func remove() workload {
	return workload{name: "delete",
		begin: func(l *lane) {
			if err := l.client.Delete(l.t.Context(), l.wanted.DeepCopy()); err != nil {
				l.t.Fatalf("delete: %v", err)
			}
		},
		done: func(l *lane, pods map[string]*corev1.Pod) error {
			return pending(l.cluster != nil || len(pods) > 0, "it is still there, with %d pods", len(pods))
		}}
}

// collect deletes what is left, as the garbage collector does.
func collect() workload {
	return workload{name: "collect",
		begin: func(l *lane) {
			all, err := listAll(l.t.Context(), l.client, l.namespace)
			for i := range all {
				err = errors.Join(err, client.IgnoreNotFound(l.client.Delete(l.t.Context(), &all[i])))
			}
			if err != nil {
				l.t.Fatalf("collect garbage: %v", err)
			}
		},
		done: func(*lane, map[string]*corev1.Pod) error { return nil }}
}

func switchover(to int) workload {
	target := naming.Pod("cache", to)
	return workload{name: "switchover to " + target,
		begin: func(l *lane) { l.annotate(naming.AnnotationSwitchoverTo, target) },
		done: func(l *lane, _ map[string]*corev1.Pod) error {
			_, asked := l.cluster.Annotations[naming.AnnotationSwitchoverTo]
			if !asked && l.cluster.Status.Primary != target {
				// Refused, by an operator that saw the target as it was before: a person
				// asks again.
				l.annotate(naming.AnnotationSwitchoverTo, target)
			}
			return pending(asked || l.cluster.Status.Primary != target, "asked: %t, primary %s", asked, l.cluster.Status.Primary)
		}}
}

func failover() workload {
	var old string
	return workload{name: "failover", unplanned: true,
		begin: func(l *lane) {
			old = l.cluster.Status.Primary
			l.nodes.Restart(l.before[old].UID)
		},
		done: func(l *lane, _ map[string]*corev1.Pod) error {
			return pending(l.cluster.Status.Primary == old, "the primary is %s still", old)
		}}
}

func scale(replicas int) workload {
	return workload{name: fmt.Sprintf("scale to %d replicas", replicas),
		begin: func(l *lane) { l.patch(fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)) },
		done: func(_ *lane, pods map[string]*corev1.Pod) error {
			return pending(len(pods) != 1+replicas, "%d pods", len(pods))
		}}
}

func configure(policy string) workload {
	return workload{name: "config " + policy,
		begin: func(l *lane) { l.patch(fmt.Sprintf(`{"spec":{"config":{"maxmemory-policy":%q}}}`, policy)) },
		done: func(l *lane, pods map[string]*corev1.Pod) error {
			for _, pod := range pods {
				if err := l.hasPolicy(pod, policy); err != nil {
					return err
				}
			}
			return nil
		}}
}

func roll() workload {
	n := 0
	return workload{name: "roll",
		begin: func(l *lane) {
			n++
			l.annotate(naming.AnnotationRestartedAt, fmt.Sprint(n))
		},
		done: func(l *lane, pods map[string]*corev1.Pod) error {
			for name, pod := range pods {
				if l.before[name].UID == pod.UID {
					return fmt.Errorf("%s is the old one", name)
				}
			}
			return nil
		}}
}

// secure turns TLS on, and off.
func secure(on bool) workload {
	patch := `{"spec":{"tls":null}}`
	if on {
		patch = `{"spec":{"tls":{"secretName":"certificate"}}}`
	}
	return workload{name: fmt.Sprintf("TLS %t", on),
		begin: func(l *lane) {
			secret := certificateSecret(l.namespace, "certificate", authority.New(l.t, "ca").Issue(covering(l.namespace)))
			if err := l.client.Create(l.t.Context(), secret); client.IgnoreAlreadyExists(err) != nil {
				l.t.Fatalf("create a Secret: %v", err)
			}
			l.patch(patch)
		},
		done: func(_ *lane, pods map[string]*corev1.Pod) error {
			for _, pod := range pods {
				if err := errors.Join(listens(redis.PortTLS, on)(pod), listens(redis.Port, !on)(pod)); err != nil {
					return fmt.Errorf("%s: %w", pod.Name, err)
				}
			}
			return nil
		}}
}

func workloads(course string) []workload {
	switch course {
	case "tls":
		return []workload{secure(true), secure(false)}
	case "lifecycle":
		return []workload{create(), remove(), collect()}
	case "switchover":
		return []workload{switchover(1), switchover(0)}
	case "failover":
		return []workload{failover()}
	case "scale":
		return []workload{scale(2), switchover(2), scale(1)}
	case "rotation":
		return rotations()
	case "config":
		return []workload{configure("allkeys-lru"), configure("volatile-lru")}
	}
	return []workload{roll()}
}
