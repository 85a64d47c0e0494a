package controllers_test

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/manager"
	"seang.org/operator/internal/testkit/apiserver"
)

func TestMain(m *testing.M) { os.Exit(apiserver.Run(m)) }

// operatorLog keeps what the operators log, a line each, for the tests that fail.
type operatorLog struct {
	mu    sync.Mutex
	lines []string
}

func (o *operatorLog) Write(line []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lines = append(o.lines, string(line))
	return len(line), nil
}

var operatorLogs = &operatorLog{}

var setLog = sync.OnceFunc(func() { ctrl.SetLogger(zap.New(zap.UseDevMode(true), zap.WriteTo(operatorLogs))) })

// showLog shows the last lines of the operators on a namespace if the test fails.
func showLog(t *testing.T, namespace string) {
	t.Helper()
	setLog()
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		operatorLogs.mu.Lock()
		defer operatorLogs.mu.Unlock()
		var lines []string
		for _, line := range operatorLogs.lines {
			if strings.Contains(line, namespace) {
				lines = append(lines, line)
			}
		}
		t.Logf("the operator's log:\n%s", strings.Join(lines[max(0, len(lines)-300):], ""))
	})
}

// managerOptions are those of an operator on one namespace that serves nothing.
func managerOptions(namespace string) manager.Options {
	return manager.Options{MetricsAddress: "0", HealthAddress: "0", Namespaces: []string{namespace}, Namespace: "redis-operator-system",
		DefaultImage: "redis:test", SkipNameValidation: true}
}

// operate runs the operator, wired as in production, on the namespace.
func operate(t *testing.T, server *apiserver.Server, namespace string) (stop func()) {
	t.Helper()
	return operateBy(t, server, namespace, clock.RealClock{})
}

// operateBy is operate by another clock.
func operateBy(t *testing.T, server *apiserver.Server, namespace string, by clock.PassiveClock) (stop func()) {
	t.Helper()
	showLog(t, namespace)
	mgr, err := manager.New(t.Context(), server.Config, managerOptions(namespace))
	if err != nil {
		t.Fatalf("make the manager: %v", err)
	}
	mgr.Reconciler.Clock = by
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the operator ended: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func cluster(namespace string, replicas int32, persistent bool) *v1alpha1.RedisCluster {
	return &v1alpha1.RedisCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cache"},
		Spec:       v1alpha1.RedisClusterSpec{Replicas: replicas, MemoryLimit: resource.MustParse("128Mi"), EnablePersistence: new(persistent)},
	}
}

// createReady makes the RedisCluster, and waits until it is Ready.
func createReady(t *testing.T, c client.Client, cluster *v1alpha1.RedisCluster) {
	t.Helper()
	if err := c.Create(t.Context(), cluster); err != nil {
		t.Fatalf("create: %v", err)
	}
	await(t, c, cluster, "Ready", func() bool { return isReady(cluster) })
}

// await reads the object until it is as wanted, and fails the test with its
// status if that takes too long.
func await(t *testing.T, c client.Client, cluster *v1alpha1.RedisCluster, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster); err != nil {
			t.Fatalf("read the RedisCluster: %v", err)
		}
		if holds() {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within 60 s: %s; status: %+v", what, cluster.Status)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func isReady(cluster *v1alpha1.RedisCluster) bool {
	ready := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == cluster.Generation
}
