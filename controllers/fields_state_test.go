package controllers_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/internal/naming"
)

func (l *lane) secretValue(name, key string) (string, error) {
	secret := &corev1.Secret{}
	if err := l.client.Get(l.t.Context(), client.ObjectKey{Namespace: l.namespace, Name: name}, secret); err != nil {
		return "", err
	}
	return string(secret.Data[key]), nil
}

// ownDirectives differ from process to process.
var ownDirectives = []string{"dir", "bind", "bind-source-addr", "replicaof", "slaveof", "masterauth", "primaryauth", "pidfile", "aclfile",
	"tls-cert-file", "tls-key-file", "tls-ca-cert-file"}

// configuration is what CONFIG GET and ACL LIST say on every member, by role.
func (l *lane) configuration(pods map[string]*corev1.Pod) (string, error) {
	password, err := l.secretValue(naming.SystemSecret(l.wanted.Name), naming.KeyOperatorPassword)
	if err != nil {
		return "", err
	}
	var members []string
	for name, pod := range pods {
		role := naming.RoleReplica
		if name == l.cluster.Status.Primary {
			role = naming.RolePrimary
		}
		directives, err := l.directives(pod, role, password)
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		members = append(members, "\nCONFIG GET of a "+role+":\n"+strings.Join(directives, "\n"))
	}
	slices.Sort(members)
	return strings.Join(members, "\n"), nil
}

// passwordHash matches the hash of a password, of which there is another in each run.
var passwordHash = regexp.MustCompile(`#[0-9a-f]{64}`)

func (l *lane) directives(pod *corev1.Pod, role, password string) ([]string, error) {
	conn, err := redisAs(naming.UserOperator, pod.Status.PodIP, password)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	values, err := conn.Do(l.t.Context(), conn.B().ConfigGet().Parameter("*").Build()).AsStrMap()
	if err != nil {
		return nil, fmt.Errorf("CONFIG GET: %w", err)
	}
	users, err := conn.Do(l.t.Context(), conn.B().AclList().Build()).AsStrSlice()
	if err != nil {
		return nil, fmt.Errorf("ACL LIST: %w", err)
	}
	var lines []string
	for _, user := range users {
		// Redis 7.0 writes the rules in an order of chance.
		words := strings.Fields(passwordHash.ReplaceAllString(user, "#HASH"))
		slices.Sort(words[2:])
		lines = append(lines, strings.Join(words, " "))
	}
	for name, value := range values {
		switch {
		case slices.Contains(ownDirectives, name):
		case role == naming.RoleReplica && strings.HasPrefix(name, "min-") && strings.HasSuffix(name, "-to-write"):
			// It counts on a primary, which the operator makes have the right one.
		default:
			lines = append(lines, name+" "+value)
		}
	}
	slices.Sort(lines)
	return lines, nil
}
