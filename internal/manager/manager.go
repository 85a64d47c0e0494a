package manager

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/controllers"
	"seang.org/operator/internal/naming"
)

// Leader election: a crashed leader is replaced within leaseDuration and a retry, and
// must have acted on a dead primary within 5 s.
const (
	leaseDuration = 3500 * time.Millisecond
	renewDeadline = 2500 * time.Millisecond
	retryPeriod   = 400 * time.Millisecond
)

// Scheme knows every kind that the operator reads or writes.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	return scheme, v1alpha1.AddToScheme(scheme)
}

// Run runs the operator until the context ends.
func Run(ctx context.Context, cfg *rest.Config, version string, o Options) error {
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&o.Log)))
	ctrl.Log.Info("the Redis operator starts", "version", version, "namespaces", o.Namespaces, "defaultImage", o.DefaultImage)
	mgr, err := New(ctx, cfg, o)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=system,resources=leases,verbs=get;create;update

// Operator is a manager with its one controller.
type Operator struct {
	ctrl.Manager
	Reconciler *controllers.RedisClusterReconciler
}

// New returns an operator that is ready to start.
func New(ctx context.Context, cfg *rest.Config, o Options) (*Operator, error) {
	scheme, err := Scheme()
	if err != nil {
		return nil, fmt.Errorf("register the kinds: %w", err)
	}
	warmUp := true
	var lock resourcelock.Interface
	var leads func(context.Context, time.Duration) error
	if o.LeaderElect {
		leadership, err := newLeadership(cfg, o)
		if err != nil {
			return nil, fmt.Errorf("prepare the leader election: %w", err)
		}
		lock, leads = leadership.lock, leadership.confirm
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme,
		Cache:  cacheOptions(o),
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.Event{}}}},
		Metrics: metricsserver.Options{
			BindAddress: o.MetricsAddress, SecureServing: true, FilterProvider: filters.WithAuthenticationAndAuthorization},
		HealthProbeBindAddress:              o.HealthAddress,
		LeaderElection:                      o.LeaderElect,
		LeaderElectionResourceLockInterface: lock,
		LeaderElectionReleaseOnCancel:       true,
		LeaseDuration:                       new(leaseDuration),
		RenewDeadline:                       new(renewDeadline),
		RetryPeriod:                         new(retryPeriod),
		Controller:                          config.Controller{EnableWarmup: &warmUp, SkipNameValidation: &o.SkipNameValidation},
	})
	if err != nil {
		return nil, fmt.Errorf("make the manager: %w", err)
	}
	anyUser, err := choosesUsers(mgr.GetRESTMapper())
	if err != nil {
		return nil, err
	}
	reconciler := &controllers.RedisClusterReconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(),
		Recorder: mgr.GetEventRecorder(naming.Operator), Clock: clock.RealClock{}, DefaultImage: o.DefaultImage,
		Namespace: o.Namespace, AnyUser: anyUser, Leads: leads,
	}
	if err := reconciler.SetupWithManager(ctx, mgr); err != nil {
		return nil, fmt.Errorf("set up the controller: %w", err)
	}
	upgrades, err := newUpgradeable(cfg, mgr.GetClient())
	if err != nil {
		return nil, fmt.Errorf("prepare to tell OLM about upgrades: %w", err)
	}
	if upgrades != nil {
		if err := mgr.Add(upgrades); err != nil {
			return nil, fmt.Errorf("add what tells OLM about upgrades: %w", err)
		}
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	return &Operator{Manager: mgr, Reconciler: reconciler}, mgr.AddReadyzCheck("ping", healthz.Ping)
}

// securityContextConstraints is the kind by which OpenShift gives each namespace users of its
// own, and refuses pods that ask for another.
var securityContextConstraints = schema.GroupKind{Group: "security.openshift.io", Kind: "SecurityContextConstraints"}

// choosesUsers says that this Kubernetes chooses which user a pod runs as.
func choosesUsers(mapper meta.RESTMapper) (bool, error) {
	_, err := mapper.RESTMapping(securityContextConstraints)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("find out whether there are %s: %w", securityContextConstraints, err)
	}
	return true, nil
}

// cacheOptions keep only our own objects, without what nobody reads.
func cacheOptions(o Options) cache.Options {
	ours := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{naming.LabelManagedBy: naming.Operator})}
	options := cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&appsv1.StatefulSet{}:           ours,
			&corev1.Service{}:               ours,
			&corev1.ConfigMap{}:             ours,
			&corev1.Pod{}:                   ours,
			&corev1.PersistentVolumeClaim{}: ours,
			&policyv1.PodDisruptionBudget{}: ours,
			&networkingv1.NetworkPolicy{}:   ours,
		},
	}
	for _, namespace := range o.Namespaces {
		if options.DefaultNamespaces == nil {
			options.DefaultNamespaces = map[string]cache.Config{}
		}
		options.DefaultNamespaces[namespace] = cache.Config{}
	}
	return options
}
