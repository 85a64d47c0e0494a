package manager

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/operator-framework/operator-lib/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
)

// clusters are a cache with one RedisCluster, whose Progressing has a reason.
type clusters struct {
	client.Reader
	reason string
}

func (c *clusters) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	status := metav1.ConditionTrue
	if c.reason == v1alpha1.ReasonUpToDate {
		status = metav1.ConditionFalse
	}
	one := v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cache"}}
	one.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionProgressing, Status: status, Reason: c.reason, Message: "why"}}
	list.(*v1alpha1.RedisClusterList).Items = []v1alpha1.RedisCluster{one}
	return nil
}

// operatorCondition remembers what it was set to, unless it fails.
type operatorCondition struct {
	conditions.Condition
	set  []metav1.Condition
	fail error
}

func (c *operatorCondition) Set(_ context.Context, status metav1.ConditionStatus, options ...conditions.Option) error {
	if c.fail != nil {
		return c.fail
	}
	condition := metav1.Condition{Status: status}
	for _, option := range options {
		option(&condition)
	}
	c.set = append(c.set, condition)
	return nil
}

func TestAnUpgradeWaitsWhileMembersMoveAndNotForEver(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	cache, told := &clusters{}, &operatorCondition{}
	u := &upgradeable{clusters: cache, condition: told}
	for _, step := range []struct {
		reason     string
		at         time.Duration
		wantSets   int
		wantStatus metav1.ConditionStatus
		wantReason string
	}{
		{v1alpha1.ReasonUpToDate, 0, 1, metav1.ConditionTrue, reasonIdle},
		{v1alpha1.ReasonUpToDate, time.Second, 1, metav1.ConditionTrue, reasonIdle},
		{v1alpha1.ReasonRolling, 2 * time.Second, 2, metav1.ConditionFalse, v1alpha1.ReasonRolling},
		{v1alpha1.ReasonRolling, 3 * time.Second, 2, metav1.ConditionFalse, v1alpha1.ReasonRolling},
		{v1alpha1.ReasonPromoting, time.Minute, 3, metav1.ConditionFalse, v1alpha1.ReasonPromoting},
		{v1alpha1.ReasonPromoting, 2*time.Second + maxUpgradeWait, 4, metav1.ConditionTrue, reasonWaited},
		{v1alpha1.ReasonUpToDate, time.Hour, 5, metav1.ConditionTrue, reasonIdle},
		{v1alpha1.ReasonFencing, 2 * time.Hour, 6, metav1.ConditionFalse, v1alpha1.ReasonFencing},
		{v1alpha1.ReasonImageNotPulled, 2*time.Hour + time.Second, 7, metav1.ConditionTrue, reasonIdle},
	} {
		cache.reason = step.reason
		if err := u.look(t.Context(), noon.Add(step.at)); err != nil {
			t.Fatal(err)
		}
		last := told.set[len(told.set)-1]
		if len(told.set) != step.wantSets || last.Status != step.wantStatus || last.Reason != step.wantReason {
			t.Errorf("after %s with %s: set %d times, last to %s %s, want %d times, %s %s",
				step.at, step.reason, len(told.set), last.Status, last.Reason, step.wantSets, step.wantStatus, step.wantReason)
		}
	}
}

func TestWhatOLMWasNotToldIsToldAgain(t *testing.T) {
	told := &operatorCondition{fail: errors.New("no answer")}
	u := &upgradeable{clusters: &clusters{reason: v1alpha1.ReasonRolling}, condition: told}
	if err := u.look(t.Context(), time.Unix(0, 0)); !errors.Is(err, told.fail) {
		t.Fatalf("got %v, want the error of the API server", err)
	}
	told.fail = nil
	if err := u.look(t.Context(), time.Unix(1, 0)); err != nil || len(told.set) != 1 {
		t.Errorf("got %v and %d writes, want one", err, len(told.set))
	}
}

func TestWithoutOLMThereIsNobodyToTell(t *testing.T) {
	t.Setenv("OPERATOR_CONDITION_NAME", "")
	if u, err := newUpgradeable(&rest.Config{}, nil); u != nil || err != nil {
		t.Errorf("got %v, %v, want neither", u, err)
	}
}
