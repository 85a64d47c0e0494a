package audit

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

func TestUnusedNamesWhatNoRequestNeeded(t *testing.T) {
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods", "pods/resize"}, Verbs: []string{"get", "patch"}},
		{APIGroups: []string{"apps"}, Resources: []string{"statefulsets"}, Verbs: []string{"create", "patch"}},
		{APIGroups: []string{"policy"}, Resources: []string{"poddisruptionbudgets"}, Verbs: []string{"create", "watch"}},
	}
	requests := []Request{
		{User: "me", Verb: "get", Resource: "pods", Code: 200},
		{User: "other", Verb: "patch", Resource: "pods", Code: 200},
		{User: "me", Verb: "patch", Resource: "pods", Subresource: "resize", Code: 200},
		{User: "me", Verb: "patch", Group: "apps", Resource: "statefulsets", Code: 201},
		{User: "me", Verb: "watch", Group: "policy", Resource: "poddisruptionbudgets", Code: 200},
	}
	want := []string{"create poddisruptionbudgets.policy", "get pods/resize", "patch pods"}
	if diff := cmp.Diff(want, Unused(rules, requests, "me")); diff != "" {
		t.Errorf("unused permissions (-want +got):\n%s", diff)
	}
}
