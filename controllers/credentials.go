package controllers

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/admin"
	"seang.org/operator/internal/redis/conf"
	"seang.org/operator/internal/resources"
)

// Passwords change in this order, each step made from what the one before left behind, so
// that it goes on wherever it was stopped:
//
//  1. The Secret of the system gets the new password beside the old: pods that start from
//     now on know both.
//  2. Every member gets both, which is read back, and lets us in with the new one.
//  3. The Secret that applications read gets the new one.
//  4. After the overlap, the old one leaves the Secret of the system, and the members.

// reconcileSecrets finds the passwords with which the operator logs in, or makes them.
func (r *RedisClusterReconciler) reconcileSecrets(ctx context.Context, s *scope) error {
	secret, err := r.secret(ctx, s, naming.SystemSecret(s.cluster.Name))
	if err != nil {
		return err
	}
	s.system, s.systemSince = secret.Data, secret.CreationTimestamp.Time
	if len(s.system[naming.KeyOperatorPassword]) == 0 || len(s.system[naming.KeyReplicationPassword]) == 0 {
		if s.memory.system == nil {
			s.memory.system = map[string][]byte{
				naming.KeyOperatorPassword: []byte(rand.Text()), naming.KeyReplicationPassword: []byte(rand.Text())}
		}
		s.system, s.systemSince = s.memory.system, s.now
	}
	s.credentials = s.operatorLogin()
	return nil
}

func (s *scope) operatorLogin() admin.Credentials {
	return admin.Credentials{User: naming.UserOperator,
		Password: string(s.system[naming.KeyOperatorPassword]), Previous: string(s.system[naming.KeyOperatorPrevious])}
}

// reconcileNothing looks at the members of a paused cluster and changes nothing.
func (r *RedisClusterReconciler) reconcileNothing(ctx context.Context, s *scope) error {
	if err := r.reconcileSecrets(ctx, s); err != nil {
		return err
	}
	if err := r.readCertificate(ctx, s); err != nil {
		return err
	}
	return r.observe(ctx, s)
}

// account is a user of applications.
type account struct {
	name, rules string
	// password is the one wanted, and published the one that its Secret holds.
	password, published string
	// given says that the password is that of a Secret of the user's own.
	given bool
	// isNew says that no member knows the user yet.
	isNew bool
}

// reconcileUsers brings the users and their passwords into force on every member, and
// tells applications.
func (r *RedisClusterReconciler) reconcileUsers(ctx context.Context, s *scope) error {
	stored := conf.ParseACL(string(s.system[naming.KeyACL]))
	accounts, err := r.accounts(ctx, s, stored)
	if err != nil {
		return err
	}
	if len(accounts) == 0 || accounts[0].name != naming.UserDefault {
		// Nothing runs yet, and what would run could not be used.
		return errRejected
	}
	request := s.rotationRequest(accounts)
	next := s.rotate(stored, accounts, request)
	if err := r.publish(ctx, s, accounts, func(a account) bool { return a.isNew }); err != nil {
		return err
	}
	if err := r.forgetUsers(ctx, s, stored, next.users); err != nil {
		return err
	}
	changed, err := r.applySecret(ctx, s, resources.SystemSecret(s.input(), next.data()))
	if err != nil {
		return err
	}
	s.memory.system, s.acted = next.data(), s.acted || changed
	if err := r.answerRotation(ctx, s, request); err != nil {
		return err
	}
	s.system = next.data()
	s.credentials = s.operatorLogin()
	if err := r.setUsers(ctx, s, next, accounts); err != nil {
		return err
	}
	if !s.settled(next.stamp()) {
		return nil
	}
	return r.publish(ctx, s, accounts, func(account) bool { return true })
}

// accounts are the users of applications that can be had, the default one first. What
// is wrong with one is a problem of the spec: it stays as it was.
func (r *RedisClusterReconciler) accounts(ctx context.Context, s *scope, stored []conf.User) ([]account, error) {
	auth := ptr.Deref(s.cluster.Spec.Auth, v1alpha1.AuthSpec{})
	wanted := []v1alpha1.UserSpec{{Name: naming.UserDefault, SecretName: auth.SecretName}}
	wanted = append(wanted, auth.Users...)
	var accounts []account
	for _, user := range wanted {
		a, err := r.account(ctx, s, user)
		if err != nil {
			return nil, err
		}
		a.isNew = !slices.ContainsFunc(stored, func(u conf.User) bool { return u.Name == a.name })
		if a.name == naming.UserDefault {
			a.rules = conf.SystemRules()[a.name]
		} else {
			a.rules = r.rules(ctx, s, user, stored)
		}
		if a.password != "" && a.rules != "" {
			s.memory.passwords[a.name] = a.password
			accounts = append(accounts, a)
		}
	}
	slices.SortFunc(accounts[min(1, len(accounts)):], func(a, b account) int { return bytes.Compare([]byte(a.name), []byte(b.name)) })
	return accounts, nil
}

