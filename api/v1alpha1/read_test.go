package v1alpha1_test

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/testkit/apiserver"
)

func read(t *testing.T, server *apiserver.Server, object *unstructured.Unstructured) {
	t.Helper()
	if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
}

// numbers makes all numbers of a value floats, as YAML gives them.
func numbers(t *testing.T, value any) map[string]any {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var same map[string]any
	if err := json.Unmarshal(data, &same); err != nil {
		t.Fatal(err)
	}
	return same
}

func discover(t *testing.T, server *apiserver.Server, name string) metav1.APIResource {
	t.Helper()
	discoveryClient, err := discovery.NewDiscoveryClientForConfig(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	list, err := discoveryClient.ServerResourcesForGroupVersion(v1alpha1.GroupVersion.String())
	if err != nil {
		t.Fatal(err)
	}
	for _, resource := range list.APIResources {
		if resource.Name == name {
			return resource
		}
	}
	t.Fatalf("the server has no resource %s", name)
	return metav1.APIResource{}
}
