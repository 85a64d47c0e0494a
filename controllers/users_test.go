package controllers_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/conf"
	"seang.org/operator/internal/testkit/apiserver"
)

// rejected waits until the spec is refused with the reason and the text.
func (l *lane) rejected(reason, text string) {
	l.t.Helper()
	await(l.t, l.client, l.wanted, reason+": "+text, func() bool {
		accepted := meta.FindStatusCondition(l.wanted.Status.Conditions, v1alpha1.ConditionSpecAccepted)
		return accepted != nil && accepted.Status == metav1.ConditionFalse && accepted.Reason == reason && strings.Contains(accepted.Message, text)
	})
}

// mended waits until all is as asked.
func (l *lane) mended(what string, users ...string) {
	l.t.Helper()
	l.run(workload{name: what, begin: func(*lane) {},
		done: func(l *lane, pods map[string]*corev1.Pod) error {
			var err error
			if l.password, err = l.passwordOf(naming.UserDefault); err != nil {
				return err
			}
			return errors.Join(l.passwordsWork(pods, users...), pending(!isReady(l.cluster), "not Ready"))
		}}, 0, crash)
}

func (l *lane) auth(format string, values ...any) {
	l.patch(`{"spec":{"auth":` + fmt.Sprintf(format, values...) + `}}`)
}

// secret writes a Secret of the user's, and has the operator read it again at once.
func (l *lane) writeSecret(name string, data map[string][]byte) {
	l.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: name}, Data: data}
	err := l.client.Update(l.t.Context(), secret)
	if client.IgnoreNotFound(err) == nil && err != nil {
		err = l.client.Create(l.t.Context(), secret)
	}
	if err != nil {
		l.t.Fatalf("write the Secret %s: %v", name, err)
	}
	l.restart()
}

// restart makes another operator take over, which has read nothing yet.
func (l *lane) restart() {
	l.life.die()
	l.life = live(l.t, l.server, l.namespace, nil)
}

func (l *lane) hashesOf(user string) int {
	acl, err := l.secretValue(naming.SystemSecret("cache"), naming.KeyACL)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, u := range conf.ParseACL(acl) {
		if u.Name == user {
			return len(u.Hashes)
		}
	}
	return 0
}

func TestRulesThatCannotBeUsedTouchNothing(t *testing.T) {
	t.Parallel()
	l := newLane(t, apiserver.Get(t), course{what: "rotation", created: true})
	l.auth(`{"users":[{"name":"app","rules":"~* +get"},{"name":"bad","rules":"+nosuchcommand"}]}`)
	l.rejected(v1alpha1.ReasonInvalidUser, "nosuchcommand")
	pods, err := l.pods()
	if err := errors.Join(err, l.passwordsWork(pods, "app")); err != nil {
		t.Errorf("the other user is not in force: %v", err)
	}
	for rules, message := range map[string]string{"~* +get +config": `"+config"`, "~* +get (+set": "selector has no end", "~* +nosuch": "nosuch", "+client|nosuch": "nosuch"} {
		l.auth(`{"users":[{"name":"app","rules":%q}]}`, rules)
		l.rejected(v1alpha1.ReasonInvalidUser, message)
		acl, err := l.secretValue(naming.SystemSecret("cache"), naming.KeyACL)
		if want, _ := conf.Restrict("~* +get"); err != nil || !strings.Contains(acl, " "+want+"\n") {
			t.Errorf("after %q the user has other rules: %v", rules, err)
		}
	}
	l.auth(`{"users":[{"name":"app","rules":"~* +get +set"}]}`)
	l.mended("mended", "app")
}

