package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/conf"
	"seang.org/operator/test/e2e/audit"
)

// kindOf is the lower-case name of an object's Go type.
func kindOf(object runtime.Object) string {
	name := fmt.Sprintf("%T", object)
	return strings.ToLower(name[strings.LastIndexByte(name, '.')+1:])
}

// expectNoSecrets looks for the passwords of a cluster, those that it had and their hashes,
// everywhere but in its Secrets.
func expectNoSecrets(ctx context.Context, c rediscluster, had ...string) {
	GinkgoHelper()
	var secrets []string
	system := c.secret(ctx, naming.SystemSecret(c.key.Name))
	for _, password := range append(had, string(system[naming.KeyOperatorPassword]), string(system[naming.KeyReplicationPassword]),
		string(c.secret(ctx, naming.AppSecret(c.key.Name))[naming.KeyPassword])) {
		Expect(len(password)).To(BeNumerically(">=", 16))
		secrets = append(secrets, password, conf.Hash(password))
	}
	expectNone := func(where, text string) {
		for _, secret := range secrets {
			Expect(strings.Contains(text, secret)).To(BeFalse(), "%s shows a password or its hash", where)
		}
	}
	for _, list := range []client.ObjectList{
		&v1alpha1.RedisClusterList{}, &corev1.PodList{}, &appsv1.StatefulSetList{}, &appsv1.ControllerRevisionList{},
		&corev1.ConfigMapList{}, &corev1.ServiceList{}, &eventsv1.EventList{},
	} {
		Expect(api.List(ctx, list, client.InNamespace(c.key.Namespace))).To(Succeed())
		text, err := json.Marshal(list)
		Expect(err).NotTo(HaveOccurred())
		expectNone(kindOf(list), string(text))
	}
	for _, pod := range c.pods(ctx) {
		expectNone("the log of "+pod.Name, logOf(ctx, &pod))
	}
	if auditLog != "" {
		text, err := os.ReadFile(string(auditLog))
		Expect(err).NotTo(HaveOccurred())
		expectNone("the audit log", string(text))
	}
	for _, pod := range operatorPods(ctx) {
		expectNone("the log of the operator", logOf(ctx, &pod))
	}
}

func logOf(ctx context.Context, pod *corev1.Pod) string {
	GinkgoHelper()
	text, err := api.Typed.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// describeWrites lists the operator's writes since a position.
func describeWrites(from audit.Position) string {
	writes, events := writesSince(from, "")
	var b strings.Builder
	for _, request := range append(writes, events...) {
		fmt.Fprintln(&b, request)
	}
	return b.String()
}
