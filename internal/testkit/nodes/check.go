package nodes

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/conf"
	"seang.org/operator/internal/testkit/redisserver"
)

// checks says that the pod is no member, but checks directives.
func checks(pod *corev1.Pod) bool { return pod.Labels[naming.LabelName] == naming.CheckName }

// check runs the pod to its end.
func (n *Nodes) check(ctx context.Context, pod *corev1.Pod) bool {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return true
	}
	env := map[string]string{}
	for _, variable := range pod.Spec.Containers[0].Env {
		env[variable.Name] = variable.Value
	}
	code, message := redisserver.Check(n.t, n.flavour, env[conf.EnvCheckConf], env[conf.EnvCheckNames])
	pod.Status.Phase = corev1.PodSucceeded
	if code != 0 {
		pod.Status.Phase = corev1.PodFailed
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: naming.ContainerRedis, State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: int32(code), Message: message}}}}
	return client.IgnoreNotFound(n.client.Status().Update(ctx, pod)) == nil
}
