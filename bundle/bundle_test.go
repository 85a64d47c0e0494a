package bundle_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	"github.com/operator-framework/api/pkg/manifests"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/api/pkg/validation"
	interfaces "github.com/operator-framework/api/pkg/validation/interfaces"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"seang.org/operator/catalog"
	"seang.org/operator/test/registry"
)

func load(t *testing.T) *manifests.Bundle {
	t.Helper()
	bundle, err := manifests.GetBundleFromDir("manifests")
	if err != nil {
		t.Fatal(err)
	}
	if bundle.CSV == nil || len(bundle.V1CRDs) != 1 {
		t.Fatalf("the bundle has CSV %v and %d CRDs, want one each", bundle.CSV != nil, len(bundle.V1CRDs))
	}
	return bundle
}

func TestEveryValidatorIsContent(t *testing.T) {
	bundle := load(t)
	objects := bundle.ObjectsToValidate()
	objects = append(objects, map[string]string{"k8s-version": "1.37.0"})
	// The one left out pulls the images with a container engine to see their platforms:
	// TestThePlatformsAreNamed looks at what it compares them with.
	validators := slices.DeleteFunc(slices.Clone([]interfaces.Validator(validation.AllValidators)), func(v interfaces.Validator) bool {
		return reflect.ValueOf(v).Pointer() == reflect.ValueOf(validation.MultipleArchitecturesValidator).Pointer()
	})
	for _, validator := range validators {
		for _, result := range validator.Validate(objects...) {
			for _, found := range append(result.Errors, result.Warnings...) {
				t.Errorf("%s: %v", result.Name, found)
			}
		}
	}
}

func TestThePlatformsAreNamed(t *testing.T) {
	labels := load(t).CSV.Labels
	for _, platform := range []string{"arch.amd64", "arch.arm64", "os.linux"} {
		if labels["operatorframework.io/"+platform] != "supported" {
			t.Errorf("the label operatorframework.io/%s is %q, want supported", platform, labels["operatorframework.io/"+platform])
		}
	}
}

// A catalog reads the annotations, a registry the labels.
func TestTheImageHasTheAnnotationsAsLabels(t *testing.T) {
	var metadata struct {
		Annotations map[string]string `json:"annotations"`
	}
	read(t, "metadata/annotations.yaml", &metadata)
	dockerfile, err := os.ReadFile("../bundle.Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{}
	for _, found := range regexp.MustCompile(`(?m)^LABEL ([^=]+)=(.*)$`).FindAllStringSubmatch(string(dockerfile), -1) {
		labels[found[1]] = found[2]
	}
	if diff := cmp.Diff(metadata.Annotations, labels); diff != "" {
		t.Errorf("annotations.yaml and the labels of bundle.Dockerfile differ (-annotations +labels):\n%s", diff)
	}
}

func TestVersionsAndImagesAgree(t *testing.T) {
	csv := load(t).CSV
	version := csv.Spec.Version.String()
	if want := "redis-operator.v" + version; csv.Name != want {
		t.Errorf("the CSV is named %s, want %s", csv.Name, want)
	}
	image := registry.Operator + ":v" + version
	container := csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0]
	if got := csv.Annotations["containerImage"]; container.Image != image || got != image {
		t.Errorf("the Deployment runs %s, the annotation containerImage is %s, want %s", container.Image, got, image)
	}
	var scorecard v1alpha3.Configuration
	read(t, "tests/scorecard/config.yaml", &scorecard)
	for _, stage := range scorecard.Stages {
		for _, test := range stage.Tests {
			if want := registry.Scorecard + ":v" + version; test.Entrypoint[0] == "scorecard" && test.Image != want {
				t.Errorf("the scorecard test %s has the image %s, want %s", test.Entrypoint[1], test.Image, want)
			}
		}
	}
	for _, env := range container.Env {
		if strings.HasPrefix(env.Name, "RELATED_IMAGE_") && !slices.ContainsFunc(csv.Spec.RelatedImages, func(r operatorsv1alpha1.RelatedImage) bool { return r.Image == env.Value }) {
			t.Errorf("%s=%s is not among relatedImages", env.Name, env.Value)
		}
	}
}

