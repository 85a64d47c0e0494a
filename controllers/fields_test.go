package controllers_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/testkit/apiserver"
	"seang.org/operator/internal/testkit/authority"
)

// TestEveryFieldOfTheSchemaIsTried finds the fields that the table lacks, and the other
// way round.
func TestEveryFieldOfTheSchemaIsTried(t *testing.T) {
	text, err := os.ReadFile("../config/crd/bases/cache.seang.org_redisclusters.yaml")
	if err != nil {
		t.Fatal(err)
	}
	crd := map[string]any{}
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	versions, _, err := unstructured.NestedSlice(crd, "spec", "versions")
	if err != nil || len(versions) != 1 {
		t.Fatalf("%d versions in the schema: %v", len(versions), err)
	}
	spec, _, err := unstructured.NestedMap(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "spec")
	if err != nil {
		t.Fatal(err)
	}
	known := maps.Clone(fields)
	for _, path := range untried(spec, "", known) {
		t.Errorf("fields has no values for spec.%s", path)
	}
	for path := range known {
		t.Errorf("fields has spec.%s, which the schema has not", path)
	}
}

// untried are the fields below path that are not known; those that are, it removes.
func untried(schema map[string]any, path string, known map[string]field) (missing []string) {
	if _, ok := known[path]; ok {
		delete(known, path)
		return nil
	}
	properties, _, _ := unstructured.NestedMap(schema, "properties")
	if len(properties) == 0 {
		return []string{path}
	}
	for name, property := range properties {
		missing = append(missing, untried(property.(map[string]any), strings.TrimPrefix(path+"."+name, "."), known)...)
	}
	return missing
}

// TestTheEndDoesNotDependOnTheWay sets each field of the spec, changes it, removes it and
// reverts it, on a RedisCluster that was created with it and on one that got it later.
// All objects and all running configurations are the same wherever the spec is, and then
// nothing is written any more.
func TestTheEndDoesNotDependOnTheWay(t *testing.T) {
	t.Parallel()
	server := apiserver.Get(t)
	prepare(t, server)
	var group errgroup.Group
	group.SetLimit(lanesAtATime)
	defer func() { _ = group.Wait() }()
	for _, path := range slices.Sorted(maps.Keys(fields)) {
		group.Go(func() error {
			t.Run(path, func(t *testing.T) { fields[path].walk(t, server, path) })
			return nil
		})
	}
}

// prepare makes what the values of fields name.
func prepare(t *testing.T, server *apiserver.Server) {
	t.Helper()
	serveCertificates(t, server)
	var objects []client.Object
	for _, name := range []string{classGrowing, classOther} {
		objects = append(objects, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: "test", AllowVolumeExpansion: new(true)})
	}
	for i, name := range []string{"fields-low", "fields-high"} {
		objects = append(objects, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: int32(i)})
	}
	// The node of all pods, which must have what a pod asks for when it is resized.
	machine := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("64Gi")}
	objects = append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}, Status: corev1.NodeStatus{Capacity: machine, Allocatable: machine}})
	for _, object := range objects {
		if err := server.Client.Create(t.Context(), object); err != nil {
			t.Fatalf("create %s: %v", object.GetName(), err)
		}
	}
}

// step is one thing that a person does to a field.
type step struct {
	value string // JSON; empty where the field is not there
	// refused is what admission says; empty where it says nothing
	refused string
}

// walk takes two RedisClusters along two ways and compares where they come to.
func (f field) walk(t *testing.T, server *apiserver.Server, path string) {
	states := map[string]string{}
	later := []step{{}, {value: f.first}, {value: f.second}, {refused: f.grows}}
	with := []step{{value: f.first}, {refused: f.grows}, {value: f.second}, {value: f.first, refused: f.grows}}
	if f.fixed != "" {
		later = []step{{}, {value: f.first, refused: f.fixed}}
		with = []step{{value: f.first}, {value: f.second, refused: f.fixed}, {refused: f.fixed}}
	}
	walks := []*fieldLane{f.lane(t, server, path, states), f.lane(t, server, path, states)}
	for i := range max(len(later), len(with)) {
		for n, steps := range [][]step{later, with} {
			if i < len(steps) {
				walks[n].take(steps[i])
			}
		}
	}
	same := states[f.name("")] == states[f.name(f.first)]
	if same != (f.unseen != "") {
		t.Errorf("with %s=%s, all children and processes are as without it: %t", path, f.first, same)
	}
}

