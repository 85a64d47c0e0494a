package status

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/redis/plan"
)

var noon = metav1.NewTime(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC))

func cluster(changes ...func(*v1alpha1.RedisCluster)) *v1alpha1.RedisCluster {
	c := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Name: "cache", Namespace: "test", Generation: 3}}
	c.Spec.Replicas = 2
	for _, change := range changes {
		change(c)
	}
	return c
}

// was sets a condition of the last status, at the present generation.
func was(kind string, status metav1.ConditionStatus) func(*v1alpha1.RedisCluster) {
	return func(c *v1alpha1.RedisCluster) {
		c.Status.ObservedGeneration = c.Generation
		c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: "Was"})
	}
}

// input is a pass that found all as asked.
func input(changes ...func(*Input)) Input {
	in := Input{Cluster: cluster(), Now: noon, Observed: true, Service: "cache-0",
		Decision: plan.Decision{Primary: &plan.Member{Pod: "cache-0"}, Service: "cache-0", InSync: []string{"cache-1", "cache-2"}}}
	for _, change := range changes {
		change(&in)
	}
	return in
}

var (
	syncing   = plan.Wait{Reason: v1alpha1.ReasonReplicaSyncing, Message: "cache-1 copies"}
	fencing   = plan.Wait{Reason: v1alpha1.ReasonFencing, Message: "cache-0 may live", Blocking: true}
	forked    = plan.Wait{Reason: v1alpha1.ReasonForkedHistory, Message: "cache-2 is a primary", Stuck: true}
	tooSmall  = &Problem{v1alpha1.ReasonMemoryTooSmall, "raise memoryLimit"}
	noPrimary = func(in *Input) { in.Decision.Primary, in.Decision.InSync = nil, nil }
	unseen    = func(in *Input) { in.Observed, in.Decision = false, plan.Decision{} }
	pausing   = func(in *Input) { in.Paused = true }
	rejected  = func(in *Input) { in.Rejected = tooSmall }
	complete  = func(in *Input) { in.Cluster = cluster(was(v1alpha1.ConditionReady, metav1.ConditionTrue)) }
)

func waiting(w plan.Wait) func(*Input) {
	return func(in *Input) { in.Decision.Waits = append(in.Decision.Waits, w) }
}

// conditionTest is an input, and the status and reason that are wanted for it.
type conditionTest struct {
	in         Input
	want       metav1.ConditionStatus
	wantReason string
}

func testCondition(t *testing.T, kind string, cases map[string]conditionTest) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			out := Compute(c.in)
			got := meta.FindStatusCondition(out.Conditions, kind)
			if got == nil {
				t.Fatalf("%s is absent", kind)
			}
			if got.Status != c.want || got.Reason != c.wantReason || got.ObservedGeneration != 3 || got.Message == "" {
				t.Errorf("%s is %s, %s: %q at generation %d; want %s, %s at 3", kind, got.Status, got.Reason, got.Message, got.ObservedGeneration, c.want, c.wantReason)
			}
		})
	}
}

func TestReady(t *testing.T) {
	testCondition(t, v1alpha1.ConditionReady, map[string]conditionTest{
		"all is as asked":        {input(), metav1.ConditionTrue, v1alpha1.ReasonReady},
		"a replica copies":       {input(waiting(syncing)), metav1.ConditionFalse, v1alpha1.ReasonReplicaSyncing},
		"no primary comes first": {input(noPrimary, waiting(syncing), waiting(fencing)), metav1.ConditionFalse, v1alpha1.ReasonFencing},
		"the Service is behind":  {input(func(in *Input) { in.Service = "cache-1" }), metav1.ConditionFalse, v1alpha1.ReasonPromoting},
		"another part waits":     {input(func(in *Input) { in.Waits = []plan.Wait{{Reason: v1alpha1.ReasonResizing, Message: "resizing"}} }), metav1.ConditionFalse, v1alpha1.ReasonResizing},
		"steps are left":         {input(func(in *Input) { in.Decision.Steps = []plan.Step{plan.Label{Why: "a label"}} }), metav1.ConditionFalse, v1alpha1.ReasonConfiguring},
		"the pass failed":        {input(func(in *Input) { in.Failed = errors.New("no route") }), metav1.ConditionFalse, v1alpha1.ReasonReconcileError},
		"the spec is rejected":   {input(rejected), metav1.ConditionFalse, v1alpha1.ReasonMemoryTooSmall},
		"nothing was looked at":  {input(unseen), metav1.ConditionFalse, v1alpha1.ReasonUnknown},
		"it is being deleted":    {input(func(in *Input) { in.Deleting = true }), metav1.ConditionFalse, v1alpha1.ReasonDeleting},
	})
}