func TestAPasswordThatCannotBeUsedTouchesNothing(t *testing.T) {
	t.Parallel()
	l := newLane(t, apiserver.Get(t), course{what: "rotation", created: true})
	good := map[string][]byte{naming.KeyPassword: []byte("a-password-of-the-user-1")}
	l.writeSecret("given", good)
	l.auth(`{"secretName":"given","users":[{"name":"app","rules":"~* +@all","secretName":"given"}]}`)
	l.mended("given", "app")
	for _, bad := range []struct {
		name, key, password, message string
	}{
		{"empty", naming.KeyPassword, "", "0 bytes"}, {"short", naming.KeyPassword, "short", "5 bytes"},
		{"binary", naming.KeyPassword, "\x00\xff\x01a-long-binary-password", "printable"}, {"another key", "pass", "a-password-of-the-user-2", "0 bytes"},
		{"lines", naming.KeyPassword, "a-password-of-two\nlines-of-text", "printable"},
	} {
		l.writeSecret("given", map[string][]byte{bad.key: []byte(bad.password)})
		l.rejected(v1alpha1.ReasonInvalidSecret, bad.message)
		pods, err := l.pods()
		if err := errors.Join(err, l.passwordsWork(pods, "app")); err != nil || l.hashesOf("app") != 1 {
			t.Errorf("%s: the password that was there does not work alone: %v", bad.name, err)
		}
	}
	if err := l.client.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "given"}}); err != nil {
		t.Fatal(err)
	}
	l.restart()
	l.rejected(v1alpha1.ReasonInvalidSecret, "does not exist")
	l.writeSecret("given", map[string][]byte{naming.KeyPassword: []byte("a-password-of-the-user-3")})
	l.mended("another password", "app")
	if l.password != "a-password-of-the-user-3" {
		t.Errorf("the password is another")
	}
}

func TestAnOldPasswordWorksForTheOverlap(t *testing.T) {
	t.Parallel()
	l := newLane(t, apiserver.Get(t), course{what: "rotation", created: true})
	l.auth(`{"overlapSeconds":3}`)
	old := l.password
	began := time.Now()
	l.annotate(naming.AnnotationRotate, naming.UserDefault+", nobody")
	await(t, l.client, l.wanted, "a new password", func() bool {
		now, err := l.passwordOf(naming.UserDefault)
		return err == nil && now != old
	})
	pods, err := l.pods()
	if err != nil {
		t.Fatal(err)
	}
	for name, pod := range pods {
		for _, password := range []string{old, l.mustPassword()} {
			conn, err := redisAt(pod.Status.PodIP, password)
			if err != nil {
				t.Fatalf("%s lets the old and the new password in: %v", name, err)
			}
			conn.Close()
		}
	}
	l.mended("after the overlap")
	if took := time.Since(began); took < 2*time.Second || took > 15*time.Second {
		t.Errorf("the old password went after %s", took)
	}
}

func (l *lane) mustPassword() string {
	l.t.Helper()
	password, err := l.passwordOf(naming.UserDefault)
	if err != nil {
		l.t.Fatal(err)
	}
	return password
}

// The node of a pod may have an old copy of the Secret: the process then starts with the
// users of before.
func TestAMemberThatStartsWithOldPasswordsGetsTheNewOnes(t *testing.T) {
	t.Parallel()
	l := newLane(t, apiserver.Get(t), course{what: "rotation", created: true})
	l.run(rotation("system, default", []string{naming.UserOperator, naming.UserReplication, naming.UserDefault}), 0, crash)
	for _, name := range []string{"cache-1", "cache-0"} {
		pods, err := l.pods()
		if err != nil {
			t.Fatal(err)
		}
		l.nodes.Restart(pods[name].UID)
		l.mended("after the restart of " + name)
	}
}

func TestThePasswordsOfTheSystemChangeByAge(t *testing.T) {
	t.Parallel()
	l := newLane(t, apiserver.Get(t), course{what: "rotation", created: true})
	before, err := l.passwordOf(naming.UserReplication)
	if err != nil {
		t.Fatal(err)
	}
	l.auth(`{"rotateSystemAfterHours":24}`)
	for age, wanted := range map[time.Duration]bool{time.Hour: false, 25 * time.Hour: true} {
		old := conf.Rotations{conf.RotationSystem: {Since: time.Now().Add(-age).UTC()}}
		patch := fmt.Sprintf(`{"stringData":{%q:%q}}`, naming.KeyRotations, old.Encode())
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: naming.SystemSecret("cache")}}
		if err := l.client.Patch(t.Context(), secret, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			t.Fatal(err)
		}
		l.restart()
		name := fmt.Sprintf("%s old", age)
		l.run(workload{name: name, begin: func(*lane) {}, done: func(l *lane, pods map[string]*corev1.Pod) error {
			now, err := l.passwordOf(naming.UserReplication)
			if (now != before) != wanted {
				return fmt.Errorf("%s: the password of the replication changed: %t, %w", name, now != before, err)
			}
			return l.passwordsWork(pods)
		}}, 0, crash)
		before, _ = l.passwordOf(naming.UserReplication)
	}
}