func (f field) name(value string) string { return "with the value " + value }

// fieldLane is one of the two RedisClusters.
type fieldLane struct {
	*lane
	field
	path    []string
	absent  any // what the base has in place of the field
	created bool
}

func (f field) lane(t *testing.T, server *apiserver.Server, path string, states map[string]string) *fieldLane {
	t.Helper()
	l := &fieldLane{lane: newLane(t, server, course{}), field: f, path: strings.Split(path, ".")}
	l.reference, l.also = states, l.configuration
	l.absent, _, _ = unstructured.NestedFieldCopy(l.base(), l.path...)
	for _, name := range []string{"password-one", "password-two"} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: name},
			Data: map[string][]byte{naming.KeyPassword: []byte(name + "-of-the-applications")}}
		if err := l.client.Create(t.Context(), secret); err != nil {
			t.Fatalf("create a Secret: %v", err)
		}
	}
	for _, name := range []string{"certificate-one", "certificate-two"} {
		if err := l.client.Create(t.Context(), certificateSecret(l.namespace, name, authority.New(t, name).Issue(covering(l.namespace)))); err != nil {
			t.Fatalf("create a Secret: %v", err)
		}
	}
	if strings.Contains(f.base, "issuerRef") {
		issue(t, server, l.namespace)
	}
	return l
}

// base is the spec without the field.
func (l *fieldLane) base() map[string]any {
	spec := map[string]any{}
	for _, text := range []string{`{"replicas": 1, "memoryLimit": "128Mi", "enablePersistence": false}`, l.field.base} {
		if text == "" {
			continue
		}
		if err := json.Unmarshal([]byte(text), &spec); err != nil {
			l.t.Fatalf("%s: %v", text, err)
		}
	}
	return spec
}

// edit puts the value into a spec.
func (l *fieldLane) edit(spec map[string]any, value string) {
	wanted := l.absent
	if value != "" {
		if err := json.Unmarshal([]byte(value), &wanted); err != nil {
			l.t.Fatalf("%s: %v", value, err)
		}
	}
	if wanted == nil {
		unstructured.RemoveNestedField(spec, l.path...)
		return
	}
	if err := unstructured.SetNestedField(spec, wanted, l.path...); err != nil {
		l.t.Fatalf("set %v: %v", l.path, err)
	}
}

// take does a step, and waits until all is as asked.
func (l *fieldLane) take(s step) {
	l.t.Helper()
	if s.refused != "" {
		if err := l.write(s.value); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), s.refused) {
			l.t.Errorf("%v=%s gives %v, want %s", l.path, s.value, err, s.refused)
		}
		return
	}
	l.run(workload{name: l.name(s.value),
		begin: func(*lane) {
			if err := l.write(s.value); err != nil {
				l.t.Fatalf("%v=%s: %v", l.path, s.value, err)
			}
		},
		done: func(_ *lane, pods map[string]*corev1.Pod) error {
			if l.cluster == nil || len(pods) < 2 {
				return fmt.Errorf("no RedisCluster, or %d pods", len(pods))
			}
			return l.readPassword()
		}}, 0, crash)
}

// write makes the RedisCluster with the value, or gives it the value.
func (l *fieldLane) write(value string) error {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("RedisCluster"))
	object.SetNamespace(l.namespace)
	object.SetName(l.wanted.Name)
	if !l.created {
		l.created = true
		spec := l.base()
		l.edit(spec, value)
		object.Object["spec"] = spec
		return l.client.Create(l.t.Context(), object)
	}
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := l.client.Get(l.t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		l.edit(object.Object["spec"].(map[string]any), value)
		return l.client.Update(l.t.Context(), object)
	})
}

// readPassword reads the password that applications have, which is tried on each member:
// that of the Secret that the spec names.
func (l *fieldLane) readPassword() error {
	app, err := l.secretValue(naming.AppSecret("cache"), naming.KeyPassword)
	if err != nil {
		return err
	}
	l.password = app
	if auth := l.cluster.Spec.Auth; auth != nil && auth.SecretName != "" {
		given, err := l.secretValue(auth.SecretName, naming.KeyPassword)
		if err != nil {
			return err
		}
		return pending(given != app, "applications have another password than that of %s", auth.SecretName)
	}
	return nil
}