func TestAvailable(t *testing.T) {
	testCondition(t, v1alpha1.ConditionAvailable, map[string]conditionTest{
		"a primary accepts writes":     {input(waiting(syncing)), metav1.ConditionTrue, v1alpha1.ReasonPrimaryAvailable},
		"the Service selects another":  {input(func(in *Input) { in.Service = "cache-1" }), metav1.ConditionFalse, v1alpha1.ReasonPromoting},
		"the old one is not fenced":    {input(noPrimary, waiting(fencing)), metav1.ConditionFalse, v1alpha1.ReasonFencing},
		"a primary is being promoted":  {input(noPrimary), metav1.ConditionFalse, v1alpha1.ReasonPromoting},
		"nothing was looked at":        {input(unseen), metav1.ConditionUnknown, v1alpha1.ReasonUnknown},
		"a rejected spec changes none": {input(rejected), metav1.ConditionTrue, v1alpha1.ReasonPrimaryAvailable},
	})
}

func TestProgressing(t *testing.T) {
	testCondition(t, v1alpha1.ConditionProgressing, map[string]conditionTest{
		"all is as asked":      {input(), metav1.ConditionFalse, v1alpha1.ReasonUpToDate},
		"a replica copies":     {input(waiting(syncing)), metav1.ConditionTrue, v1alpha1.ReasonReplicaSyncing},
		"a person must act":    {input(waiting(forked)), metav1.ConditionFalse, v1alpha1.ReasonUpToDate},
		"the spec is rejected": {input(rejected, waiting(syncing)), metav1.ConditionFalse, v1alpha1.ReasonUpToDate},
		"it is paused":         {input(pausing, waiting(syncing)), metav1.ConditionFalse, v1alpha1.ReasonUpToDate},
	})
}

func TestDegraded(t *testing.T) {
	again := func(in *Input) { in.Cluster = cluster(was(v1alpha1.ConditionDegraded, metav1.ConditionTrue)) }
	testCondition(t, v1alpha1.ConditionDegraded, map[string]conditionTest{
		"all is as asked":                           {input(complete), metav1.ConditionFalse, v1alpha1.ReasonHealthy},
		"a new cluster is not complete yet":         {input(waiting(syncing)), metav1.ConditionFalse, v1alpha1.ReasonHealthy},
		"a complete one lost a replica":             {input(complete, waiting(syncing)), metav1.ConditionTrue, v1alpha1.ReasonReplicaSyncing},
		"and has not got it back":                   {input(again, waiting(syncing)), metav1.ConditionTrue, v1alpha1.ReasonReplicaSyncing},
		"a new generation is work, not loss":        {input(complete, func(in *Input) { in.Cluster.Generation++ }, waiting(syncing), func(in *Input) { in.Cluster.Generation--; in.Cluster.Status.ObservedGeneration-- }), metav1.ConditionFalse, v1alpha1.ReasonHealthy},
		"a person must act, whatever was before":    {input(waiting(syncing), waiting(forked)), metav1.ConditionTrue, v1alpha1.ReasonForkedHistory},
		"one that is being deleted is not degraded": {input(complete, func(in *Input) { in.Deleting = true }), metav1.ConditionFalse, v1alpha1.ReasonHealthy},
	})
}

func TestSpecAcceptedAndPaused(t *testing.T) {
	testCondition(t, v1alpha1.ConditionSpecAccepted, map[string]conditionTest{
		"a spec that can be used": {input(), metav1.ConditionTrue, v1alpha1.ReasonAccepted},
		"one that cannot":         {input(rejected), metav1.ConditionFalse, v1alpha1.ReasonMemoryTooSmall},
	})
	testCondition(t, v1alpha1.ConditionPaused, map[string]conditionTest{
		"the operator acts":     {input(), metav1.ConditionFalse, v1alpha1.ReasonNotPaused},
		"the user asked for it": {input(pausing), metav1.ConditionTrue, v1alpha1.ReasonPausedByUser},
	})
}

func TestVersionSupported(t *testing.T) {
	running := func(version string) func(*Input) { return func(in *Input) { in.Version = version } }
	testCondition(t, v1alpha1.ConditionVersionSupported, map[string]conditionTest{
		"no version is known yet": {input(running("")), metav1.ConditionUnknown, v1alpha1.ReasonUnknown},
		"while none is known, the last verdict stands": {input(running(""), func(in *Input) {
			in.Cluster = cluster(was(v1alpha1.ConditionVersionSupported, metav1.ConditionFalse))
			in.Cluster.Status.Conditions[0].Message = "known flaws"
		}), metav1.ConditionFalse, "Was"},
		"a good one":            {input(running("redis 8.2.2")), metav1.ConditionTrue, v1alpha1.ReasonSupported},
		"one with a known flaw": {input(running("valkey 8.1.1")), metav1.ConditionFalse, v1alpha1.ReasonVersionVulnerable},
		"one that is too old":   {input(running("redis 6.2.20")), metav1.ConditionFalse, v1alpha1.ReasonVersionUnsupported},
	})
}

