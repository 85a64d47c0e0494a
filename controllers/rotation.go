package controllers

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/conf"
)

// wantedUsers is what the members are to have, and the Secret of the system to say.
type wantedUsers struct {
	users                           []conf.User
	operator, previous, replication string
	rotations                       conf.Rotations
}

// data is the content of the Secret of the system.
func (w wantedUsers) data() map[string][]byte {
	data := map[string][]byte{
		naming.KeyOperatorPassword:    []byte(w.operator),
		naming.KeyReplicationPassword: []byte(w.replication),
		naming.KeyACL:                 []byte(conf.RenderACL(w.users)),
		naming.KeyReplicationConf:     []byte(conf.ReplicationInclude(naming.UserReplication, w.replication)),
	}
	if w.previous != "" {
		data[naming.KeyOperatorPrevious] = []byte(w.previous)
	}
	if text := w.rotations.Encode(); text != nil {
		data[naming.KeyRotations] = text
	}
	return data
}

// stamp is a hash of what a member must have.
func (w wantedUsers) stamp() string { return stampOf(w.data()) }

func stampOf(system map[string][]byte) string {
	return conf.Hash(string(system[naming.KeyACL]) + string(system[naming.KeyReplicationConf]))
}

func (w wantedUsers) systemPasswords() map[string]string {
	return map[string]string{naming.UserOperator: w.operator, naming.UserReplication: w.replication}
}

// rotate decides what follows what is stored: passwords that begin to change, and
// those that have.
func (s *scope) rotate(stored []conf.User, accounts []account, request rotationRequest) wantedUsers {
	w := wantedUsers{
		operator: string(s.system[naming.KeyOperatorPassword]), previous: string(s.system[naming.KeyOperatorPrevious]),
		replication: string(s.system[naming.KeyReplicationPassword]), rotations: conf.ParseRotations(s.system[naming.KeyRotations]),
	}
	have := map[string][]string{}
	for _, user := range stored {
		have[user.Name] = user.Hashes
	}
	settled := s.settled(stampOf(s.system))
	if settled && len(have[naming.UserOperator]) == 1 && (request.system || s.systemDue(w.rotations)) {
		w.previous, w.operator, w.replication = w.operator, rand.Text(), rand.Text()
		w.rotations[conf.RotationSystem] = conf.Rotation{Since: s.now.UTC()}
	}
	rules := conf.SystemRules()
	for _, name := range []string{naming.UserOperator, naming.UserReplication} {
		hashes, _, _ := conf.NextHashes(have[name], conf.Hash(w.systemPasswords()[name]), time.Time{}, conf.Progress{Now: s.now, Settled: settled})
		w.users = append(w.users, conf.User{Name: name, Hashes: hashes, Rules: rules[name]})
	}
	for i := range accounts {
		a := &accounts[i]
		if request.users[a.name] && w.rotations[a.name].Pending == "" {
			a.password = rand.Text()
		}
		w.add(have[a.name], a, conf.Progress{Now: s.now, Overlap: s.overlap(), Settled: settled && a.published == a.password})
		s.lookAgain(w.rotations[a.name])
	}
	w.users = append(w.users, s.untouched(stored, accounts)...)
	slices.SortFunc(w.users, func(a, b conf.User) int { return strings.Compare(a.Name, b.Name) })
	w.forget(accounts)
	return w
}

// untouched are the users that the spec names and nothing else is known of: their Secrets
// are gone. They stay as they are.
func (s *scope) untouched(stored []conf.User, accounts []account) []conf.User {
	var users []conf.User
	for _, user := range stored {
		named := s.cluster.Spec.Auth != nil && slices.ContainsFunc(s.cluster.Spec.Auth.Users, func(u v1alpha1.UserSpec) bool { return u.Name == user.Name })
		if named && !slices.ContainsFunc(accounts, func(a account) bool { return a.name == user.Name }) {
			users = append(users, user)
		}
	}
	return users
}

