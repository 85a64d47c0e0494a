package controllers_test

import (
	"fmt"
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
var ownDirectives = []string{"dir", "bind", "bind-source-addr", "replicaof", "slaveof", "masterauth", "primaryauth", "pidfile", "aclfile"}

// configuration is what CONFIG GET says on every member, by role.
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
	var lines []string
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
