package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"seang.org/operator/test/e2e/audit"
	"seang.org/operator/test/e2e/kubeapi"
)

func TestPercentilesAreByNearestRank(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i)
	}
	for name, test := range map[string]struct {
		samples []float64
		p, want float64
	}{
		"the median of an odd number is the middle":         {[]float64{9, 1, 5}, 50, 5},
		"the median of an even number is the lower middle":  {[]float64{4, 1, 3, 2}, 50, 2},
		"the 99th of a hundred is the second largest":       {hundred, 99, 99},
		"the 99th of a few is the largest":                  {[]float64{1, 2, 3}, 99, 3},
		"the hundredth is the largest":                      {hundred, 100, 100},
		"any percentile of one sample is the sample itself": {[]float64{7.25}, 1, 7.25},
	} {
		t.Run(name, func(t *testing.T) {
			if got := *percentile(test.samples, test.p); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestResultsAreHeldAgainstTheirTargets(t *testing.T) {
	for name, test := range map[string]struct {
		got       result
		wantValue float64
		wantHolds bool
	}{
		"a figure at its target holds":                 {figure("", 1, 18, 18), 18, true},
		"a figure above it does not":                   {figure("", 1, 19, 18), 19, false},
		"a rate at its target holds":                   {rate("", 1, 1000, 1000), 1000, true},
		"a rate below it does not":                     {rate("", 1, 999, 1000), 999, false},
		"a median holds in spite of one slow sample":   {distribution("", []float64{1, 2, 900}, 300, median), 2, true},
		"a 99th percentile does not":                   {distribution("", []float64{1, 2, 900}, 300, p99), 900, false},
		"a comparison is a ratio of medians":           {comparison("", []float64{110, 900, 100}, []float64{100, 1, 900}), 1.1, true},
		"a comparison fails by its ratio, not by time": {comparison("", []float64{12}, []float64{10}), 1.2, false},
	} {
		t.Run(name, func(t *testing.T) {
			if test.got.Value != test.wantValue || test.got.Holds != test.wantHolds {
				t.Errorf("got %v, %v, want %v, %v", test.got.Value, test.got.Holds, test.wantValue, test.wantHolds)
			}
		})
	}
}

func TestJSONLeavesOutWhatDoesNotApply(t *testing.T) {
	r := figure("writes", 2, 0, 0)
	r.Name = "steady-writes"
	path := filepath.Join(t.TempDir(), "out.json")
	if err := write(path, []result{r}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got []map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	delete(got[0], "machine")
	want := []map[string]any{{"name": "steady-writes", "unit": "writes", "n": 2.0, "value": 0.0, "target": 0.0, "holds": true}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTableShowsWhatMissesItsTarget(t *testing.T) {
	good, bad := figure("MB", 1, 41.5, 60), distribution("ms", []float64{310, 400}, 300, median)
	good.Name, bad.Name = "footprint", "create-ready"
	var out bytes.Buffer
	if err := printTable(&out, []result{good, bad}); err != nil {
		t.Fatal(err)
	}
	want := `NAME          UNIT  N  P50  P99  MAX  FLOOR  VALUE  TARGET  HOLDS  LOAD
create-ready  ms    2  310  400  400         310    ≤ 300   NO     0.0
footprint     MB    1                        41.5   ≤ 60    yes    0.0
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBenchmarksAreChosenByName(t *testing.T) {
	for name, test := range map[string]struct {
		only, n string
		want    []string
		wantErr string
	}{
		"two names":                  {only: "create-ready, footprint", want: []string{"create-ready 20", "footprint 20"}},
		"fewer repetitions":          {only: "create-ready", n: "3", want: []string{"create-ready 3"}},
		"a name that nobody knows":   {only: "speed", wantErr: `there is no benchmark "speed"; there are create-writes, create-ready,`},
		"a number that is none":      {only: "footprint", n: "some", wantErr: "N must be a whole number"},
		"no repetitions at all":      {only: "footprint", n: "0", wantErr: "N must be a whole number"},
		"all of them with no name":   {n: "1", want: []string{"create-writes 1", "create-ready 1", "create-vs-bare 1", "noop-rate 1", "spec-to-write 1", "failover 1", "switchover 1", "roll 1", "rotation 1", "rotation-time 1", "renewal 1", "leader-crash 1", "node-loss 1", "durable-failovers 1", "planned-moves 1", "empty-primary 1", "steady-writes 1", "footprint 1", "olm-install 1", "olm-upgrade 1"}},
		"a known and an unknown one": {only: "footprint,speed", wantErr: "there is no benchmark"},
	} {
		t.Run(name, func(t *testing.T) {
			selected, err := choose(test.only, test.n)
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Fatalf("got error %v, want one with %q", err, test.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, b := range selected {
				got = append(got, fmt.Sprintf("%s %d", b.name, b.n))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAFloorIsShownBesideItsTarget(t *testing.T) {
	got := distribution("ms", []float64{150, 300, 450}, 200, median).above([]float64{100, 120, 300})
	if *got.Floor != 120 || *got.Ratio != 2.5 || got.Value != 300 || got.Holds {
		t.Errorf("got floor %v, ratio %v, value %v, holds %v, want 120, 2.5, 300 and false", *got.Floor, *got.Ratio, got.Value, got.Holds)
	}
}

func TestWhatHasNoTargetHolds(t *testing.T) {
	var out bytes.Buffer
	lost := count("writes lost", 9, 4)
	lost.Name = "failover"
	if err := printTable(&out, []result{lost}); err != nil {
		t.Fatal(err)
	}
	want := "NAME      UNIT         N  P50  P99  MAX  FLOOR  VALUE  TARGET  HOLDS  LOAD\nfailover  writes lost  9                        4                     0.0\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func at(ms int) time.Time { return time.UnixMilli(int64(ms)) }

// kubelet is a status patch of a pod as the audit log has it.
func kubelet(pod, state string, ms int) audit.Request {
	return audit.Request{User: "system:node:node-1", Verb: "patch", Resource: "pods", Subresource: "status", Name: pod, Code: 200, At: at(ms),
		Object: json.RawMessage(`{"status":{"containerStatuses":[{"name":"redis","state":{` + state + `}}]}}`)}
}

const (
	waiting = `"waiting":{"reason":"ContainerCreating"}`
	running = `"running":{"startedAt":"2026-01-01T00:00:00Z"}`
)

func TestTheLastContainerRunsWhenItsKubeletFirstSaysSo(t *testing.T) {
	requests := []audit.Request{
		kubelet("a-0", waiting, 1), kubelet("a-0", running, 2), kubelet("a-2", running, 3), kubelet("a-1", running, 5),
		kubelet("a-2", running, 8), kubelet("b-0", running, 9),
	}
	got, err := runningAt(requests, members("a"))
	if err != nil || !got.Equal(at(5)) {
		t.Errorf("got %v, %v, want %v", got, err, at(5))
	}
	if got, err := runningAt(requests[:3], members("a")); err == nil {
		t.Errorf("one pod does not run: got %v, want an error", got)
	}
}

func operator(verb, resource, subresource, object string, ms int) audit.Request {
	return audit.Request{User: kubeapi.OperatorUser, Verb: verb, Resource: resource, Subresource: subresource, Name: "a", Code: 200, At: at(ms),
		Object: json.RawMessage(object)}
}

func TestReadyIsTheFirstStatusUpdateThatIsTrueAndStored(t *testing.T) {
	status := func(value string, observed int) string {
		return fmt.Sprintf(`{"metadata":{"generation":2},"status":{"conditions":[{"type":"Ready","status":%q,"observedGeneration":%d}]}}`, value, observed)
	}
	refused := operator("update", "redisclusters", "status", status("True", 2), 3)
	refused.Code = 409
	got, err := readyAt([]audit.Request{
		operator("update", "redisclusters", "status", status("False", 2), 1),
		operator("update", "redisclusters", "status", status("True", 1), 2),
		refused,
		operator("update", "redisclusters", "status", status("True", 2), 4),
		operator("update", "redisclusters", "status", status("True", 2), 5),
	}, "a")
	if err != nil || !got.Equal(at(4)) {
		t.Errorf("got %v, %v, want %v", got, err, at(4))
	}
	if got, err := readyAt([]audit.Request{refused}, "a"); err == nil {
		t.Errorf("never Ready: got %v, want an error", got)
	}
}

func TestTheFirstChildWriteComesAfterTheChangeOfTheSpec(t *testing.T) {
	change := audit.Request{User: "admin", Verb: "patch", Resource: "redisclusters", Name: "a", Code: 200, At: at(100)}
	requests := []audit.Request{
		change,
		operator("get", "configmaps", "", "", 110),
		operator("update", "redisclusters", "status", "{}", 120),
		operator("create", "events", "", "", 125),
		operator("patch", "configmaps", "", "", 131),
		operator("patch", "statefulsets", "", "", 140),
	}
	got, err := firstChildWrite(requests, "a")
	if err != nil || got != 31*time.Millisecond {
		t.Errorf("got %v, %v, want 31ms", got, err)
	}
	if got, err := firstChildWrite(requests[:4], "a"); err == nil {
		t.Errorf("no child was written: got %v, want an error", got)
	}
}

func TestWritesAreSummedUpByKind(t *testing.T) {
	writes := []audit.Request{
		operator("patch", "secrets", "", "", 1), operator("update", "redisclusters", "status", "", 2), operator("patch", "secrets", "", "", 3),
	}
	if got, want := summary(writes), ", 2 × patch secrets, 1 × update redisclusters/status"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	writes[1].Code = 409
	if got := conflicts(writes); got != 1 {
		t.Errorf("got %d conflicts, want 1", got)
	}
}

func TestBarePodsAreTheSameUnderOtherLabels(t *testing.T) {
	original := &appsv1.StatefulSet{}
	original.Namespace = "n"
	original.Spec.Template.Labels = map[string]string{"app.kubernetes.io/managed-by": "redis-operator"}
	original.Spec.Template.Spec.Containers = []corev1.Container{{Name: "redis", Image: "redis:8.0"}}
	bare := bareStatefulSet(original, "bare")
	if diff := cmp.Diff(original.Spec.Template.Spec, bare.Spec.Template.Spec); diff != "" {
		t.Errorf("pods (-original +bare):\n%s", diff)
	}
	if got := bare.Spec.Template.Labels["app.kubernetes.io/managed-by"]; got != "bench" {
		t.Errorf("the operator may take the pods for its own: managed by %q", got)
	}
	if got := original.Spec.Template.Labels["app.kubernetes.io/managed-by"]; got != "redis-operator" {
		t.Errorf("the original was changed: managed by %q", got)
	}
}

func TestPropertiesOfTheMachineAreRead(t *testing.T) {
	const text = "MemFree:  1 kB\nMemTotal:       24683548 kB\nmodel name\t: AMD EPYC\n"
	if got := property(text, "model name"); got != "AMD EPYC" {
		t.Errorf("got %q", got)
	}
	if got, err := kibibytes(text, "MemTotal"); err != nil || got != 24683548<<10 {
		t.Errorf("got %d, %v", got, err)
	}
	if got, err := kibibytes(text, "VmRSS"); err == nil {
		t.Errorf("got %d of nothing, want an error", got)
	}
}
