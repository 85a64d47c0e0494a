package resources

import (
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"seang.org/operator/internal/naming"
)

// ConfigMap holds redis.conf and the start script.
func ConfigMap(in Input) *corev1ac.ConfigMapApplyConfiguration {
	data := map[string]string{
		naming.KeyRedisConf: in.RedisConf,
		naming.KeyStart:     in.StartScript,
	}
	if in.Unreadable != "" {
		data[naming.KeyUnreadable] = in.Unreadable
	}
	return corev1ac.ConfigMap(naming.ConfigMap(in.name()), in.namespace()).
		WithLabels(in.selector()).
		WithOwnerReferences(in.owner()).
		WithData(data)
}