func TestEveryFieldIsDescribedAndEveryDescriptionHasAField(t *testing.T) {
	bundle := load(t)
	owned := bundle.CSV.Spec.CustomResourceDefinitions.Owned[0]
	schema := bundle.V1CRDs[0].Spec.Versions[0].Schema.OpenAPIV3Schema
	spec, status := map[string]bool{}, map[string]bool{}
	for _, d := range owned.SpecDescriptors {
		spec[d.Path] = true
	}
	for _, d := range owned.StatusDescriptors {
		status[d.Path] = true
	}
	for part, described := range map[string]map[string]bool{"spec": spec, "status": status} {
		for field := range schema.Properties[part].Properties {
			if !described[field] {
				t.Errorf("%s.%s has no descriptor: give it a marker in api/v1alpha1", part, field)
			}
		}
		for path := range described {
			node := schema.Properties[part]
			for name := range strings.SplitSeq(path, ".") {
				name, isList := strings.CutSuffix(name, "[0]")
				child, found := node.Properties[name]
				if isList && child.Items != nil {
					child = *child.Items.Schema
				}
				if !found {
					t.Errorf("%s.%s is described, and is no field", part, path)
					break
				}
				node = child
			}
		}
	}
}

// What is stored, and what people send, stays valid.
func TestTheCRDTakesAllThatTheLastReleaseTook(t *testing.T) {
	releases, _, err := catalog.Read()
	if err != nil {
		t.Fatal(err)
	}
	const file = "config/crd/bases/cache.seang.org_redisclusters.yaml"
	last := releases[len(releases)-1]
	var before apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(atCommit(t, last.Commit, file), &before); err != nil {
		t.Fatal(err)
	}
	after := load(t).V1CRDs[0].Spec.Versions
	for _, old := range before.Spec.Versions {
		at := slices.IndexFunc(after, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == old.Name })
		if at < 0 || !after[at].Served {
			t.Errorf("version %s, which %s has, is not served any more", old.Name, last.Version)
			continue
		}
		for _, found := range tightened("", *old.Schema.OpenAPIV3Schema, *after[at].Schema.OpenAPIV3Schema) {
			t.Errorf("since %s: %s", last.Version, found)
		}
	}
}

func TestTightenedSeesWhatUsersWouldFeel(t *testing.T) {
	number := func(low float64) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "integer", Minimum: &low}
	}
	object := func(fields map[string]apiextensionsv1.JSONSchemaProps, required ...string) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: fields, Required: required}
	}
	type fields = map[string]apiextensionsv1.JSONSchemaProps
	for name, c := range map[string]struct {
		before, after apiextensionsv1.JSONSchemaProps
		want          int
	}{
		"nothing changed":       {object(fields{"a": number(1)}), object(fields{"a": number(1)}), 0},
		"a field came":          {object(fields{"a": number(1)}), object(fields{"a": number(1), "b": number(1)}), 0},
		"a field went":          {object(fields{"a": number(1)}), object(fields{}), 1},
		"a field became needed": {object(fields{"a": number(1)}), object(fields{"a": number(1)}, "a"), 1},
		"a bound came closer":   {object(fields{"a": number(1)}), object(fields{"a": number(2)}), 1},
		"a bound went away":     {object(fields{"a": number(2)}), object(fields{"a": number(1)}), 0},
		"another type":          {object(fields{"a": number(1)}), object(fields{"a": {Type: "string"}}), 1},
		"a value went": {
			object(fields{"a": {Enum: []apiextensionsv1.JSON{{Raw: []byte(`"x"`)}, {Raw: []byte(`"y"`)}}}}),
			object(fields{"a": {Enum: []apiextensionsv1.JSON{{Raw: []byte(`"x"`)}}}}), 1},
		"a rule came": {object(fields{}), apiextensionsv1.JSONSchemaProps{Type: "object",
			XValidations: apiextensionsv1.ValidationRules{{Rule: "self.a > 1"}}}, 1},
		"a rule of a field that came": {object(fields{}), apiextensionsv1.JSONSchemaProps{Type: "object", Properties: fields{"a": number(1)},
			XValidations: apiextensionsv1.ValidationRules{{Rule: "!has(self.a) || self.a > 1"}}}, 0},
		"a rule of a field that was there": {object(fields{"a": number(1)}), apiextensionsv1.JSONSchemaProps{Type: "object", Properties: fields{"a": number(1)},
			XValidations: apiextensionsv1.ValidationRules{{Rule: "!has(self.a) || self.a > 1"}}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tightened("", c.before, c.after); len(got) != c.want {
				t.Errorf("got %q, want %d findings", got, c.want)
			}
		})
	}
}

