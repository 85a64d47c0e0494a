package resources_test

import (
	"os"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/internal/testkit/apiserver"
)

func TestMain(m *testing.M) { os.Exit(apiserver.Run(m)) }

// A second apply of the same child must change nothing: what the server
// normalises would otherwise be written on every pass.
func TestTheServerAdmitsEveryChildAndASecondApplyChangesNothing(t *testing.T) {
	server := apiserver.Get(t)
	for name, input := range inputs {
		t.Run(name, func(t *testing.T) {
			namespace := server.Namespace(t)
			for child, configuration := range build(t, input()) {
				object := toUnstructured(t, configuration)
				object.SetNamespace(namespace)
				first := apply(t, server, object)
				second := apply(t, server, object)
				if first.GetResourceVersion() == "" || first.GetResourceVersion() != second.GetResourceVersion() {
					t.Errorf("%s: a second apply wrote the object again", child)
				}
			}
		})
	}
}

func TestThePodIsAdmittedWherePodSecurityIsRestricted(t *testing.T) {
	server := apiserver.Get(t)
	ctx := t.Context()
	priority := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "important"}, Value: 1000}
	if err := server.Client.Create(ctx, priority); err != nil {
		t.Fatal(err)
	}
	for name, input := range inputs {
		t.Run(name, func(t *testing.T) {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
				GenerateName: "restricted-",
				Labels:       map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
			}}
			if err := server.Client.Create(ctx, namespace); err != nil {
				t.Fatal(err)
			}
			pod := podOf(statefulSet(t, input()), namespace.Name)
			if err := server.Client.Create(ctx, pod, client.DryRunAll); err != nil {
				t.Errorf("refused: %v", err)
			}
			pod = podOf(statefulSet(t, input()), namespace.Name)
			pod.Spec.SecurityContext.RunAsNonRoot = nil
			if err := server.Client.Create(ctx, pod, client.DryRunAll); err == nil {
				t.Error("a pod that may run as root was accepted")
			}
		})
	}
}

// podOf is the first pod that the StatefulSet controller would make.
func podOf(set *appsv1.StatefulSet, namespace string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy()}
	pod.Name, pod.Namespace = set.Name+"-0", namespace
	for _, claim := range set.Spec.VolumeClaimTemplates {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{
			Name: claim.Name,
			VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
				ClaimName: claim.Name + "-" + pod.Name,
			}},
		})
	}
	return pod
}

func apply(t *testing.T, server *apiserver.Server, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	applied := object.DeepCopy()
	configuration := client.ApplyConfigurationFromUnstructured(applied)
	if err := server.Client.Apply(t.Context(), configuration, client.FieldOwner("redis-operator"), client.ForceOwnership); err != nil {
		t.Fatalf("apply %s %s: %v", object.GetKind(), object.GetName(), err)
	}
	return applied
}

func toUnstructured(t *testing.T, configuration any) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(configuration)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}
