package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
)

//go:embed bare.sh
var bareScript string

// createVersusBare compares a create with that of the same pods in a StatefulSet
// of their own, whose replication a shell script wires. The two take turns.
func createVersusBare(ctx context.Context, s *suite, n int) ([]result, error) {
	// The pods to copy: they use its configuration and passwords, so it stays.
	model, err := s.createReady(ctx, false)
	if err != nil {
		return nil, err
	}
	var ours, bare []creation
	for i := range n {
		o, err := s.creation(ctx)
		if err != nil {
			return nil, err
		}
		b, err := s.bareCreation(ctx, model, fmt.Sprintf("bare-%d", i+1))
		if err != nil {
			return nil, err
		}
		s.say("create → Ready: %.0f ms, bare %.0f ms; last container running → Ready: %.0f ms, bare %.0f ms",
			milliseconds(o.total), milliseconds(b.total), milliseconds(o.ready), milliseconds(b.ready))
		ours, bare = append(ours, o), append(bare, b)
	}
	total := func(c creation) time.Duration { return c.total }
	ready := func(c creation) time.Duration { return c.ready }
	return []result{
		comparison("ms, create → Ready; value is the ratio", each(ours, total), each(bare, total)),
		comparison("ms, last container running → Ready; value is the ratio", each(ours, ready), each(bare, ready)),
	}, s.delete(ctx, model)
}

func each(creations []creation, duration func(creation) time.Duration) []float64 {
	var samples []float64
	for _, c := range creations {
		samples = append(samples, milliseconds(duration(c)))
	}
	return samples
}

// bareCreation makes a StatefulSet with the pods of the model, runs the script
// and removes the StatefulSet.
func (s *suite) bareCreation(ctx context.Context, model *v1alpha1.RedisCluster, name string) (creation, error) {
	key := client.ObjectKey{Namespace: s.namespace, Name: naming.StatefulSet(model.Name)}
	original, system := &appsv1.StatefulSet{}, &corev1.Secret{}
	if err := s.api.Get(ctx, key, original); err != nil {
		return creation{}, fmt.Errorf("read the StatefulSet to copy: %w", err)
	}
	if err := s.api.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: naming.SystemSecret(model.Name)}, system); err != nil {
		return creation{}, fmt.Errorf("read the password of the pods to copy: %w", err)
	}
	set := bareStatefulSet(original, name)
	from, err := s.log.End()
	if err != nil {
		return creation{}, err
	}
	began := s.clock.Now()
	if err := s.api.Create(ctx, set); err != nil {
		return creation{}, fmt.Errorf("create StatefulSet %s: %w", name, err)
	}
	if err := s.wire(ctx, name, string(system.Data[naming.KeyOperatorPassword])); err != nil {
		return creation{}, err
	}
	wired := s.clock.Now()
	requests, err := s.requests(from)
	if err != nil {
		return creation{}, err
	}
	running, err := runningAt(requests, members(name))
	if err != nil {
		return creation{}, err
	}
	return creation{total: wired.Sub(began), ready: wired.Sub(running)}, s.deleteWithPods(ctx, set, set.Spec.Selector.MatchLabels)
}

// bareStatefulSet has the same pods as the given one, and labels that the
// operator does not look at.
func bareStatefulSet(original *appsv1.StatefulSet, name string) *appsv1.StatefulSet {
	labels := map[string]string{naming.LabelName: "bare", naming.LabelInstance: name, naming.LabelManagedBy: "bench"}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: original.Namespace, Name: name, Labels: labels},
		Spec: *original.Spec.DeepCopy()}
	set.Spec.Selector = selector
	set.Spec.Template.Labels = labels
	if affinity := set.Spec.Template.Spec.Affinity; affinity != nil && affinity.PodAntiAffinity != nil {
		preferred := affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution
		for i := range preferred {
			preferred[i].PodAffinityTerm.LabelSelector = selector
		}
	}
	return set
}

// wire runs the script until all members of the StatefulSet are in sync.
func (s *suite) wire(ctx context.Context, name, password string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("not wired within %s", readyTimeout))
	defer cancel()
	var said bytes.Buffer
	command := exec.CommandContext(ctx, "bash", "-c", bareScript)
	command.Env = append(os.Environ(), "NAMESPACE="+s.namespace, "NAME="+name, fmt.Sprintf("PODS=%d", replicas+1), "PASSWORD="+password)
	command.Stdout, command.Stderr = &said, &said
	if err := command.Run(); err != nil {
		return fmt.Errorf("wire the replication of StatefulSet %s by hand: %w: %s", name, err, said.String())
	}
	return nil
}
