package resources_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/resources"
	"seang.org/operator/internal/testkit/golden"
)

// Values that no object but a Secret may hold.
const (
	appPassword         = "app-p@ss/word:1"
	operatorPassword    = "operator-secret-2"
	replicationPassword = "replication-secret-3"
)

func minimal() resources.Input {
	return resources.Input{
		Cluster: &v1alpha1.RedisCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "cache", Namespace: "shop", UID: "6b4ce5b2-0000-0000-0000-000000000001"},
			Spec: v1alpha1.RedisClusterSpec{
				Replicas:          2,
				MemoryLimit:       resource.MustParse("256Mi"),
				EnablePersistence: new(false),
			},
		},
		Image:       "redis:8.0",
		RedisConf:   "port 6379\nmaxmemory 134217728\n",
		StartScript: "exec redis-server /etc/redis/config/redis.conf\n",
		Template:    `{"image":"12345678"}`,
		Primary:     "cache-0",
		Replicas:    2,
		MemoryLimit: resource.MustParse("256Mi"),
	}
}

func persistent() resources.Input {
	in := minimal()
	in.Cluster.Spec.EnablePersistence = new(true)
	in.Persistent = true
	in.StorageSize = resource.MustParse("1Gi")
	return in
}

// everything sets each field of the spec that a child depends on.
func everything() resources.Input {
	in := persistent()
	in.Replicas = 4
	in.Primary = "cache-3"
	in.Image = "registry.example.com/redis:7.0"
	in.StorageSize = resource.MustParse("20Gi")
	spec := &in.Cluster.Spec
	spec.Storage = &v1alpha1.StorageSpec{
		Size:             new(resource.MustParse("20Gi")),
		StorageClassName: "fast",
		ReclaimPolicy:    v1alpha1.ReclaimRetain,
	}
	spec.Auth = &v1alpha1.AuthSpec{SecretName: "my-password"}
	spec.Scheduling = &v1alpha1.SchedulingSpec{
		NodeSelector: map[string]string{"pool": "data", "arch": "amd64"},
		Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: "disk", Operator: corev1.NodeSelectorOpIn, Values: []string{"nvme"},
				}}}},
			},
		}},
		Tolerations: []corev1.Toleration{{Key: "data", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}},
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule,
		}},
		PriorityClassName: "important",
	}
	spec.Resources = &v1alpha1.ResourcesSpec{CPU: &v1alpha1.CPUSpec{
		Request: new(resource.MustParse("500m")), Limit: new(resource.MustParse("2")),
	}}
	spec.ImagePullSecrets = []v1alpha1.PullSecret{{Name: "registry"}}
	spec.NetworkPolicy = &v1alpha1.NetworkPolicySpec{Clients: []networkingv1.NetworkPolicyPeer{
		{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}}, PodSelector: &metav1.LabelSelector{}},
		{IPBlock: &networkingv1.IPBlock{CIDR: "192.0.2.0/24", Except: []string{"192.0.2.1/32"}}},
	}}
	spec.Service = &v1alpha1.ServicesSpec{
		Primary: &v1alpha1.ServiceSpec{Type: "LoadBalancer", Annotations: map[string]string{"lb.example.com/internal": "true"},
			IPFamilyPolicy: "PreferDualStack", IPFamilies: []v1alpha1.IPFamily{"IPv4", "IPv6"}, ExternalTrafficPolicy: "Local",
			LoadBalancerSourceRanges: []v1alpha1.CIDR{"192.0.2.0/24"}},
		Replicas: &v1alpha1.ServiceSpec{Type: "NodePort", Annotations: map[string]string{"team": "shop"}},
	}
	spec.PodMetadata = &v1alpha1.PodMetadata{
		Labels:      map[string]string{"team": "shop", "app.kubernetes.io/instance": "not-yours"},
		Annotations: map[string]string{"sidecar.example.com/inject": "false"},
	}
	return in
}

// secured serves TLS, and connections without it while applications move.
func secured() resources.Input {
	in := minimal()
	in.TLS, in.Ports, in.CA = true, resources.PortsBoth, []byte("the CA")
	in.Template = `{"image":"12345678","tls":"12345678"}`
	return in
}

