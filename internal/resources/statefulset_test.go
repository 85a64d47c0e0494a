package resources_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	psa "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/resources"
)

func statefulSet(t *testing.T, in resources.Input) *appsv1.StatefulSet {
	t.Helper()
	configuration, err := resources.StatefulSet(in)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(configuration)
	if err != nil {
		t.Fatal(err)
	}
	var set appsv1.StatefulSet
	if err := json.Unmarshal(data, &set); err != nil {
		t.Fatal(err)
	}
	return &set
}

func TestPodsMeetThePodSecurityStandardRestricted(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := psa.LevelVersion{Level: psa.LevelRestricted, Version: psa.LatestVersion()}
	for name, input := range inputs {
		t.Run(name, func(t *testing.T) {
			template := statefulSet(t, input()).Spec.Template
			result := policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &template.ObjectMeta, &template.Spec))
			if !result.Allowed {
				t.Errorf("refused: %s", result.ForbiddenDetail())
			}

			// The check itself can fail.
			template.Spec.SecurityContext.RunAsNonRoot = nil
			result = policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &template.ObjectMeta, &template.Spec))
			if result.Allowed {
				t.Error("a pod that may run as root was accepted")
			}
		})
	}
}

func TestPodTemplateDependsOnTheSpecOnly(t *testing.T) {
	want := statefulSet(t, persistent()).Spec.Template

	in := persistent()
	in.RedisConf = "port 6379\nmaxmemory-policy allkeys-lru\n"
	in.StartScript = "# the script of a later version\n"
	in.Primary = "cache-2"
	in.Replicas = 5
	in.StorageSize = resource.MustParse("2Gi")
	if diff := cmp.Diff(want, statefulSet(t, in).Spec.Template); diff != "" {
		t.Errorf("template changed, which would roll the pods (-want +got):\n%s", diff)
	}
}

func TestContainerResources(t *testing.T) {
	type amounts struct{ Request, Limit string }
	tests := map[string]struct {
		cpu     *v1alpha1.CPUSpec
		wantCPU amounts
	}{
		"unset gives the default request and no limit":     {wantCPU: amounts{"100m", "0"}},
		"a request alone gives no limit":                   {cpu: &v1alpha1.CPUSpec{Request: new(resource.MustParse("2"))}, wantCPU: amounts{"2", "0"}},
		"a limit alone keeps the default request":          {cpu: &v1alpha1.CPUSpec{Limit: new(resource.MustParse("1"))}, wantCPU: amounts{"100m", "1"}},
		"a limit below the default request lowers it":      {cpu: &v1alpha1.CPUSpec{Limit: new(resource.MustParse("50m"))}, wantCPU: amounts{"50m", "50m"}},
		"both are taken as they are":                       {cpu: &v1alpha1.CPUSpec{Request: new(resource.MustParse("10m")), Limit: new(resource.MustParse("20m"))}, wantCPU: amounts{"10m", "20m"}},
		"an empty cpu section is the same as an unset one": {cpu: &v1alpha1.CPUSpec{}, wantCPU: amounts{"100m", "0"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := minimal()
			in.Cluster.Spec.Resources = &v1alpha1.ResourcesSpec{CPU: test.cpu}
			in.MemoryLimit = resource.MustParse("300Mi")
			got := statefulSet(t, in).Spec.Template.Spec.Containers[0].Resources
			if diff := cmp.Diff(test.wantCPU, amounts{got.Requests.Cpu().String(), got.Limits.Cpu().String()}); diff != "" {
				t.Errorf("cpu (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(amounts{"300Mi", "300Mi"}, amounts{got.Requests.Memory().String(), got.Limits.Memory().String()}); diff != "" {
				t.Errorf("memory (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSpreadOverNodesAndZones(t *testing.T) {
	antiAffinity := &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "rack"}}}
	nodeAffinity := &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1}}}
	constraints := []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "rack", WhenUnsatisfiable: corev1.DoNotSchedule}}
	tests := map[string]struct {
		scheduling *v1alpha1.SchedulingSpec
		wantKeys   []string // topology keys of the preferred anti-affinity
	}{
		"unset, nodes come before zones":         {wantKeys: []string{corev1.LabelHostname, corev1.LabelTopologyZone}},
		"a node affinity leaves the spread":      {scheduling: &v1alpha1.SchedulingSpec{Affinity: &corev1.Affinity{NodeAffinity: nodeAffinity}}, wantKeys: []string{corev1.LabelHostname, corev1.LabelTopologyZone}},
		"a pod anti-affinity replaces it":        {scheduling: &v1alpha1.SchedulingSpec{Affinity: &corev1.Affinity{PodAntiAffinity: antiAffinity}}},
		"topology spread constraints replace it": {scheduling: &v1alpha1.SchedulingSpec{TopologySpreadConstraints: constraints}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := minimal()
			in.Cluster.Spec.Scheduling = test.scheduling
			var got []string
			if affinity := statefulSet(t, in).Spec.Template.Spec.Affinity; affinity != nil && affinity.PodAntiAffinity != nil {
				for _, term := range affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
					got = append(got, term.PodAffinityTerm.TopologyKey)
				}
			}
			if diff := cmp.Diff(test.wantKeys, got); diff != "" {
				t.Errorf("topology keys (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnEmptySelectorOfASpreadConstraintMeansTheClusterOwnPods(t *testing.T) {
	in := minimal()
	in.Cluster.Spec.Scheduling = &v1alpha1.SchedulingSpec{
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "rack", WhenUnsatisfiable: corev1.DoNotSchedule}},
	}
	template := statefulSet(t, in).Spec.Template
	if diff := cmp.Diff(template.Labels, template.Spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels); diff != "" {
		t.Errorf("selector (-pod labels +got):\n%s", diff)
	}
}