// add adds a user of applications.
func (w *wantedUsers) add(have []string, a *account, p conf.Progress) {
	hashes, began, ended := conf.NextHashes(have, conf.Hash(a.password), w.rotations[a.name].Since, p)
	switch {
	case began:
		rotation := conf.Rotation{Since: p.Now.UTC()}
		if !a.given && a.password != a.published {
			rotation.Pending = a.password
		}
		w.rotations[a.name] = rotation
	case ended:
		delete(w.rotations, a.name)
	}
	w.users = append(w.users, conf.User{Name: a.name, Hashes: hashes, Rules: a.rules})
}

// forget drops the rotations of users that are gone.
func (w *wantedUsers) forget(accounts []account) {
	for name := range w.rotations {
		if name != conf.RotationSystem && !slices.ContainsFunc(accounts, func(a account) bool { return a.name == name }) {
			delete(w.rotations, name)
		}
	}
}

// lookAgain makes a pass follow at the end of a rotation's overlap.
func (s *scope) lookAgain(rotation conf.Rotation) {
	if rotation.Since.IsZero() {
		return
	}
	s.lookAgainWithin(rotation.Since.Add(s.overlap()).Sub(s.now))
}

// lookAgainWithin makes a pass follow in that time at the latest, if it is not over.
func (s *scope) lookAgainWithin(left time.Duration) {
	if left > 0 && (s.lookWithin == 0 || left < s.lookWithin) {
		s.lookWithin = left
	}
}

// systemDue says that the passwords of the system are older than the spec allows.
func (s *scope) systemDue(rotations conf.Rotations) bool {
	auth := s.cluster.Spec.Auth
	if auth == nil || auth.RotateSystemAfterHours == 0 {
		return false
	}
	since := s.systemSince
	if rotation, ok := rotations[conf.RotationSystem]; ok {
		since = rotation.Since
	}
	return s.now.Sub(since) >= time.Duration(auth.RotateSystemAfterHours)*time.Hour
}

// rotationRequest is what a person asks for by the annotation.
type rotationRequest struct {
	asked, system bool
	users         map[string]bool
	refused       []string
	// later says that it cannot begin yet.
	later bool
}

// rotationRequest reads the annotation. One that names what is being replaced already
// asks for nothing more: it is then what an operator that was stopped left behind.
func (s *scope) rotationRequest(accounts []account) rotationRequest {
	request := rotationRequest{users: map[string]bool{}}
	value, asked := s.cluster.Annotations[naming.AnnotationRotate]
	request.asked = asked
	for name := range strings.SplitSeq(value, ",") {
		name = strings.TrimSpace(name)
		i := slices.IndexFunc(accounts, func(a account) bool { return a.name == name })
		switch {
		case !asked:
		case name == conf.RotationSystem:
			request.system = true
			request.later = !s.systemRotates() && !s.settled(stampOf(s.system))
		case i < 0:
			request.refused = append(request.refused, fmt.Sprintf("there is no user %q", name))
		case accounts[i].given:
			request.refused = append(request.refused, fmt.Sprintf("the password of the user %s is that of a Secret of yours: change it there", name))
		default:
			request.users[name] = true
		}
	}
	if request.later {
		request.users = nil
	}
	return request
}

// systemRotates says that the operator's password is being replaced.
func (s *scope) systemRotates() bool {
	for _, user := range conf.ParseACL(string(s.system[naming.KeyACL])) {
		if user.Name == naming.UserOperator {
			return len(user.Hashes) > 1
		}
	}
	return false
}

// answerRotation ends a request once what it asks for is stored.
func (r *RedisClusterReconciler) answerRotation(ctx context.Context, s *scope, request rotationRequest) error {
	if !request.asked || request.later {
		if request.later {
			s.wait(waitForMembers("the passwords of the system are replaced once every member answers"))
		}
		return nil
	}
	err := r.patchMetadata(ctx, s, func(cluster *v1alpha1.RedisCluster) { delete(cluster.Annotations, naming.AnnotationRotate) })
	if err != nil {
		return fmt.Errorf("remove the annotation %s: %w", naming.AnnotationRotate, err)
	}
	if len(request.refused) > 0 {
		r.event(s.cluster, corev1.EventTypeWarning, "RotateRefused", "Rotate", strings.Join(request.refused, "; "))
	}
	logf.FromContext(ctx).Info("request answered", "request", "Rotate", "refused", request.refused)
	return nil
}
