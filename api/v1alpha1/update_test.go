package v1alpha1_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/internal/testkit/apiserver"
)

func TestUpdates(t *testing.T) {
	const (
		size  = "storage.size cannot shrink or be removed: create a new RedisCluster"
		class = "storage.storageClassName cannot change: create a new RedisCluster"
	)
	tests := map[string]struct{ before, after, want string }{
		"replicas up and down":                         {before: "replicas: 5", after: "replicas: 1"},
		"replicas out of range":                        {after: "replicas: 11", want: "spec.replicas"},
		"memoryLimit up":                               {after: "memoryLimit: 1Gi"},
		"memoryLimit down":                             {after: "memoryLimit: 64Mi"},
		"memoryLimit below the least":                  {after: "memoryLimit: 1Mi", want: "memoryLimit must be at least 64Mi"},
		"persistence on":                               {before: "enablePersistence: false", after: "enablePersistence: true"},
		"persistence off":                              {after: "enablePersistence: false"},
		"persistence off with a size":                  {before: "storage: {size: 1Gi}", after: "{enablePersistence: false, storage: {size: 1Gi}}", want: "storage.size has no effect without enablePersistence"},
		"persistence off and its size removed":         {before: "storage: {size: 1Gi}", after: "{enablePersistence: false, storage: null}"},
		"persistence on again with a smaller size":     {before: "enablePersistence: false", after: "{enablePersistence: true, storage: {size: 64Mi}}"},
		"size grows":                                   {before: "storage: {size: 1Gi}", after: "storage: {size: 2Gi}"},
		"size said in another way":                     {before: "storage: {size: 1Gi}", after: "storage: {size: 1024Mi}"},
		"size shrinks":                                 {before: "storage: {size: 2Gi}", after: "storage: {size: 1Gi}", want: size},
		"size is set later":                            {after: "storage: {size: 5Gi}"},
		"size is removed":                              {before: "storage: {size: 1Gi, reclaimPolicy: Retain}", after: "storage: {reclaimPolicy: Retain}", want: size},
		"storage is removed with its size":             {before: "storage: {size: 1Gi}", after: "storage: null", want: size},
		"storage without a size is removed":            {before: "storage: {reclaimPolicy: Retain}", after: "storage: null"},
		"class stays":                                  {before: "storage: {storageClassName: fast}", after: "storage: {storageClassName: fast, size: 5Gi}"},
		"class changes":                                {before: "storage: {storageClassName: fast}", after: "storage: {storageClassName: slow}", want: class},
		"class is set later":                           {before: "storage: {reclaimPolicy: Retain}", after: "storage: {storageClassName: fast}", want: class},
		"class is set later with storage":              {after: "storage: {storageClassName: fast}", want: class},
		"class is removed":                             {before: "storage: {storageClassName: fast}", after: "storage: {reclaimPolicy: Delete}", want: class},
		"class is removed with storage":                {before: "storage: {storageClassName: fast}", after: "storage: null", want: class},
		"class changes while nothing is stored":        {before: "{enablePersistence: false, storage: {storageClassName: fast}}", after: "{enablePersistence: false, storage: {storageClassName: slow}}"},
		"reclaim policy there":                         {after: "storage: {reclaimPolicy: Retain}"},
		"reclaim policy back":                          {before: "storage: {reclaimPolicy: Retain}", after: "storage: {reclaimPolicy: Delete}"},
		"image, config, auth and the rest are set":     {after: "{image: 'redis:8.0', config: {hz: '10'}, auth: {secretName: a}, resources: {cpu: {limit: 1}}, podMetadata: {labels: {a: b}}, service: {primary: {type: NodePort}}, scheduling: {nodeSelector: {a: b}}}"},
		"image, config, auth and the rest are reset":   {before: "{image: 'redis:8.0', config: {hz: '10'}, auth: {secretName: a}, resources: {cpu: {limit: 1}}, podMetadata: {labels: {a: b}}, service: {primary: {type: NodePort}}, scheduling: {nodeSelector: {a: b}}}", after: "{image: null, config: null, auth: null, resources: null, podMetadata: null, service: null, scheduling: null}"},
		"fewer replicas than durability needs":         {before: "{replicas: 3, durability: {mode: Strict, minReplicas: 2}}", after: "replicas: 2", want: "durability.minReplicas (1 unless set) must be less than replicas"},
		"durability there":                             {before: "replicas: 2", after: "durability: {mode: Strict}"},
		"and back":                                     {before: "{replicas: 2, durability: {mode: Strict}}", after: "durability: null"},
		"a config value gets a second line":            {before: "config: {a: b}", after: `config: {a: "b\nc"}`, want: "config values must be one line"},
		"a label of the operator is added to the pods": {after: "podMetadata: {labels: {cache.seang.org/role: primary}}", want: "belong to the operator"},
	}
	server := apiserver.Get(t)
	namespace := server.Namespace(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before := redisCluster(t, namespace, "", persistentSpec)
			before.SetGenerateName("cache-")
			before.Object["spec"] = parse(t, overlay(t, persistentSpec, test.before))
			object := create(t, server, before)

			text := overlay(t, overlay(t, persistentSpec, test.before), test.after)
			object.Object["spec"] = parse(t, text)
			wantRefusal(t, server.Client.Update(t.Context(), object, client.DryRunAll), test.want)
		})
	}
}

func TestStatusCanBeWrittenWhateverTheSpecIs(t *testing.T) {
	server := apiserver.Get(t)
	object := create(t, server, redisCluster(t, server.Namespace(t), "cache", overlay(t, persistentSpec, "storage: {size: 1Gi}")))
	if err := unstructured.SetNestedField(object.Object, "Ready", "status", "phase"); err != nil {
		t.Fatal(err)
	}
	if err := server.Client.Status().Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedField(object.Object, "Splendid", "status", "phase"); err != nil {
		t.Fatal(err)
	}
	wantRefusal(t, server.Client.Status().Update(t.Context(), object), `status.phase: Unsupported value: "Splendid"`)
}
