package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"seang.org/operator/internal/naming"
)

type (
	object = map[string]any
	list   = []any
)

func TestSubset(t *testing.T) {
	for name, c := range map[string]struct {
		want, have any
		subset     bool
	}{
		"the same value":                               {"a", "a", true},
		"another value":                                {"a", "b", false},
		"another type":                                 {int64(1), "1", false},
		"nothing wanted":                               {nil, "a", true},
		"more keys survive":                            {object{"a": "1"}, object{"a": "1", "b": "2"}, true},
		"a key is missing":                             {object{"a": "1"}, object{"b": "2"}, false},
		"a value deep inside differs":                  {object{"a": object{"b": int64(1)}}, object{"a": object{"b": int64(2)}}, false},
		"an empty map is that of an absent one":        {object{}, nil, true},
		"a map is not that of an absent one":           {object{"a": "1"}, nil, false},
		"a map is not a text":                          {object{"a": "1"}, "a", false},
		"an empty list is that of an absent one":       {list{}, nil, true},
		"an equal list":                                {list{"a", "b"}, list{"a", "b"}, true},
		"a list of values in another order":            {list{"a", "b"}, list{"b", "a"}, false},
		"a list of values with one more":               {list{"a"}, list{"a", "b"}, false},
		"a list of values with one less":               {list{"a", "b"}, list{"a"}, false},
		"things with names may have others between":    {list{object{"name": "a"}, object{"name": "c"}}, list{object{"name": "a"}, object{"name": "b"}, object{"name": "c"}}, true},
		"a thing with a name may have more fields":     {list{object{"name": "a"}}, list{object{"name": "a", "port": int64(1)}}, true},
		"a thing with a name is missing":               {list{object{"name": "a"}, object{"name": "d"}}, list{object{"name": "a"}, object{"name": "b"}}, false},
		"an owner is found by its UID":                 {list{object{"uid": "1"}}, list{object{"uid": "0"}, object{"uid": "1"}}, true},
		"things without names must be equal in number": {list{object{"port": int64(1)}}, list{object{"port": int64(1)}, object{"port": int64(2)}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := subset(c.want, c.have); got != c.subset {
				t.Errorf("subset is %t, want %t", got, c.subset)
			}
		})
	}
}

func service(ports ...int32) *corev1ac.ServiceApplyConfiguration {
	spec := corev1ac.ServiceSpec()
	for _, port := range ports {
		spec.WithPorts(corev1ac.ServicePort().WithPort(port).WithName("redis"))
	}
	return corev1ac.Service("cache", "test").WithLabels(map[string]string{"a": "1"}).WithSpec(spec)
}

func TestStamp(t *testing.T) {
	of := func(wanted *corev1ac.ServiceApplyConfiguration) string {
		return encode(t, wanted).GetAnnotations()[naming.AnnotationApplied]
	}
	first := of(service(1))
	if first == "" || first != of(service(1)) {
		t.Errorf("the stamp of the same object is %q and %q", first, of(service(1)))
	}
	if second := of(service()); second == first {
		t.Errorf("a field that is no longer wanted leaves the stamp as it was: %s", first)
	}
	annotated := encode(t, service(1).WithAnnotations(map[string]string{"kept": "yes"}))
	if annotated.GetAnnotations()["kept"] != "yes" {
		t.Errorf("the stamp removed an annotation: %v", annotated.GetAnnotations())
	}
}

func encode(t *testing.T, wanted *corev1ac.ServiceApplyConfiguration) *unstructured.Unstructured {
	t.Helper()
	text, err := json.Marshal(wanted)
	if err != nil {
		t.Fatal(err)
	}
	desired, err := stamped(text, stampOf(text))
	if err != nil {
		t.Fatal(err)
	}
	return desired
}

func TestContains(t *testing.T) {
	live := func(changes ...func(*corev1.Service)) *corev1.Service {
		desired := encode(t, service(6379))
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "cache", Namespace: "test", ResourceVersion: "7",
			Labels: map[string]string{"a": "1", "of-others": "x"}, Annotations: desired.GetAnnotations()},
			Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.1", Ports: []corev1.ServicePort{{Name: "redis", Port: 6379, Protocol: corev1.ProtocolTCP}}}}
		for _, change := range changes {
			change(s)
		}
		return s
	}
	for name, c := range map[string]struct {
		live *corev1.Service
		want bool
	}{
		"what the server adds and others add is no difference": {live(), true},
		"a label was changed":                        {live(func(s *corev1.Service) { s.Labels["a"] = "2" }), false},
		"a label was removed":                        {live(func(s *corev1.Service) { delete(s.Labels, "a") }), false},
		"a port was changed":                         {live(func(s *corev1.Service) { s.Spec.Ports[0].Port = 1 }), false},
		"another version of the operator applied it": {live(func(s *corev1.Service) { s.Annotations[naming.AnnotationApplied] = "0" }), false},
	} {
		t.Run(name, func(t *testing.T) {
			desired := encode(t, service(6379))
			got, err := contains(c.live, desired)
			if err != nil || got != c.want {
				t.Errorf("contains is %t, %v; want %t", got, err, c.want)
			}
		})
	}
}
