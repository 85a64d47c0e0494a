// Package lifecycle does what a user of the Operator Lifecycle Manager does: installs
// the operator from a catalog, upgrades it and removes it. A Witness watches over
// RedisClusters meanwhile. Tests and benchmarks share it.
package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/test/e2e/kubeapi"
	"seang.org/operator/test/registry"
)

// The names of what a user applies.
const (
	PackageName      = "redis-operator"
	catalogNamespace = "olm"
)

// Times that a small, loaded machine needs.
const (
	InstallTimeout = 3 * time.Minute
	ReadyTimeout   = 4 * time.Minute
	NoticeTimeout  = 90 * time.Second
	// pollInterval is for what is spread over objects whose names are not known.
	pollInterval = 500 * time.Millisecond
)

// OLM is a Kubernetes with the Operator Lifecycle Manager.
type OLM struct{ *kubeapi.API }

// Of adds OLM's kinds to a connection, and makes the operator's namespace.
func Of(ctx context.Context, api *kubeapi.API) (*OLM, error) {
	scheme := api.Scheme()
	err := errors.Join(operatorsv1alpha1.AddToScheme(scheme), operatorsv1.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme))
	if err != nil {
		return nil, fmt.Errorf("register OLM's kinds: %w", err)
	}
	o := &OLM{API: api}
	if err := api.Get(ctx, client.ObjectKey{Namespace: catalogNamespace, Name: "olm-operator"}, &appsv1.Deployment{}); err != nil {
		return nil, fmt.Errorf("find OLM, which make olm-up installs: %w", err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: kubeapi.OperatorNamespace}}
	if err := api.Create(ctx, namespace); client.IgnoreAlreadyExists(err) != nil {
		return nil, fmt.Errorf("make the operator's namespace: %w", err)
	}
	return o, nil
}

// UseCatalog makes the CatalogSource show the catalog of a tag, and waits until OLM
// reads that one: a release is published.
func (o *OLM) UseCatalog(ctx context.Context, tag string) error {
	image := registry.Catalog + ":" + tag
	source := &operatorsv1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: catalogNamespace, Name: PackageName}}
	absent := o.Get(ctx, client.ObjectKeyFromObject(source), source)
	if client.IgnoreNotFound(absent) != nil {
		return fmt.Errorf("read the CatalogSource: %w", absent)
	}
	source.Spec = operatorsv1alpha1.CatalogSourceSpec{SourceType: operatorsv1alpha1.SourceTypeGrpc, Image: image,
		DisplayName: "Redis operator", GrpcPodConfig: &operatorsv1alpha1.GrpcPodConfig{SecurityContextConfig: operatorsv1alpha1.Restricted}}
	write := func() error { return o.Update(ctx, source) }
	if absent != nil {
		write = func() error { return o.Create(ctx, source) }
	}
	if err := write(); err != nil {
		return fmt.Errorf("publish the catalog %s: %w", image, err)
	}
	since, err := o.awaitServer(ctx, image)
	if err != nil {
		return err
	}
	_, err = kubeapi.AwaitGoal(ctx, o.API, source, kubeapi.Goal[*operatorsv1alpha1.CatalogSource]{What: "served", Within: InstallTimeout,
		Done: func(now *operatorsv1alpha1.CatalogSource) bool {
			state := now.Status.GRPCConnectionState
			return state != nil && state.LastObservedState == "READY" && !state.LastConnectTime.Before(&since)
		},
		Show: func(now *operatorsv1alpha1.CatalogSource) string {
			return fmt.Sprintf("%+v, pod since %s", now.Status.GRPCConnectionState, since)
		}})
	return err
}

