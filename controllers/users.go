package controllers

import (
	"context"
	"fmt"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis"
	"seang.org/operator/internal/redis/admin"
	"seang.org/operator/internal/redis/conf"
	"seang.org/operator/internal/redis/plan"
)

func waitForMembers(message string) plan.Wait {
	return plan.Wait{Reason: v1alpha1.ReasonConfiguring, Message: message, Poll: true}
}

// rules are those that a user is to have, as Redis gets them: those of the spec once our
// own rules and a Redis process took them, until then those it has; empty if it has none.
func (r *RedisClusterReconciler) rules(ctx context.Context, s *scope, user v1alpha1.UserSpec, stored []conf.User) string {
	now := ""
	for _, u := range stored {
		if u.Name == user.Name {
			now = u.Rules
		}
	}
	rules, err := conf.Restrict(user.Rules)
	if err != nil {
		s.reject(v1alpha1.ReasonInvalidUser, fmt.Sprintf("the rules of the user %s cannot be used: %s", user.Name, err))
		return now
	}
	if rules == now {
		return now
	}
	switch problem, known := r.verdict(ctx, s, rules); {
	case !known:
		s.wait(waitForMembers(fmt.Sprintf("the rules of the user %s are tried once a member answers", user.Name)))
		return now
	case problem != "":
		s.reject(v1alpha1.ReasonInvalidUser, fmt.Sprintf("the rules of the user %s cannot be used: %s", user.Name, problem))
		return now
	}
	return rules
}

// verdict is what a Redis process says of rules, empty if it takes them; unknown while
// none answers. It is asked once a version.
func (r *RedisClusterReconciler) verdict(ctx context.Context, s *scope, rules string) (problem string, known bool) {
	m := s.prober()
	if m == nil {
		return "", false
	}
	key := m.Info.Flavour + " " + m.Info.Version + " " + rules
	if problem, known = s.memory.verdicts[key]; known {
		return problem, true
	}
	member, err := r.member(ctx, s, m.Pod)
	if err == nil {
		err = member.TryRules(ctx, rules)
	}
	if err != nil && !admin.IsRefusal(err) {
		logf.FromContext(ctx).Info("the rules of a user could not be tried", "pod", m.Pod, "error", err.Error())
		return "", false
	}
	if err != nil {
		problem = err.Error()
	}
	s.memory.verdicts[key] = problem
	return problem, true
}

// prober is the member to try rules on: a replica if one answers.
func (s *scope) prober() *plan.Member {
	var found *plan.Member
	for i := range s.facts.Members {
		m := &s.facts.Members[i]
		if m.Info != nil && !m.Info.Loading && (found == nil || m.Info.Role == redis.RoleReplica) {
			found = m
		}
	}
	return found
}

// settled says that every process has what the stamp stands for. One that does not run
// has not: it gets it when it starts.
func (s *scope) settled(stamp string) bool {
	for i := range s.facts.Members {
		m := &s.facts.Members[i]
		if m.PodUID == "" {
			continue
		}
		if m.Info == nil && running(s.pods[m.Pod]) || m.Info != nil && s.memory.pod(m.PodUID).users != stamp {
			return false
		}
	}
	return true
}

// setUsers brings the users, and the password with which replicas log in, into force on
// every running member, and reads back that they are.
func (r *RedisClusterReconciler) setUsers(ctx context.Context, s *scope, w wantedUsers, accounts []account) error {
	stamp, passwords := w.stamp(), w.passwordsOf(accounts)
	for i := range s.facts.Members {
		m := &s.facts.Members[i]
		if m.Info == nil || s.memory.pod(m.PodUID).users == stamp {
			continue
		}
		if err := r.setUsersOf(ctx, s, m, w, passwords); err != nil {
			s.wait(waitForMembers("the users are not in force on " + m.Pod))
			if err := r.tolerateCommand(ctx, "set the users of "+m.Pod, err); err != nil {
				return err
			}
			continue
		}
		s.memory.pod(m.PodUID).users = stamp
		s.acted = true
	}
	return nil
}

func (r *RedisClusterReconciler) setUsersOf(ctx context.Context, s *scope, m *plan.Member, w wantedUsers, passwords map[string]string) error {
	member, err := r.member(ctx, s, m.Pod)
	if err != nil {
		return err
	}
	have, err := member.Users(ctx)
	if err != nil {
		return err
	}
	if err := member.SetUsers(ctx, w.users, have); err != nil {
		return err
	}
	if err := setReplicationLogin(ctx, member, w.replication); err != nil {
		return err
	}
	known := map[string]bool{}
	for _, user := range have {
		for _, hash := range user.Hashes {
			known[user.Name+" "+hash] = true
		}
	}
	for name, password := range passwords {
		if known[name+" "+conf.Hash(password)] {
			continue
		}
		if err := member.TryLogin(ctx, name, password); err != nil {
			return fmt.Errorf("log in as %s: %w", name, err)
		}
	}
	logf.FromContext(ctx).Info("users set", "pod", m.Pod, "users", len(w.users))
	return nil
}

// masterUser and masterAuth are the directives with which a replica logs in at its
// primary. A link that is up stays up when they change: the next one uses them.
const (
	masterUser = "masteruser"
	masterAuth = "masterauth"
)

func setReplicationLogin(ctx context.Context, member *admin.Member, password string) error {
	wanted := map[string]string{masterUser: naming.UserReplication, masterAuth: password}
	have, err := member.ConfigGet(ctx, masterUser, masterAuth)
	if err != nil {
		return err
	}
	if have[masterUser] == wanted[masterUser] && have[masterAuth] == password {
		return nil
	}
	if err := member.ConfigSet(ctx, wanted); err != nil {
		if admin.IsRefusal(err) {
			// The reply may quote the password.
			return fmt.Errorf("redis %w to the new login of replicas", admin.ErrReplied)
		}
		return err
	}
	return nil
}