// account finds the password that a user is to have; it is empty if there is none.
func (r *RedisClusterReconciler) account(ctx context.Context, s *scope, user v1alpha1.UserSpec) (account, error) {
	a := account{name: user.Name, given: user.SecretName != ""}
	own, err := r.secret(ctx, s, naming.UserSecret(s.cluster.Name, user.Name))
	if err != nil {
		return a, err
	}
	if conf.CheckPassword(own.Data[naming.KeyPassword]) == nil {
		a.published = string(own.Data[naming.KeyPassword])
	}
	if a.given {
		given, err := r.givenPassword(ctx, s, user)
		if err != nil || given != "" {
			a.password = given
			return a, err
		}
	}
	pending := conf.ParseRotations(s.system[naming.KeyRotations])[user.Name].Pending
	switch known := s.memory.passwords[user.Name]; {
	case pending != "" && !a.given:
		a.password = pending
	case a.published != "":
		a.password = a.published
	case known != "":
		a.password = known
	case !a.given:
		a.password = rand.Text()
	}
	return a, nil
}

// givenPassword is the password of the user's own Secret, or empty with the spec
// rejected if it cannot be used: the password in force stays.
func (r *RedisClusterReconciler) givenPassword(ctx context.Context, s *scope, user v1alpha1.UserSpec) (string, error) {
	secret, err := r.secret(ctx, s, user.SecretName)
	if err != nil {
		return "", err
	}
	password := secret.Data[naming.KeyPassword]
	switch problem := conf.CheckPassword(password); {
	case secret.Name == "":
		s.reject(v1alpha1.ReasonInvalidSecret, fmt.Sprintf("the Secret %q of the user %s does not exist: create it with the key %q", user.SecretName, user.Name, naming.KeyPassword))
	case problem != nil:
		s.reject(v1alpha1.ReasonInvalidSecret, fmt.Sprintf("the key %q of the Secret %q of the user %s cannot be used: %s", naming.KeyPassword, user.SecretName, user.Name, problem))
	default:
		return string(password), nil
	}
	return "", nil
}

// eventRotated is the reason of the Event that says that a password has changed.
const eventRotated = "PasswordChanged"

// publish keeps the Secrets of users. One gets the wanted password if that works, and
// else keeps the one that does.
func (r *RedisClusterReconciler) publish(ctx context.Context, s *scope, accounts []account, works func(account) bool) error {
	for _, a := range accounts {
		password := a.published
		if password == "" || works(a) {
			password = a.password
		}
		changed, err := r.applySecret(ctx, s, resources.AppSecret(s.input(), a.name, password))
		if err != nil {
			return err
		}
		s.acted = s.acted || changed
		if changed && a.published != "" && password != a.published {
			r.event(s.cluster, corev1.EventTypeNormal, eventRotated, "Rotate",
				fmt.Sprintf("the user %s has a new password in the Secret %s; the old one works for %s more", a.name, naming.UserSecret(s.cluster.Name, a.name), s.overlap()))
		}
	}
	return nil
}

// forgetUsers deletes the Secrets of users that are no longer wanted: before they leave
// the Secret of the system, which is what tells of them.
func (r *RedisClusterReconciler) forgetUsers(ctx context.Context, s *scope, stored, wanted []conf.User) error {
	for _, user := range stored {
		if slices.ContainsFunc(wanted, func(u conf.User) bool { return u.Name == user.Name }) {
			continue
		}
		delete(s.memory.passwords, user.Name)
		if err := r.deleteSecret(ctx, s, naming.UserSecret(s.cluster.Name, user.Name)); err != nil {
			return err
		}
	}
	return nil
}

// overlapDefault is longer than a kubelet takes to bring a Secret to a pod, and an
// application to read it again.
const overlapDefault = 180 * time.Second

// overlap is how long the old password of an application works beside the new one.
func (s *scope) overlap() time.Duration {
	if auth := s.cluster.Spec.Auth; auth != nil && auth.OverlapSeconds != nil {
		return time.Duration(*auth.OverlapSeconds) * time.Second
	}
	return overlapDefault
}

// passwordsOf are the passwords that are to work now, by user.
func (w wantedUsers) passwordsOf(accounts []account) map[string]string {
	passwords := maps.Clone(w.systemPasswords())
	for _, a := range accounts {
		passwords[a.name] = a.password
	}
	return passwords
}