func TestPhase(t *testing.T) {
	provisioning := func(in *Input) { in.Cluster.Status.Phase = v1alpha1.PhaseProvisioning }
	for name, c := range map[string]struct {
		in   Input
		want v1alpha1.Phase
	}{
		"all is as asked":                    {input(), v1alpha1.PhaseReady},
		"a replica copies":                   {input(waiting(syncing)), v1alpha1.PhaseProvisioning},
		"a person must act":                  {input(waiting(forked)), v1alpha1.PhaseFailed},
		"the spec is rejected":               {input(rejected), v1alpha1.PhaseFailed},
		"nothing was done yet":               {input(unseen), v1alpha1.PhasePending},
		"the pass failed before it looked":   {input(unseen, provisioning, func(in *Input) { in.Failed = errors.New("no route") }), v1alpha1.PhaseProvisioning},
		"paused before it looked: as it was": {input(unseen, pausing, provisioning), v1alpha1.PhaseProvisioning},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Compute(c.in).Phase; got != c.want {
				t.Errorf("the phase is %s, want %s", got, c.want)
			}
		})
	}
}

func TestStatusDoesNotChangeWithTimeAlone(t *testing.T) {
	for name, in := range map[string]Input{
		"ready":    input(func(in *Input) { in.MaxMemory, in.Version = 1<<20, "redis 8.0.2" }),
		"waiting":  input(waiting(syncing)),
		"stuck":    input(noPrimary, waiting(forked)),
		"unseen":   input(unseen),
		"rejected": input(rejected),
		"failed":   input(func(in *Input) { in.Failed = errors.New("no route") }),
	} {
		t.Run(name, func(t *testing.T) {
			in.Cluster.Status = Compute(in)
			in.Now = metav1.NewTime(noon.Add(time.Hour))
			// The second may change what depends on the first; the third nothing.
			in.Cluster.Status = Compute(in)
			before := in.Cluster.Status.DeepCopy()
			in.Now = metav1.NewTime(noon.Add(2 * time.Hour))
			if diff := cmp.Diff(*before, Compute(in)); diff != "" {
				t.Errorf("the same input an hour later gives another status (-before +after):\n%s", diff)
			}
		})
	}
}

func TestLastSyncTimestampIsWhenItBecameReady(t *testing.T) {
	in := input(waiting(syncing))
	if got := Compute(in).LastSyncTimestamp; got != nil {
		t.Errorf("it never was ready, and was so at %s", got)
	}
	in = input()
	in.Cluster.Status = Compute(in)
	if got := in.Cluster.Status.LastSyncTimestamp; got == nil || !got.Equal(&noon) {
		t.Fatalf("it became ready at %v, want %s", got, noon)
	}
	later := metav1.NewTime(noon.Add(time.Hour))
	in.Now = later
	if got := Compute(in).LastSyncTimestamp; !got.Equal(&noon) {
		t.Errorf("it stayed ready, and became so at %s, want %s", got, noon)
	}
	in.Cluster.Generation++
	if got := Compute(in).LastSyncTimestamp; !got.Equal(&later) {
		t.Errorf("a new generation was reached at %s, want %s", got, later)
	}
	in = input(waiting(syncing))
	in.Cluster.Status.LastSyncTimestamp = &noon
	if got := Compute(in).LastSyncTimestamp; !got.Equal(&noon) {
		t.Errorf("the loss of a replica moved it to %s", got)
	}
}

func TestWhatWasNotLookedAtStays(t *testing.T) {
	in := input(func(in *Input) { in.MaxMemory, in.Version = 1<<20, "redis 8.0.2" })
	in.Decision.Record = &v1alpha1.Record{Epoch: 4}
	in.Cluster.Status = Compute(in)
	before := in.Cluster.Status.DeepCopy()
	unseen(&in)
	in.MaxMemory, in.Version = 0, ""
	after := Compute(in)
	before.Conditions, after.Conditions, before.Phase, after.Phase = nil, nil, "", ""
	if diff := cmp.Diff(*before, after); diff != "" {
		t.Errorf("a pass that saw no member changed what is known of them (-before +after):\n%s", diff)
	}
	if after.Primary != "cache-0" || after.ActiveReplicas != 2 || after.Record.Epoch != 4 {
		t.Errorf("the status is %s, %d replicas, %v", after.Primary, after.ActiveReplicas, after.Record)
	}
}
