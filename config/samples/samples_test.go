package samples_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kyaml "sigs.k8s.io/yaml"

	"seang.org/operator/internal/testkit/apiserver"
)

func TestMain(m *testing.M) { os.Exit(apiserver.Run(m)) }

const kustomization = "kustomization.yaml"

func TestSamplesAreAdmitted(t *testing.T) {
	server := apiserver.Get(t)
	for _, file := range samples(t) {
		t.Run(file, func(t *testing.T) {
			namespace := server.Namespace(t)
			clusters := 0
			for _, object := range objects(t, file) {
				object.SetNamespace(namespace)
				configuration := client.ApplyConfigurationFromUnstructured(object)
				if err := server.Client.Apply(t.Context(), configuration, client.FieldOwner("user")); err != nil {
					t.Errorf("apply %s %s: %v", object.GetKind(), object.GetName(), err)
				}
				if object.GetKind() == "RedisCluster" {
					clusters++
				}
			}
			if clusters != 1 {
				t.Errorf("%d RedisClusters, want 1", clusters)
			}
		})
	}
}

func TestTheMinimalSampleHasTheThreeRequiredFieldsOnly(t *testing.T) {
	spec, _, err := unstructured.NestedMap(objects(t, "minimal.yaml")[0].Object, "spec")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"replicas": int64(2), "memoryLimit": "256Mi", "enablePersistence": false}
	if diff := cmp.Diff(want, spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

func TestTheKustomizationListsEverySample(t *testing.T) {
	data, err := os.ReadFile(kustomization)
	if err != nil {
		t.Fatal(err)
	}
	var listed struct {
		Resources []string `json:"resources"`
	}
	if err := kyaml.Unmarshal(data, &listed); err != nil {
		t.Fatal(err)
	}
	slices.Sort(listed.Resources)
	if diff := cmp.Diff(samples(t), listed.Resources); diff != "" {
		t.Errorf("%s (-files +listed):\n%s", kustomization, diff)
	}
}

func TestSamplesCanBeAppliedTogether(t *testing.T) {
	seen := map[string]string{}
	for _, file := range samples(t) {
		for _, object := range objects(t, file) {
			key := object.GetKind() + "/" + object.GetName()
			if other, taken := seen[key]; taken {
				t.Errorf("%s is in %s and in %s", key, other, file)
			}
			seen[key] = file
		}
	}
}

// samples are the manifests of this directory, sorted.
func samples(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(files, func(file string) bool { return file == kustomization })
}

func objects(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	data, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		t.Fatal(err)
	}
	var all []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), len(data))
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, object)
	}
}