// awaitServer waits until one pod serves catalogs, and that of the image: since when.
func (o *OLM) awaitServer(ctx context.Context, image string) (since metav1.Time, err error) {
	var seen string
	err = wait.PollUntilContextTimeout(ctx, pollInterval, InstallTimeout, true, func(ctx context.Context) (bool, error) {
		pods := &corev1.PodList{}
		if err := o.List(ctx, pods, client.InNamespace(catalogNamespace), client.MatchingLabels{"olm.catalogSource": PackageName}); err != nil {
			return false, fmt.Errorf("list the pods: %w", err)
		}
		var shown []string
		for i := range pods.Items {
			shown = append(shown, pods.Items[i].Name+" "+pods.Items[i].Spec.Containers[0].Image)
		}
		seen = strings.Join(shown, ", ")
		if len(pods.Items) != 1 || pods.Items[0].Spec.Containers[0].Image != image || pods.Items[0].Status.StartTime == nil {
			return false, nil
		}
		since = *pods.Items[0].Status.StartTime
		return true, nil
	})
	if err != nil {
		err = fmt.Errorf("wait for the server of the catalog %s, with %q there: %w", image, seen, err)
	}
	return since, err
}

// UseGroup makes the operator's namespace one where operators may be installed: for all
// namespaces, unless the group is edited.
func (o *OLM) UseGroup(ctx context.Context, edits ...func(*operatorsv1.OperatorGroup)) error {
	group := Group()
	if err := o.Delete(ctx, group); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the OperatorGroup before: %w", err)
	}
	if err := o.AwaitGone(ctx, group); err != nil {
		return err
	}
	group = Group()
	for _, edit := range edits {
		edit(group)
	}
	if err := o.Create(ctx, group); err != nil {
		return fmt.Errorf("create the OperatorGroup: %w", err)
	}
	return nil
}

// Group is the OperatorGroup, for all namespaces.
func Group() *operatorsv1.OperatorGroup {
	return &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: kubeapi.OperatorNamespace, Name: PackageName}}
}

func subscription() *operatorsv1alpha1.Subscription {
	return &operatorsv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: kubeapi.OperatorNamespace, Name: PackageName}}
}

// Subscribe asks for the operator of a channel.
func (o *OLM) Subscribe(ctx context.Context, channel string) error {
	s := subscription()
	s.Spec = &operatorsv1alpha1.SubscriptionSpec{Package: PackageName, Channel: channel, CatalogSource: PackageName,
		CatalogSourceNamespace: catalogNamespace, InstallPlanApproval: operatorsv1alpha1.ApprovalAutomatic}
	if err := o.Create(ctx, s); err != nil {
		return fmt.Errorf("subscribe to %s: %w", channel, err)
	}
	return nil
}

// ChangeSubscription edits the Subscription as a person does.
func (o *OLM) ChangeSubscription(ctx context.Context, edit func(*operatorsv1alpha1.SubscriptionSpec)) error {
	s := subscription()
	if err := o.Get(ctx, client.ObjectKeyFromObject(s), s); err != nil {
		return fmt.Errorf("read the Subscription: %w", err)
	}
	before := s.DeepCopy()
	edit(s.Spec)
	if err := o.Patch(ctx, s, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("change the Subscription: %w", err)
	}
	return nil
}

// AwaitSubscription waits for what the Subscription says.
func (o *OLM) AwaitSubscription(ctx context.Context, what string, done func(operatorsv1alpha1.SubscriptionStatus) bool) (operatorsv1alpha1.SubscriptionStatus, error) {
	last, err := kubeapi.AwaitGoal(ctx, o.API, subscription(), kubeapi.Goal[*operatorsv1alpha1.Subscription]{What: what, Within: InstallTimeout,
		Done: func(now *operatorsv1alpha1.Subscription) bool { return done(now.Status) },
		Show: func(now *operatorsv1alpha1.Subscription) string { return fmt.Sprintf("%+v", now.Status) }})
	if err != nil {
		return operatorsv1alpha1.SubscriptionStatus{}, err
	}
	return last.Status, nil
}

// CSVName is the name of the ClusterServiceVersion of a version.
func CSVName(version string) string { return PackageName + ".v" + version }

// CSV is the ClusterServiceVersion of a version.
func CSV(version string) *operatorsv1alpha1.ClusterServiceVersion {
	return &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: kubeapi.OperatorNamespace, Name: CSVName(version)}}
}

