package v1alpha1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/testkit/apiserver"
)

// A GitOps tool applies a manifest and compares it with what it reads back.
func TestTheServerKeepsTheSpecAsWritten(t *testing.T) {
	tests := map[string]struct{ spec, want string }{
		"a minimal spec gets nothing added": {spec: minimalSpec, want: minimalSpec},
		"quantities stay as they were written": {
			spec: overlay(t, persistentSpec, "{memoryLimit: 1024Mi, storage: {size: 0.5Gi, reclaimPolicy: Delete}, resources: {cpu: {request: 1000m, limit: 2.0}}}"),
			want: overlay(t, persistentSpec, "{memoryLimit: 1024Mi, storage: {size: 0.5Gi, reclaimPolicy: Delete}, resources: {cpu: {request: 1000m, limit: 2.0}}}"),
		},
		"storage gets its declared default": {
			spec: overlay(t, persistentSpec, "storage: {size: 1Gi}"),
			want: overlay(t, persistentSpec, "storage: {size: 1Gi, reclaimPolicy: Delete}"),
		},
		"a Service gets its declared default": {
			spec: overlay(t, minimalSpec, "service: {primary: {annotations: {a: b}}, replicas: {}}"),
			want: overlay(t, minimalSpec, "service: {primary: {annotations: {a: b}, type: ClusterIP}, replicas: {type: ClusterIP}}"),
		},
		"empty sections stay": {
			spec: overlay(t, minimalSpec, "{auth: {}, scheduling: {}, resources: {cpu: {}}, podMetadata: {}, config: {}}"),
			want: overlay(t, minimalSpec, "{auth: {}, scheduling: {}, resources: {cpu: {}}, podMetadata: {}, config: {}}"),
		},
		"scheduling gets nothing added": {
			spec: overlay(t, minimalSpec, "scheduling: {tolerations: [{key: a}], topologySpreadConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]}"),
			want: overlay(t, minimalSpec, "scheduling: {tolerations: [{key: a}], topologySpreadConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]}"),
		},
	}
	server := apiserver.Get(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			object := redisCluster(t, server.Namespace(t), "cache", test.spec)
			apply := func() {
				t.Helper()
				err := server.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object.DeepCopy()), client.FieldOwner("gitops"))
				if err != nil {
					t.Fatal(err)
				}
			}
			apply()
			stored := object.DeepCopy()
			read(t, server, stored)
			if diff := cmp.Diff(parse(t, test.want), numbers(t, stored.Object["spec"])); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
			version := stored.GetResourceVersion()
			apply()
			read(t, server, stored)
			if stored.GetResourceVersion() != version || stored.GetGeneration() != 1 {
				t.Errorf("a second apply of the same manifest changed the object: generation %d", stored.GetGeneration())
			}
		})
	}
}

// The Go types must not add fields either, since the operator patches the object.
func TestTheGoTypesKeepTheSpecAsWritten(t *testing.T) {
	for name, spec := range map[string]string{"minimal": minimalSpec, "persistent": persistentSpec} {
		t.Run(name, func(t *testing.T) {
			var typed v1alpha1.RedisCluster
			object := redisCluster(t, "default", "cache", spec)
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &typed); err != nil {
				t.Fatal(err)
			}
			back, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&typed)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(numbers(t, object.Object["spec"]), numbers(t, back["spec"])); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
		})
	}
}

func TestScaleSubresource(t *testing.T) {
	server := apiserver.Get(t)
	ctx := t.Context()
	object := create(t, server, redisCluster(t, server.Namespace(t), "cache", minimalSpec))
	object.Object["status"] = map[string]any{"activeReplicas": int64(1), "selector": "cache.seang.org/role=replica"}
	if err := server.Client.Status().Update(ctx, object); err != nil {
		t.Fatal(err)
	}

	cluster := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName()}}
	scale := &autoscalingv1.Scale{}
	if err := server.Client.SubResource("scale").Get(ctx, cluster, scale); err != nil {
		t.Fatal(err)
	}
	want := autoscalingv1.Scale{
		Spec:   autoscalingv1.ScaleSpec{Replicas: 1},
		Status: autoscalingv1.ScaleStatus{Replicas: 1, Selector: "cache.seang.org/role=replica"},
	}
	if diff := cmp.Diff(want, autoscalingv1.Scale{Spec: scale.Spec, Status: scale.Status}); diff != "" {
		t.Errorf("scale (-want +got):\n%s", diff)
	}

	scale.Spec.Replicas = 4
	if err := server.Client.SubResource("scale").Update(ctx, cluster, client.WithSubResourceBody(scale)); err != nil {
		t.Fatal(err)
	}
	read(t, server, object)
	spec, _ := object.Object["spec"].(map[string]any)
	if diff := cmp.Diff(int64(4), spec["replicas"]); diff != "" {
		t.Errorf("spec.replicas after a scale (-want +got):\n%s", diff)
	}

	scale.ResourceVersion = ""
	scale.Spec.Replicas = 0
	wantRefusal(t, server.Client.SubResource("scale").Update(ctx, cluster, client.WithSubResourceBody(scale)), "spec.replicas")
}

func TestPrinterColumns(t *testing.T) {
	server := apiserver.Get(t)
	namespace := server.Namespace(t)
	object := create(t, server, redisCluster(t, namespace, "cache", minimalSpec))
	object.Object["status"] = map[string]any{
		"phase": "Ready", "activeReplicas": int64(1), "primary": "cache-0", "redisVersion": "redis 8.0.2",
	}
	if err := server.Client.Status().Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	table := readTable(t, server, namespace)

	type column struct {
		Name, Type string
		Wide       bool
	}
	want := []column{
		{"Name", "string", false},
		{"Replicas", "integer", false},
		{"Phase", "string", false},
		{"Active", "integer", true},
		{"Primary", "string", true},
		{"Version", "string", true},
		{"Age", "date", false},
	}
	var got []column
	for _, c := range table.ColumnDefinitions {
		got = append(got, column{c.Name, c.Type, c.Priority > 0})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	cells := table.Rows[0].Cells
	if diff := cmp.Diff([]any{"cache", int64(1), "Ready", int64(1), "cache-0", "redis 8.0.2"}, cells[:len(cells)-1]); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
}

func readTable(t *testing.T, server *apiserver.Server, namespace string) *metav1.Table {
	t.Helper()
	httpClient, err := rest.HTTPClientFor(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	restClient, err := apiutil.RESTClientForGVK(v1alpha1.GroupVersion.WithKind("RedisCluster"), false, false, server.Config, scheme.Codecs, httpClient)
	if err != nil {
		t.Fatal(err)
	}
	table := &metav1.Table{}
	err = restClient.Get().
		Namespace(namespace).
		Resource("redisclusters").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").
		Do(t.Context()).
		Into(table)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestNamesOfTheKind(t *testing.T) {
	server := apiserver.Get(t)
	mapping, err := server.Client.RESTMapper().RESTMapping(v1alpha1.GroupVersion.WithKind("RedisCluster").GroupKind(), v1alpha1.GroupVersion.Version)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("redisclusters", mapping.Resource.Resource); diff != "" {
		t.Errorf("resource (-want +got):\n%s", diff)
	}
	resource := discover(t, server, "redisclusters")
	if diff := cmp.Diff([]string{"rdc"}, resource.ShortNames); diff != "" {
		t.Errorf("short names (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"all"}, resource.Categories); diff != "" {
		t.Errorf("categories (-want +got):\n%s", diff)
	}
}
