package manager

import (
	"context"
	"fmt"
	"time"

	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"github.com/operator-framework/operator-lib/conditions"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
)

const (
	// maxUpgradeWait bounds how long the operator keeps OLM from an upgrade at a
	// stretch: a change that is stuck must not keep the release away that repairs it.
	maxUpgradeWait = 15 * time.Minute
	// upgradeableEvery is how often the cache is looked at. OLM is told of changes only.
	upgradeableEvery = time.Second
)

// Reasons of the condition Upgradeable.
const (
	reasonIdle   = "Idle"
	reasonWaited = "WaitedLongEnough"
)

// upgradeable tells OLM, through the condition Upgradeable of our OperatorCondition,
// to wait with an upgrade while the primary or members of a RedisCluster are moved.
type upgradeable struct {
	clusters  client.Reader
	condition conditions.Condition
	clock     clock.WithTicker

	busySince time.Time
	told      *metav1.Condition
}

// newUpgradeable returns nil where no OLM named an OperatorCondition. OLM lets us read
// and update that one object, so the client must not want to watch it.
func newUpgradeable(cfg *rest.Config, clusters client.Reader) (*upgradeable, error) {
	if _, err := (conditions.InClusterFactory{}).GetNamespacedName(); err != nil {
		ctrl.Log.Info("OLM did not install this operator: upgrades wait for nothing", "why", err.Error())
		return nil, nil //nolint:nilnil // Without OLM there is nobody to tell.
	}
	scheme := runtime.NewScheme()
	if err := operatorsv2.AddToScheme(scheme); err != nil {
		return nil, err
	}
	uncached, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("make a client of the OperatorCondition: %w", err)
	}
	condition, err := conditions.InClusterFactory{Client: uncached}.NewCondition(operatorsv2.ConditionType(operatorsv2.Upgradeable))
	return &upgradeable{clusters: clusters, condition: condition, clock: clock.RealClock{}}, err
}

// Start looks at the RedisClusters until the context ends, in the process that leads.
func (u *upgradeable) Start(ctx context.Context) error {
	ticker := u.clock.NewTicker(upgradeableEvery)
	defer ticker.Stop()
	for {
		if err := u.look(ctx, u.clock.Now()); err != nil && ctx.Err() == nil {
			ctrl.Log.Error(err, "OLM was not told whether the operator can be upgraded; it is tried again")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// look tells OLM what changed since it was told last.
func (u *upgradeable) look(ctx context.Context, now time.Time) error {
	var list v1alpha1.RedisClusterList
	// Only read, and each second: the cache need not copy them.
	if err := u.clusters.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the RedisClusters: %w", err)
	}
	wanted := u.verdict(list.Items, now)
	if u.told != nil && u.told.Status == wanted.Status && u.told.Reason == wanted.Reason {
		return nil
	}
	if err := u.condition.Set(ctx, wanted.Status, conditions.WithReason(wanted.Reason), conditions.WithMessage(wanted.Message)); err != nil {
		return fmt.Errorf("set the condition Upgradeable of the OperatorCondition: %w", err)
	}
	u.told = &wanted
	return nil
}

// verdict is True unless a cluster is busy, and has not been for too long.
func (u *upgradeable) verdict(clusters []v1alpha1.RedisCluster, now time.Time) metav1.Condition {
	for i := range clusters {
		why := moving(&clusters[i])
		if why == nil {
			continue
		}
		if u.busySince.IsZero() {
			u.busySince = now
		}
		message := fmt.Sprintf("RedisCluster %s/%s: %s", clusters[i].Namespace, clusters[i].Name, why.Message)
		if now.Sub(u.busySince) >= maxUpgradeWait {
			return metav1.Condition{Status: metav1.ConditionTrue, Reason: reasonWaited, Message: fmt.Sprintf("upgrades wait no longer than %s: %s", maxUpgradeWait, message)}
		}
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: why.Reason, Message: message}
	}
	u.busySince = time.Time{}
	return metav1.Condition{Status: metav1.ConditionTrue, Reason: reasonIdle, Message: "no RedisCluster is failing over, rolled or resized"}
}

// moving is the condition Progressing of a cluster that is failing over, rolled,
// scaled or resized; nil of others.
func moving(cluster *v1alpha1.RedisCluster) *metav1.Condition {
	progressing := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionProgressing)
	if progressing == nil || progressing.Status != metav1.ConditionTrue {
		return nil
	}
	switch progressing.Reason {
	case v1alpha1.ReasonPromoting, v1alpha1.ReasonFencing, v1alpha1.ReasonRolling, v1alpha1.ReasonScaling, v1alpha1.ReasonResizing:
		return progressing
	}
	return nil
}
