package config

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// build renders a kustomization of this directory.
func build(t *testing.T, name string) []unstructured.Unstructured {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "go", "tool", "-modfile=../tools/go.mod", "kustomize", "build", name)
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("kustomize build %s: %v\n%s", name, err, stderr.String())
	}
	var objects []unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(output), 4096)
	for {
		var object unstructured.Unstructured
		err := decoder.Decode(&object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatalf("read the output of kustomize build %s: %v", name, err)
		}
		objects = append(objects, object)
	}
}

// ofKind returns the objects of a kind, at least one.
func ofKind[T any](t *testing.T, objects []unstructured.Unstructured, kind string) []T {
	t.Helper()
	var typed []T
	for _, object := range objects {
		if object.GetKind() != kind {
			continue
		}
		var value T
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &value, true); err != nil {
			t.Fatalf("%s %s: %v", kind, object.GetName(), err)
		}
		typed = append(typed, value)
	}
	if len(typed) == 0 {
		t.Fatalf("there is no %s", kind)
	}
	return typed
}

// violations says what of a rule the operator must not be allowed.
func violations(rule rbacv1.PolicyRule) []string {
	var found []string
	for _, values := range [][]string{rule.APIGroups, rule.Resources, rule.Verbs, rule.NonResourceURLs} {
		if slices.Contains(values, rbacv1.ResourceAll) {
			found = append(found, "a wildcard")
		}
	}
	for _, resource := range []string{"pods/exec", "pods/attach", "pods/ephemeralcontainers", "pods/portforward"} {
		if slices.Contains(rule.Resources, resource) {
			found = append(found, resource)
		}
	}
	if slices.Contains(rule.Resources, "secrets") {
		for _, verb := range []string{"list", "watch", "deletecollection"} {
			if slices.Contains(rule.Verbs, verb) {
				found = append(found, verb+" of secrets")
			}
		}
	}
	for _, verb := range []string{"escalate", "bind", "impersonate"} {
		if slices.Contains(rule.Verbs, verb) {
			found = append(found, verb)
		}
	}
	return found
}

func TestTheOperatorsRightsAreTheLeast(t *testing.T) {
	objects := build(t, "default")
	rules := map[string][]rbacv1.PolicyRule{}
	for _, role := range ofKind[rbacv1.ClusterRole](t, objects, "ClusterRole") {
		rules["ClusterRole "+role.Name] = role.Rules
	}
	for _, role := range ofKind[rbacv1.Role](t, objects, "Role") {
		rules["Role "+role.Name] = role.Rules
	}
	for role, rules := range rules {
		for _, rule := range rules {
			if found := violations(rule); len(found) > 0 {
				t.Errorf("%s allows %v: %v", role, found, rule)
			}
		}
	}
}

func TestViolationsAreFound(t *testing.T) {
	tests := map[string]struct {
		rule rbacv1.PolicyRule
		want []string
	}{
		"all verbs":            {rbacv1.PolicyRule{Resources: []string{"services"}, Verbs: []string{"*"}}, []string{"a wildcard"}},
		"all resources":        {rbacv1.PolicyRule{Resources: []string{"*"}, Verbs: []string{"get"}}, []string{"a wildcard"}},
		"exec into pods":       {rbacv1.PolicyRule{Resources: []string{"pods", "pods/exec"}, Verbs: []string{"create"}}, []string{"pods/exec"}},
		"list of secrets":      {rbacv1.PolicyRule{Resources: []string{"secrets"}, Verbs: []string{"get", "list"}}, []string{"list of secrets"}},
		"named secrets only":   {rbacv1.PolicyRule{Resources: []string{"secrets"}, Verbs: []string{"get", "create"}}, nil},
		"watch of other kinds": {rbacv1.PolicyRule{Resources: []string{"services"}, Verbs: []string{"list", "watch"}}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := violations(test.rule); !slices.Equal(got, test.want) {
				t.Errorf("found %v, want %v", got, test.want)
			}
		})
	}
}

