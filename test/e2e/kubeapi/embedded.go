package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// envEmbedded names the embedded cluster that is worked with, as `cluster exec` does.
const envEmbedded = "CLUSTER_NAME"

// EmbeddedProgram makes, describes and disturbs the embedded Kubernetes, from the
// root of the repository.
const EmbeddedProgram = "bin/cluster"

// ErrNotEmbedded: what was asked for needs an embedded Kubernetes.
var ErrNotEmbedded = fmt.Errorf("%s names no embedded cluster: run this with %s exec", envEmbedded, EmbeddedProgram)

// Embedded disturbs the parts of an embedded Kubernetes, by the arguments of its
// program: "node", "cut", NAME or "process", "kill", NAME.
func Embedded(ctx context.Context, arguments ...string) error {
	name := os.Getenv(envEmbedded)
	if name == "" {
		return ErrNotEmbedded
	}
	program, err := embeddedProgram()
	if err != nil {
		return err
	}
	said, err := exec.CommandContext(ctx, program, append(slices.Clone(arguments), "--name", name)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("cluster %v: %w: %s", arguments, err, said)
	}
	return nil
}

// healTimeout is what a node needs to be ready, and the taints of its loss to go.
const healTimeout = time.Minute

// HealNode ends that a node of an embedded Kubernetes is cut off, and waits until it takes
// pods again: those that are made before would all go to the others.
func (a *API) HealNode(ctx context.Context, name string) error {
	if err := Embedded(ctx, "node", "heal", name); err != nil {
		return err
	}
	_, err := AwaitGoal(ctx, a, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, Goal[*corev1.Node]{What: "takes pods", Within: healTimeout,
		Done: func(now *corev1.Node) bool {
			return len(now.Spec.Taints) == 0 && slices.ContainsFunc(now.Status.Conditions, func(c corev1.NodeCondition) bool {
				return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
			})
		},
		Show: func(now *corev1.Node) string {
			return fmt.Sprintf("taints %v, conditions %v", now.Spec.Taints, now.Status.Conditions)
		}})
	return err
}

// embeddedProgram looks from the current directory upwards: a test runs in that of
// its package.
func embeddedProgram() (string, error) {
	directory, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find %s: %w", EmbeddedProgram, err)
	}
	for {
		program := filepath.Join(directory, EmbeddedProgram)
		_, err := os.Stat(program)
		switch {
		case err == nil:
			return program, nil
		case !errors.Is(err, os.ErrNotExist) || directory == filepath.Dir(directory):
			return "", fmt.Errorf("find %s here or above: %w", EmbeddedProgram, err)
		}
		directory = filepath.Dir(directory)
	}
}
