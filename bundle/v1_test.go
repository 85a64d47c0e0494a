package bundle_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// OLM v1 installs bundles of the format registry+v1 for all namespaces. It resolves no
// dependencies, and serves neither webhooks nor API services without more.
func TestOLMv1CanInstallIt(t *testing.T) {
	spec := load(t).CSV.Spec
	if !slices.Contains(spec.InstallModes, operatorsv1alpha1.InstallMode{Type: operatorsv1alpha1.InstallModeTypeAllNamespaces, Supported: true}) {
		t.Error("the install mode AllNamespaces is not supported")
	}
	if n := len(spec.WebhookDefinitions); n > 0 {
		t.Errorf("the CSV has %d webhooks", n)
	}
	if n := len(spec.APIServiceDefinitions.Owned) + len(spec.APIServiceDefinitions.Required); n > 0 {
		t.Errorf("the CSV has %d API services", n)
	}
	if n := len(spec.CustomResourceDefinitions.Required); n > 0 {
		t.Errorf("the CSV requires %d CRDs of others", n)
	}
	if name := spec.InstallStrategy.StrategyName; name != operatorsv1alpha1.InstallStrategyNameDeployment {
		t.Errorf("the install strategy is %q, want %q", name, operatorsv1alpha1.InstallStrategyNameDeployment)
	}
}

func TestOLMv1FindsNoDependencies(t *testing.T) {
	if _, err := os.Stat("metadata/dependencies.yaml"); err == nil {
		t.Error("the bundle has metadata/dependencies.yaml")
	}
	properties := 0
	for _, document := range documents(t, "../catalog/redis-operator/catalog.yaml") {
		var entry struct {
			Name       string
			Properties []struct{ Type string }
		}
		if err := yaml.Unmarshal([]byte(document), &entry); err != nil {
			t.Fatal(err)
		}
		for _, property := range entry.Properties {
			properties++
			switch property.Type {
			case "olm.package.required", "olm.gvk.required", "olm.constraint":
				t.Errorf("%s has the property %s", entry.Name, property.Type)
			}
		}
	}
	if properties == 0 {
		t.Error("the catalog has no properties: nothing is shown")
	}
}

func documents(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n---\n")
}

func TestTheLayoutIsThatOfRegistryV1(t *testing.T) {
	var metadata struct {
		Annotations map[string]string `json:"annotations"`
	}
	read(t, "metadata/annotations.yaml", &metadata)
	const prefix = "operators.operatorframework.io.bundle."
	for name, want := range map[string]string{
		"mediatype.v1": "registry+v1", "manifests.v1": "manifests/", "metadata.v1": "metadata/", "package.v1": "redis-operator",
	} {
		if got := metadata.Annotations[prefix+name]; got != want {
			t.Errorf("the annotation %s%s is %q, want %q", prefix, name, got, want)
		}
	}
	entries, err := os.ReadDir("manifests")
	if err != nil {
		t.Fatal(err)
	}
	csvs := 0
	for _, entry := range entries {
		if entry.IsDir() || filepath.Ext(entry.Name()) != ".yaml" {
			t.Errorf("manifests/%s is no manifest", entry.Name())
			continue
		}
		csvs += checkManifest(t, entry.Name())
	}
	if csvs != 1 {
		t.Errorf("there are %d ClusterServiceVersions, want one", csvs)
	}
}

// supported are the kinds that a bundle of registry+v1 may have beside its CSV, as far as
// ours needs any.
var supported = []string{"CustomResourceDefinition", "Service", "PodDisruptionBudget", "PriorityClass", "ClusterRole", "Secret", "ConfigMap", "PrometheusRule", "ServiceMonitor"}

// checkManifest looks at one manifest, and returns how many ClusterServiceVersions it is.
func checkManifest(t *testing.T, name string) int {
	t.Helper()
	if n := len(documents(t, filepath.Join("manifests", name))); n != 1 {
		t.Errorf("%s has %d documents, want one", name, n)
	}
	var object metav1.PartialObjectMetadata
	read(t, filepath.Join("manifests", name), &object)
	if object.Kind == operatorsv1alpha1.ClusterServiceVersionKind {
		return 1
	}
	if !slices.Contains(supported, object.Kind) {
		t.Errorf("%s is a %s, which is not known to be supported", name, object.Kind)
	}
	if object.Namespace != "" {
		t.Errorf("%s names the namespace %s: that is for the installer to choose", name, object.Namespace)
	}
	return 0
}
