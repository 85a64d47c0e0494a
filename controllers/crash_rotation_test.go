package controllers_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/conf"
)

const userOfLanes = "app"

// withUser gives the RedisCluster a user with the rules, and no overlap of passwords.
func withUser(rules string) workload {
	return workload{name: "user with " + rules,
		begin: func(l *lane) {
			l.patch(fmt.Sprintf(`{"spec":{"auth":{"overlapSeconds":0,"users":[{"name":%q,"rules":%q}]}}}`, userOfLanes, rules))
		},
		done: func(l *lane, pods map[string]*corev1.Pod) error {
			restricted, err := conf.Restrict(rules)
			if err != nil {
				return err
			}
			acl, err := l.secretValue(naming.SystemSecret("cache"), naming.KeyACL)
			return errors.Join(err, pending(!strings.Contains(acl, restricted), "the user has other rules"), l.passwordsWork(pods, userOfLanes))
		}}
}

func withoutUser() workload {
	return workload{name: "no user",
		begin: func(l *lane) { l.patch(`{"spec":{"auth":{"users":null}}}`) },
		done: func(l *lane, pods map[string]*corev1.Pod) error {
			if _, err := l.secretValue(naming.UserSecret("cache", userOfLanes), naming.KeyPassword); err == nil {
				return errors.New("the Secret of the user is still there")
			}
			return l.passwordsWork(pods)
		}}
}

// rotation replaces the passwords of the users, which the request names so; more are
// those that there are besides, of which the cluster has none otherwise.
func rotation(request string, names []string, more ...string) workload {
	before := map[string]string{}
	return workload{name: "rotation of " + request,
		begin: func(l *lane) {
			for _, name := range names {
				before[name], _ = l.passwordOf(name)
			}
			l.annotate(naming.AnnotationRotate, request)
		},
		done: func(l *lane, pods map[string]*corev1.Pod) error {
			if _, asked := l.cluster.Annotations[naming.AnnotationRotate]; asked {
				return errors.New("it has not begun")
			}
			for _, name := range names {
				now, err := l.passwordOf(name)
				if err != nil || now == before[name] {
					return fmt.Errorf("%s has the old password: %w", name, err)
				}
			}
			if err := l.passwordsWork(pods, more...); err != nil {
				return err
			}
			l.password, _ = l.passwordOf(naming.UserDefault)
			for _, pod := range pods {
				for _, name := range names {
					if conn, err := redisAs(name, pod.Status.PodIP, before[name]); err == nil {
						conn.Close()
						return fmt.Errorf("%s lets %s in with the old password", pod.Name, name)
					}
				}
			}
			return nil
		}}
}

// rotations begin with the system's, which leaves its Secret with more keys than it had.
func rotations() []workload {
	all := []string{naming.UserOperator, naming.UserReplication, naming.UserDefault}
	return []workload{
		rotation("system, default", all),
		withUser("~app:* +@read"),
		rotation(userOfLanes, []string{userOfLanes}, userOfLanes),
		withUser("~* +@all"),
		withoutUser(),
	}
}

// passwordOf is the password that a Secret of ours tells of a user.
func (l *lane) passwordOf(user string) (string, error) {
	switch user {
	case naming.UserOperator:
		return l.secretValue(naming.SystemSecret("cache"), naming.KeyOperatorPassword)
	case naming.UserReplication:
		return l.secretValue(naming.SystemSecret("cache"), naming.KeyReplicationPassword)
	}
	return l.secretValue(naming.UserSecret("cache", user), naming.KeyPassword)
}

// passwordsWork says where a member does not have the users that every cluster has and
// those that are named, each with the one password that its Secret tells.
func (l *lane) passwordsWork(pods map[string]*corev1.Pod, more ...string) error {
	password, err := l.passwordOf(naming.UserOperator)
	if err != nil {
		return err
	}
	names := append([]string{naming.UserOperator, naming.UserReplication, naming.UserDefault}, more...)
	for _, pod := range pods {
		conn, err := redisAs(naming.UserOperator, pod.Status.PodIP, password)
		if err != nil {
			return fmt.Errorf("%s: %w", pod.Name, err)
		}
		lines, err := conn.Do(l.t.Context(), conn.B().AclList().Build()).AsStrSlice()
		conn.Close()
		if err != nil {
			return fmt.Errorf("ACL LIST of %s: %w", pod.Name, err)
		}
		users := conf.ParseACL(strings.Join(lines, "\n"))
		if len(users) != len(names) {
			return fmt.Errorf("%s has %d users, want %v", pod.Name, len(users), names)
		}
		for _, user := range users {
			want, err := l.passwordOf(user.Name)
			if err != nil || !slices.Equal(user.Hashes, []string{conf.Hash(want)}) {
				return fmt.Errorf("%s of %s has %d passwords, or another than that of its Secret: %w", user.Name, pod.Name, len(user.Hashes), err)
			}
		}
	}
	return nil
}
