package controllers_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/testkit/apiserver"
	"seang.org/operator/internal/testkit/nodes"
)

func pod(t *testing.T, c client.Client, namespace, name string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, pod); err != nil {
		t.Fatalf("read pod %s: %v", name, err)
	}
	return pod
}

func TestAClusterComesToLifeAndSurvivesTheLossOfItsPrimary(t *testing.T) {
	for name, persistent := range map[string]bool{"in memory": false, "with persistence": true} {
		t.Run(name, func(t *testing.T) {
			server := apiserver.Get(t)
			namespace := server.Namespace(t)
			pods := nodes.Start(t, server.Client, namespace, "redis-7.0")
			operate(t, server, namespace)
			c := cluster(namespace, 2, persistent)
			createReady(t, server.Client, c)
			if c.Status.Primary != "cache-0" || c.Status.ActiveReplicas != 2 || c.Status.Phase != v1alpha1.PhaseReady {
				t.Fatalf("status: %+v", c.Status)
			}
			old := pod(t, server.Client, namespace, c.Status.Primary)
			if old.Labels[naming.LabelRole] != naming.RolePrimary {
				t.Errorf("labels of the primary: %v", old.Labels)
			}
			pods.Restart(old.UID)
			await(t, server.Client, c, "another primary and Ready", func() bool { return c.Status.Primary != "cache-0" && isReady(c) })
			if c.Status.Record.Epoch != 2 {
				t.Errorf("record: %+v", c.Status.Record)
			}
			if again := pod(t, server.Client, namespace, "cache-0"); again.Labels[naming.LabelRole] != naming.RoleReplica {
				t.Errorf("labels of the old primary: %v", again.Labels)
			}
		})
	}
}