// The bindings name an account and roles that exist under the prefixed names.
func TestBindingsNameWhatExists(t *testing.T) {
	objects := build(t, "default")
	exists := map[string]bool{}
	for _, object := range objects {
		exists[object.GetKind()+" "+object.GetName()] = true
	}
	check := func(binding string, role rbacv1.RoleRef, subjects []rbacv1.Subject) {
		if !exists[role.Kind+" "+role.Name] {
			t.Errorf("%s names %s %s, which is not there", binding, role.Kind, role.Name)
		}
		for _, subject := range subjects {
			if !exists[subject.Kind+" "+subject.Name] || subject.Namespace != "redis-operator-system" {
				t.Errorf("%s names %s %s/%s, which is not there", binding, subject.Kind, subject.Namespace, subject.Name)
			}
		}
	}
	for _, binding := range ofKind[rbacv1.ClusterRoleBinding](t, objects, "ClusterRoleBinding") {
		check(binding.Name, binding.RoleRef, binding.Subjects)
	}
	for _, binding := range ofKind[rbacv1.RoleBinding](t, objects, "RoleBinding") {
		check(binding.Name, binding.RoleRef, binding.Subjects)
	}
}

func TestTheOperatorsPodIsRestricted(t *testing.T) {
	objects := build(t, "default")
	namespace := ofKind[corev1.Namespace](t, objects, "Namespace")[0]
	if got := namespace.Labels["pod-security.kubernetes.io/enforce"]; got != "restricted" {
		t.Errorf("the namespace enforces %q, want restricted", got)
	}
	deployment := ofKind[appsv1.Deployment](t, objects, "Deployment")[0]
	pod := deployment.Spec.Template.Spec
	if pod.HostNetwork || pod.HostPID || pod.HostIPC {
		t.Error("the pod uses a namespace of its host")
	}
	if security := pod.SecurityContext; security == nil || security.RunAsNonRoot == nil || !*security.RunAsNonRoot ||
		security.SeccompProfile == nil || security.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("the pod's security context is not restricted: %v", security)
	}
	for _, container := range pod.Containers {
		security := container.SecurityContext
		if security == nil || security.Capabilities == nil ||
			security.AllowPrivilegeEscalation == nil || *security.AllowPrivilegeEscalation ||
			security.ReadOnlyRootFilesystem == nil || !*security.ReadOnlyRootFilesystem ||
			!slices.Equal(security.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(security.Capabilities.Add) > 0 {
			t.Errorf("container %s is not restricted: %v", container.Name, security)
		}
		if container.Resources.Requests.Memory().IsZero() || container.Resources.Limits.Memory().IsZero() {
			t.Errorf("container %s has no memory request or limit", container.Name)
		}
	}
	for _, volume := range pod.Volumes {
		if volume.HostPath != nil {
			t.Errorf("volume %s is a path of the host", volume.Name)
		}
	}
	if *deployment.Spec.Replicas != 2 {
		t.Errorf("there are %d operators, want one that leads and one that stands by", *deployment.Spec.Replicas)
	}
}

func TestTheMonitorFindsTheMetricsService(t *testing.T) {
	services := ofKind[corev1.Service](t, build(t, "default"), "Service")
	monitor := ofKind[unstructured.Unstructured](t, build(t, "prometheus"), "ServiceMonitor")[0]
	wanted, _, err := unstructured.NestedStringMap(monitor.Object, "spec", "selector", "matchLabels")
	if err != nil {
		t.Fatal(err)
	}
	for _, service := range services {
		matches := service.Namespace == monitor.GetNamespace() && service.Spec.Ports[0].Name == "https"
		for label, value := range wanted {
			matches = matches && service.Labels[label] == value
		}
		if matches {
			return
		}
	}
	t.Errorf("no Service has the labels %v and a port https", wanted)
}
