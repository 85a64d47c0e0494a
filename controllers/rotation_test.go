package controllers_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/admin"
	"seang.org/operator/internal/redis/conf"
	"seang.org/operator/internal/testkit/apiserver"
	"seang.org/operator/internal/testkit/nodes"
	"seang.org/operator/internal/testkit/redisserver"
	"seang.org/operator/test/e2e/oracle"
)

// TestNoCommandFailsWhilePasswordsChange replaces every password of a RedisCluster of each
// version while applications log in, write and read.
func TestNoCommandFailsWhilePasswordsChange(t *testing.T) {
	for _, flavour := range redisserver.Flavours {
		t.Run(flavour, func(t *testing.T) {
			t.Parallel()
			server := apiserver.Get(t)
			namespace := server.Namespace(t)
			nodes.Start(t, server.Client, namespace, flavour)
			operate(t, server, namespace)
			given := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "given"}, Data: map[string][]byte{naming.KeyPassword: []byte("the-first-password-that-is-given")}}
			c := cluster(namespace, 1, false)
			c.Spec.Auth = &v1alpha1.AuthSpec{OverlapSeconds: new(int32(4)), Users: []v1alpha1.UserSpec{
				{Name: "app", Rules: "~app:* +@read +@write +@connection"}, {Name: "given", Rules: "~app:* +@all", SecretName: "given"}}}
			for _, object := range []client.Object{given, c} {
				if err := server.Client.Create(t.Context(), object); err != nil {
					t.Fatalf("create: %v", err)
				}
			}
			await(t, server.Client, c, "Ready", func() bool { return isReady(c) })
			var programs []oracle.Application
			for _, library := range []string{"go-redis", "rueidis"} {
				for _, user := range []string{naming.UserDefault, "app", "given"} {
					programs = append(programs, oracle.Application{Library: library, User: user, Pace: 12 * time.Millisecond})
				}
			}
			key := client.ObjectKeyFromObject(c)
			primary := pod(t, server.Client, namespace, "cache-0").Status.PodIP
			replica := pod(t, server.Client, namespace, "cache-1").Status.PodIP
			before := fullSyncs(t, server.Client, key, primary)
			used, err := oracle.Use(t.Context(), server.Client, key, oracle.Addresses{Primary: oracle.Target{Address: admin.Address(primary, false)}, Replicas: oracle.Target{Address: admin.Address(replica, false)}}, programs)
			if err != nil {
				t.Fatal(err)
			}
			var secrets []string
			for _, credential := range []oracle.Credential{{User: naming.UserOperator}, {User: naming.UserDefault}, {User: naming.UserReplication}, {User: "app"}, {User: "given", Secret: "given"}} {
				r, err := oracle.Rotate(t.Context(), server.Client, key, credential)
				if err != nil {
					t.Errorf("%s: %v", credential.User, err)
				}
				secrets = append(secrets, r.Old, r.New)
				t.Logf("%s: in force after %s, the old one refused after %s", credential.User, r.InForce.Round(time.Millisecond), r.Over.Round(time.Millisecond))
			}
			for _, usage := range used.Stop() {
				if usage.Failed > 0 || usage.Commands < 100 {
					t.Errorf("%+v", usage)
				}
			}
			if after := fullSyncs(t, server.Client, key, primary); after != before {
				t.Errorf("%s full resyncs, before %s", after, before)
			}
			expectNowhere(t, server.Client, namespace, secrets)
		})
	}
}

// expectNowhere looks for passwords, and for their hashes, in the operator's log, in Events
// and in every object that is no Secret.
func expectNowhere(t *testing.T, c client.Client, namespace string, passwords []string) {
	t.Helper()
	operatorLogs.mu.Lock()
	texts := map[string]string{"the log": strings.Join(operatorLogs.lines, "")}
	operatorLogs.mu.Unlock()
	if !strings.Contains(texts["the log"], "users set") {
		t.Error("the log tells nothing")
	}
	objects, err := listAll(t.Context(), c, namespace)
	events := &eventsv1.EventList{}
	if err := errors.Join(err, c.List(t.Context(), events, client.InNamespace(namespace))); err != nil {
		t.Fatal(err)
	}
	for i := range objects {
		if objects[i].GetKind() != "Secret" {
			texts[objects[i].GetKind()+" "+objects[i].GetName()] = fmt.Sprint(objects[i].Object)
		}
	}
	for i := range events.Items {
		texts["Event "+events.Items[i].Name] = fmt.Sprint(events.Items[i])
	}
	for where, text := range texts {
		for _, password := range passwords {
			if password == "" || strings.Contains(text, password) || strings.Contains(text, conf.Hash(password)) {
				t.Errorf("%s shows a password or its hash, or there is none", where)
			}
		}
	}
}

// fullSyncs is how often the primary sent all of its data.
func fullSyncs(t *testing.T, c client.Client, cluster client.ObjectKey, primary string) string {
	t.Helper()
	target, err := oracle.ServiceTarget(t.Context(), c, cluster, naming.PrimaryService(cluster.Name))
	if err != nil {
		t.Fatal(err)
	}
	target.Address = admin.Address(primary, false)
	stats, err := oracle.Do(t.Context(), target, "INFO", "stats")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(stats, "sync_full:")
	if !found {
		t.Fatal(fmt.Errorf("no sync_full in %s", stats))
	}
	count, _, _ := strings.Cut(rest, "\r\n")
	return count
}