// tightened says where a schema refuses what an earlier one took.
func tightened(path string, before, after apiextensionsv1.JSONSchemaProps) []string {
	var found []string
	say := func(what string) { found = append(found, path+": "+what) }
	if before.Type != after.Type {
		say("the type changed from " + before.Type + " to " + after.Type)
	}
	for _, name := range after.Required {
		if !slices.Contains(before.Required, name) {
			say(name + " is required now")
		}
	}
	for _, value := range before.Enum {
		if len(after.Enum) > 0 && !slices.ContainsFunc(after.Enum, func(v apiextensionsv1.JSON) bool { return string(v.Raw) == string(value.Raw) }) {
			say("the value " + string(value.Raw) + " went")
		}
	}
	if len(before.Enum) == 0 && len(after.Enum) > 0 {
		say("only some values are allowed now")
	}
	if after.Pattern != "" && after.Pattern != before.Pattern {
		say("the pattern changed")
	}
	for _, rule := range after.XValidations {
		known := slices.ContainsFunc(before.XValidations, func(r apiextensionsv1.ValidationRule) bool { return r.Rule == rule.Rule })
		if !known && !ofNewField(rule.Rule, before) {
			say("there is a new rule: " + rule.Rule)
		}
	}
	if lower(before.Maximum, after.Maximum) || lower(before.MaxLength, after.MaxLength) || lower(before.MaxItems, after.MaxItems) || lower(before.MaxProperties, after.MaxProperties) {
		say("an upper bound came closer")
	}
	if higher(before.Minimum, after.Minimum) || higher(before.MinLength, after.MinLength) || higher(before.MinItems, after.MinItems) {
		say("a lower bound came closer")
	}
	for _, name := range slices.Sorted(maps.Keys(before.Properties)) {
		child, kept := after.Properties[name]
		if !kept {
			say(name + " was removed")
			continue
		}
		found = append(found, tightened(path+"."+name, before.Properties[name], child)...)
	}
	if before.Items != nil && after.Items != nil && before.Items.Schema != nil && after.Items.Schema != nil {
		found = append(found, tightened(path+"[]", *before.Items.Schema, *after.Items.Schema)...)
	}
	return found
}

// ofNewField says that a rule holds wherever a field is absent that there was not before.
func ofNewField(rule string, before apiextensionsv1.JSONSchemaProps) bool {
	field, conditional := strings.CutPrefix(rule, "!has(self.")
	field, _, closed := strings.Cut(field, ") || ")
	_, old := before.Properties[field]
	return conditional && closed && !old
}

// lower says that b bounds from above more than a; nil does not bound.
func lower[N int64 | float64](a, b *N) bool {
	return b != nil && (a == nil || *b < *a)
}

// higher says that b bounds from below more than a; nil does not bound.
func higher[N int64 | float64](a, b *N) bool {
	return b != nil && (a == nil || *b > *a)
}

// atCommit is a file as a commit of the history has it.
func atCommit(t *testing.T, commit, file string) []byte {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), "git", "show", commit+":"+file).Output()
	if err != nil {
		t.Fatalf("read %s of commit %s, which the whole history has: %v", file, commit, err)
	}
	return text
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}
