package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/test/e2e/kubeapi"
)

// managerRole has the operator's permissions, as config/rbac installs them.
const managerRole = "redis-operator-manager-role"

// What a test gets until it must have noticed, and until it may break what it needs.
const (
	brokenTimeout = 30 * time.Second
	repairTimeout = 10 * time.Second
)

// Each test fails against an operator that lacks one permission: what it then cannot do
// is what the test is there to see.
func TestEachTestFailsAgainstABrokenOperator(t *testing.T) {
	if os.Getenv("KUBECONFIG") == "" || testing.Short() {
		t.Skip("needs a Kubernetes with the operator, named in KUBECONFIG: run make scorecard-broken")
	}
	api, err := kubeapi.Connect()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		// take says what the operator loses: of a resource the verbs; once the example is
		// Ready, or before it is made.
		resource   string
		verbs      []string
		afterReady bool
		want       string
	}{
		"example-gets-ready":          {"statefulsets", []string{"create", "patch"}, false, "does not get Ready"},
		"status-is-complete":          {"redisclusters/status", []string{"update"}, false, "does not get Ready: phase \"\", conditions []"},
		"killed-primary-is-replaced":  {"services", []string{"patch"}, true, "wait for 20 acknowledged writes"},
		"spec-fields-have-effect":     {"pods/resize", []string{"patch"}, true, "does not get Ready"},
		"nothing-left-after-deletion": {"persistentvolumeclaims", []string{"delete"}, true, "wait for *v1alpha1.RedisCluster"},
	} {
		t.Run(name, func(t *testing.T) {
			namespace, err := api.CreateNamespace(t.Context(), "broken-")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { remove(t, api, namespace) })
			fault := func(ctx context.Context) error { return takeAway(ctx, api, c.resource, c.verbs) }
			s := &suite{api: api, namespace: namespace.Name, bundle: "../bundle"}
			repair := grantAgain(t, api)
			if c.afterReady {
				s.afterReady = fault
			} else if err := fault(t.Context()); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), brokenTimeout)
			defer cancel()
			err = tests[name](ctx, s)
			repair()
			check(t, err, c.want)
		})
	}
}

// grantAgain returns what gives the operator the permissions back that it has now.
func grantAgain(t *testing.T, api client.Client) (repair func()) {
	t.Helper()
	before := &rbacv1.ClusterRole{}
	if err := api.Get(t.Context(), client.ObjectKey{Name: managerRole}, before); err != nil {
		t.Fatal(err)
	}
	repair = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), repairTimeout)
		defer cancel()
		now := &rbacv1.ClusterRole{}
		err := api.Get(ctx, client.ObjectKey{Name: managerRole}, now)
		if err == nil {
			now.Rules = before.Rules
			err = api.Update(ctx, now)
		}
		if err != nil {
			t.Errorf("give the operator its permissions back: %v", err)
		}
	}
	t.Cleanup(repair)
	return repair
}

// takeAway removes verbs of a resource from the operator's permissions.
func takeAway(ctx context.Context, api client.Client, resource string, verbs []string) error {
	role := &rbacv1.ClusterRole{}
	if err := api.Get(ctx, client.ObjectKey{Name: managerRole}, role); err != nil {
		return fmt.Errorf("read the operator's permissions: %w", err)
	}
	var rules []rbacv1.PolicyRule
	for _, rule := range role.Rules {
		if !slices.Contains(rule.Resources, resource) {
			rules = append(rules, rule)
			continue
		}
		reduced := rule
		reduced.Resources = []string{resource}
		reduced.Verbs = slices.DeleteFunc(slices.Clone(rule.Verbs), func(v string) bool { return slices.Contains(verbs, v) })
		if len(reduced.Verbs) > 0 {
			rules = append(rules, reduced)
		}
		rule.Resources = slices.DeleteFunc(slices.Clone(rule.Resources), func(r string) bool { return r == resource })
		if len(rule.Resources) > 0 {
			rules = append(rules, rule)
		}
	}
	role.Rules = rules
	if err := api.Update(ctx, role); err != nil {
		return fmt.Errorf("take %v of %s from the operator: %w", verbs, resource, err)
	}
	return nil
}

func remove(t *testing.T, api client.Client, object client.Object) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), repairTimeout)
	defer cancel()
	if err := api.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
		t.Errorf("remove %s: %v", object.GetName(), err)
	}
}