// AwaitCSV waits until the ClusterServiceVersion of a version is in a phase.
func (o *OLM) AwaitCSV(ctx context.Context, version string, phase operatorsv1alpha1.ClusterServiceVersionPhase) (*operatorsv1alpha1.ClusterServiceVersion, error) {
	return kubeapi.AwaitGoal(ctx, o.API, CSV(version), kubeapi.Goal[*operatorsv1alpha1.ClusterServiceVersion]{
		What: CSVName(version) + " " + string(phase), Within: InstallTimeout,
		Done: func(now *operatorsv1alpha1.ClusterServiceVersion) bool { return now.Status.Phase == phase },
		Show: func(now *operatorsv1alpha1.ClusterServiceVersion) string {
			return fmt.Sprintf("%s %s: %s\n%+v", now.Status.Phase, now.Status.Reason, now.Status.Message, now.Status.RequirementStatus)
		}})
}

// AwaitVersion waits until the operator of a version is installed and runs, and nothing
// of the one before is left.
func (o *OLM) AwaitVersion(ctx context.Context, version string) error {
	if _, err := o.AwaitCSV(ctx, version, operatorsv1alpha1.CSVPhaseSucceeded); err != nil {
		return err
	}
	_, err := o.AwaitSubscription(ctx, "at "+version, func(now operatorsv1alpha1.SubscriptionStatus) bool { return now.InstalledCSV == CSVName(version) })
	if err != nil {
		return err
	}
	if err := o.AwaitOperator(ctx); err != nil {
		return err
	}
	var names []string
	err = wait.PollUntilContextTimeout(ctx, pollInterval, NoticeTimeout, true, func(ctx context.Context) (bool, error) {
		names, err = o.Installed(ctx)
		return !slices.ContainsFunc(names, func(name string) bool { return name != CSVName(version) }), err
	})
	if err != nil {
		return fmt.Errorf("wait until only %s is installed, not %v: %w", CSVName(version), names, err)
	}
	return nil
}

// Installed are the names of the ClusterServiceVersions.
func (o *OLM) Installed(ctx context.Context) ([]string, error) {
	list := &operatorsv1alpha1.ClusterServiceVersionList{}
	if err := o.List(ctx, list, client.InNamespace(kubeapi.OperatorNamespace)); err != nil {
		return nil, fmt.Errorf("list what is installed: %w", err)
	}
	var names []string
	for i := range list.Items {
		if name := list.Items[i].Name; strings.HasPrefix(name, PackageName) {
			names = append(names, name)
		}
	}
	return names, nil
}

// Uninstall removes the operator as OLM's documentation says: the Subscription, then
// the ClusterServiceVersion. The CRD and the RedisClusters stay.
func (o *OLM) Uninstall(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, NoticeTimeout, fmt.Errorf("the operator is not gone within %s", NoticeTimeout))
	defer cancel()
	if err := o.Delete(ctx, subscription()); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the Subscription: %w", err)
	}
	if err := o.AwaitGone(ctx, subscription()); err != nil {
		return err
	}
	in := client.InNamespace(kubeapi.OperatorNamespace)
	if err := o.DeleteAllOf(ctx, &operatorsv1alpha1.ClusterServiceVersion{}, in); err != nil {
		return fmt.Errorf("remove the ClusterServiceVersion: %w", err)
	}
	if err := o.AwaitGone(ctx, deployment()); err != nil {
		return err
	}
	if err := o.DeleteAllOf(ctx, &operatorsv1alpha1.InstallPlan{}, in); err != nil {
		return fmt.Errorf("remove the InstallPlans: %w", err)
	}
	return nil
}

// Evict removes an operator that was installed without OLM, and its permissions. The CRD
// and the RedisClusters stay.
func (o *OLM) Evict(ctx context.Context) error {
	if err := o.Delete(ctx, deployment()); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the operator: %w", err)
	}
	if err := o.AwaitGone(ctx, deployment()); err != nil {
		return err
	}
	return o.RevokeDeployed(ctx)
}

func deployment() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: kubeapi.OperatorNamespace, Name: kubeapi.OperatorDeployment}}
}

// Image is the image that the operator runs.
func (o *OLM) Image(ctx context.Context) (string, error) {
	found := deployment()
	if err := o.Get(ctx, client.ObjectKeyFromObject(found), found); err != nil {
		return "", fmt.Errorf("read the operator's Deployment: %w", err)
	}
	return found.Spec.Template.Spec.Containers[0].Image, nil
}
