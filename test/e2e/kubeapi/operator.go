package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/internal/naming"
)

// Where the operator is, as config/default installs it.
const (
	OperatorNamespace  = "redis-operator-system"
	OperatorDeployment = "redis-operator-controller-manager"
	OperatorUser       = "system:serviceaccount:" + OperatorNamespace + ":" + OperatorDeployment
	// OperatorProgram is the name of the operator's process.
	OperatorProgram = "manager"
)

// OperatorPods are those of the operator's Deployment; it fails if there are none.
func (a *API) OperatorPods(ctx context.Context) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := a.List(ctx, list, client.InNamespace(OperatorNamespace), client.MatchingLabels(naming.OperatorPods())); err != nil {
		return nil, fmt.Errorf("list the operator's pods: %w", err)
	}
	if len(list.Items) == 0 {
		return nil, fmt.Errorf("no pod of the operator in namespace %s: install it with make deploy", OperatorNamespace)
	}
	return list.Items, nil
}

// leaderTimeout is far more than a Lease lasts.
const leaderTimeout = time.Minute

// Leader is the operator's pod that holds the Lease. Nobody does for moments: when one
// gave it back, or when its pod is gone.
func (a *API) Leader(ctx context.Context) (leader *corev1.Pod, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, leaderTimeout, fmt.Errorf("no pod of the operator took it within %s", leaderTimeout))
	defer cancel()
	name := ""
	err = Await(ctx, a, operatorLease(), func(lease *coordinationv1.Lease) (bool, error) {
		name = holder(lease)
		pods, err := a.OperatorPods(ctx)
		if i := slices.IndexFunc(pods, func(pod corev1.Pod) bool { return pod.Name == name }); i >= 0 {
			leader = &pods[i]
		}
		return leader != nil, err
	})
	if err != nil {
		return nil, fmt.Errorf("%w; its last holder is %q", err, name)
	}
	return leader, nil
}

// AwaitLeader waits until another pod than the named one leads.
func (a *API) AwaitLeader(ctx context.Context, other string) error {
	return Await(ctx, a, operatorLease(), func(lease *coordinationv1.Lease) (bool, error) {
		name := holder(lease)
		return name != "" && name != other, nil
	})
}

// AwaitOperator waits until the operator runs as its Deployment says: each pod
// is of the current template and available, and none is left over.
func (a *API) AwaitOperator(ctx context.Context) error {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: OperatorNamespace, Name: OperatorDeployment}}
	return Await(ctx, a, deployment, func(d *appsv1.Deployment) (bool, error) {
		return d.Status.ObservedGeneration == d.Generation && d.Status.AvailableReplicas == *d.Spec.Replicas &&
			d.Status.UpdatedReplicas == *d.Spec.Replicas && d.Status.Replicas == *d.Spec.Replicas, nil
	})
}

// RevokeDeployed takes from the operator's account what make deploy granted it: it would
// hide that a bundle lacks a permission. The bindings of OLM have not the label.
func (a *API) RevokeDeployed(ctx context.Context) error {
	deployed := client.MatchingLabels{naming.LabelName: "redis-operator"} // of config/default
	err := errors.Join(a.DeleteAllOf(ctx, &rbacv1.ClusterRoleBinding{}, deployed),
		a.DeleteAllOf(ctx, &rbacv1.RoleBinding{}, deployed, client.InNamespace(OperatorNamespace)))
	if err != nil {
		return fmt.Errorf("take back the permissions of an operator that was installed from config/: %w", err)
	}
	return nil
}

func operatorLease() *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: OperatorNamespace, Name: naming.LeaderElectionID}}
}

// holder is the pod that holds a Lease; empty if none does.
func holder(lease *coordinationv1.Lease) string {
	pod, _, _ := strings.Cut(ptr.Deref(lease.Spec.HolderIdentity, ""), "_")
	return pod
}