// anyUser leaves the user of the pods to Kubernetes, and has a Service outside of it.
func anyUser() resources.Input {
	in := minimal()
	in.AnyUser = true
	in.Cluster.Spec.Service = &v1alpha1.ServicesSpec{Replicas: &v1alpha1.ServiceSpec{Type: "NodePort"}}
	return in
}

var inputs = map[string]func() resources.Input{
	"minimal":    minimal,
	"persistent": persistent,
	"everything": everything,
	"secured":    secured,
	"any-user":   anyUser,
}

// build returns every child by its kind and, where a kind comes more than once, its part.
func build(t *testing.T, in resources.Input) map[string]any {
	t.Helper()
	statefulSet, err := resources.StatefulSet(in)
	if err != nil {
		t.Fatal(err)
	}
	networkPolicy, err := resources.NetworkPolicy(in, "redis-operator-system")
	if err != nil {
		t.Fatal(err)
	}
	return map[string]any{
		"network-policy":        networkPolicy,
		"configmap":             resources.ConfigMap(in),
		"statefulset":           statefulSet,
		"service-primary":       resources.PrimaryService(in),
		"service-replicas":      resources.ReplicasService(in),
		"service-nodes":         resources.NodesService(in),
		"pod-disruption-budget": resources.PodDisruptionBudget(in),
		"secret-app":            resources.AppSecret(in, "default", appPassword),
		"secret-system": resources.SystemSecret(in, map[string][]byte{
			"operator-password":    []byte(operatorPassword),
			"replication-password": []byte(replicationPassword),
		}),
	}
}

func TestChildrenEqualTheirGoldenFiles(t *testing.T) {
	for name, input := range inputs {
		t.Run(name, func(t *testing.T) {
			for child, object := range build(t, input()) {
				golden.YAML(t, name+"/"+child, object)
			}
		})
	}
}

func TestTheSameInputGivesTheSameChildren(t *testing.T) {
	for name, input := range inputs {
		t.Run(name, func(t *testing.T) {
			first := toYAML(t, build(t, input()))
			for range 20 {
				if diff := cmp.Diff(first, toYAML(t, build(t, input()))); diff != "" {
					t.Fatalf("children differ between two builds (-first +again):\n%s", diff)
				}
			}
		})
	}
}

func TestBuildersLeaveTheInputAsItIs(t *testing.T) {
	in := everything()
	before := in.Cluster.DeepCopy()
	build(t, in)
	if diff := cmp.Diff(before, in.Cluster); diff != "" {
		t.Errorf("the RedisCluster was changed (-before +after):\n%s", diff)
	}
}

func TestOnlySecretsHoldSecretValues(t *testing.T) {
	for name, input := range inputs {
		t.Run(name, func(t *testing.T) {
			for child, object := range build(t, input()) {
				if strings.HasPrefix(child, "secret-") {
					continue
				}
				text := toYAML(t, object)
				for _, secret := range []string{appPassword, operatorPassword, replicationPassword} {
					if strings.Contains(text, secret) {
						t.Errorf("%s holds a secret value:\n%s", child, text)
					}
				}
			}
		})
	}
}

func TestTheAppSecretURIEscapesThePassword(t *testing.T) {
	want := "redis://default:app-p%40ss%2Fword%3A1@cache-primary.shop.svc:6379"
	if diff := cmp.Diff(want, string(resources.AppSecret(minimal(), "default", appPassword).Data["uri"])); diff != "" {
		t.Errorf("uri (-want +got):\n%s", diff)
	}
}

func TestThePrimaryServiceSelectsNoPodWhileThereIsNoPrimary(t *testing.T) {
	in := minimal()
	in.Primary = ""
	want := map[string]string{"app.kubernetes.io/instance": "cache", "statefulset.kubernetes.io/pod-name": ""}
	if diff := cmp.Diff(want, resources.PrimaryService(in).Spec.Selector); diff != "" {
		t.Errorf("selector (-want +got):\n%s", diff)
	}
}

func toYAML(t *testing.T, object any) string {
	t.Helper()
	text, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
