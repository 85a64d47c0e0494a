package v1alpha1_test

import (
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/testkit/apiserver"
)

func TestMain(m *testing.M) { os.Exit(apiserver.Run(m)) }

const minimalSpec = `
replicas: 1
memoryLimit: 256Mi
enablePersistence: false
`

const persistentSpec = `
replicas: 1
memoryLimit: 256Mi
enablePersistence: true
`

// redisCluster is what a user would write: without a field that is not written
// out, and with values that the Go types could not hold.
func redisCluster(t *testing.T, namespace, name, spec string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{"spec": parse(t, spec)}}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("RedisCluster"))
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	var value map[string]any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	return value
}

// overlay replaces top-level fields of a spec; null removes one.
func overlay(t *testing.T, spec, fields string) string {
	t.Helper()
	merged := parse(t, spec)
	for name, value := range parse(t, fields) {
		if value == nil {
			delete(merged, name)
			continue
		}
		merged[name] = value
	}
	text, err := yaml.Marshal(merged)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// create stores an object and gives it back as the server returned it.
func create(t *testing.T, server *apiserver.Server, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	if err := server.Client.Create(t.Context(), object); err != nil {
		t.Fatalf("create %s: %v", object.GetName(), err)
	}
	return object
}

// dryCreate asks whether the server would admit an object, and stores nothing.
func dryCreate(t *testing.T, server *apiserver.Server, object client.Object) error {
	t.Helper()
	return server.Client.Create(t.Context(), object, client.DryRunAll, client.FieldValidation("Strict"))
}

// wantRefusal checks an error against the message that it must hold; empty for no error.
func wantRefusal(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("refused: %v", err)
	case want != "" && err == nil:
		t.Errorf("accepted, want a refusal with: %s", want)
	case want != "" && !strings.Contains(err.Error(), want):
		t.Errorf("refused with another message:\n got: %v\nwant: %s", err, want)
	}
}
