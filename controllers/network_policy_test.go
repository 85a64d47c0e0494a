package controllers_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/testkit/apiserver"
	"seang.org/operator/internal/testkit/nodes"
)

// patch changes an object as a person does, by a merge patch.
func patch(t *testing.T, c client.Client, object client.Object, text string, status bool) {
	t.Helper()
	change := client.RawPatch(types.MergePatchType, []byte(text))
	var err error
	if status {
		err = c.Status().Patch(t.Context(), object, change)
	} else {
		err = c.Patch(t.Context(), object, change)
	}
	if err != nil {
		t.Fatalf("patch with %s: %v", text, err)
	}
}

func policyOf(t *testing.T, c client.Client, cluster *v1alpha1.RedisCluster) *networkingv1.NetworkPolicy {
	t.Helper()
	policy := &networkingv1.NetworkPolicy{}
	err := c.Get(t.Context(), client.ObjectKey{Namespace: cluster.Namespace, Name: naming.NetworkPolicy(cluster.Name)}, policy)
	if client.IgnoreNotFound(err) != nil {
		t.Fatalf("read the NetworkPolicy: %v", err)
	}
	if err != nil {
		return nil
	}
	return policy
}

func TestANetworkPolicyIsThereFromTheStartAndComesBack(t *testing.T) {
	t.Parallel()
	server := apiserver.Get(t)
	namespace := server.Namespace(t)
	nodes.Start(t, server.Client, namespace, "redis-7.0")
	stop := operate(t, server, namespace)
	c := cluster(namespace, 1, false)
	createReady(t, server.Client, c)
	first := policyOf(t, server.Client, c)
	if first == nil || c.Status.NetworkPolicy != first.Name {
		t.Fatalf("the status names the NetworkPolicy %q, there is %v", c.Status.NetworkPolicy, first)
	}
	remove := func() {
		if err := server.Client.Delete(t.Context(), first); client.IgnoreNotFound(err) != nil {
			t.Fatalf("delete the NetworkPolicy: %v", err)
		}
	}
	remove()
	await(t, server.Client, c, "a NetworkPolicy again", func() bool {
		again := policyOf(t, server.Client, c)
		return again != nil && again.UID != first.UID
	})

	// As a release that knew no NetworkPolicies left it.
	stop()
	remove()
	patch(t, server.Client, c, `{"status": {"networkPolicy": null}}`, true)
	operate(t, server, namespace)
	patch(t, server.Client, c, `{"spec": {"replicas": 2}}`, false)
	nowReady := func() bool { return isReady(c) && c.Status.ActiveReplicas == c.Spec.Replicas }
	await(t, server.Client, c, "two replicas", nowReady)
	if policy := policyOf(t, server.Client, c); policy != nil {
		t.Errorf("clients of a RedisCluster that had no NetworkPolicy are shut out: %v", policy.Spec)
	}
	patch(t, server.Client, c, `{"spec": {"networkPolicy": {}}}`, false)
	await(t, server.Client, c, "a NetworkPolicy that was asked for", func() bool {
		return policyOf(t, server.Client, c) != nil && c.Status.NetworkPolicy != ""
	})
	patch(t, server.Client, c, `{"spec": {"networkPolicy": {"mode": "None"}}}`, false)
	await(t, server.Client, c, "no NetworkPolicy", func() bool {
		return policyOf(t, server.Client, c) == nil && c.Status.NetworkPolicy == ""
	})
}

func TestAServiceThatCannotBeExposedAsAskedStillMoves(t *testing.T) {
	t.Parallel()
	server := apiserver.Get(t)
	namespace := server.Namespace(t)
	pods := nodes.Start(t, server.Client, namespace, "redis-7.0")
	operate(t, server, namespace)
	c := cluster(namespace, 2, false)
	createReady(t, server.Client, c)
	patch(t, server.Client, c, `{"spec": {"service": {"primary": {"annotations": {"no key!": "value"}}}}}`, false)
	await(t, server.Client, c, "the refusal in the status", func() bool {
		accepted := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionSpecAccepted)
		return accepted.Reason == v1alpha1.ReasonRejected
	})
	old := c.Status.Primary
	pods.Restart(pod(t, server.Client, namespace, old).UID)
	await(t, server.Client, c, "another primary, and the Service at it", func() bool {
		service := &corev1.Service{}
		if err := server.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: naming.PrimaryService(c.Name)}, service); err != nil {
			t.Fatalf("read the Service: %v", err)
		}
		return c.Status.Primary != "" && c.Status.Primary != old && service.Spec.Selector[naming.LabelPodName] == c.Status.Primary
	})
	patch(t, server.Client, c, `{"spec": {"service": null}}`, false)
	await(t, server.Client, c, "Ready", func() bool { return isReady(c) })
}
