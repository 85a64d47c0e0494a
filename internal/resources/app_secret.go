package resources

import (
	"net/url"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"seang.org/operator/internal/naming"
)

// bindingType tells a binding tool what the Secret describes:
// https://servicebinding.io/spec/core/1.1.0/#provisioned-service.
const bindingType = "redis"

// AppSecret holds all that an application needs to connect as the user, under the
// well-known keys of servicebinding.io. The host is that of the primary Service.
func AppSecret(in Input, username, password string) *corev1ac.SecretApplyConfiguration {
	host := naming.PrimaryHost(in.name(), in.namespace())
	port := strconv.Itoa(naming.PortRedis)
	uri := url.URL{
		Scheme: "redis",
		User:   url.UserPassword(username, password),
		Host:   host + ":" + port,
	}
	return corev1ac.Secret(naming.UserSecret(in.name(), username), in.namespace()).
		WithLabels(in.selector()).
		WithOwnerReferences(in.owner()).
		WithType(corev1.SecretType("servicebinding.io/" + bindingType)).
		WithData(map[string][]byte{
			naming.KeyType:     []byte(bindingType),
			naming.KeyHost:     []byte(host),
			naming.KeyPort:     []byte(port),
			naming.KeyUsername: []byte(username),
			naming.KeyPassword: []byte(password),
			naming.KeyURI:      []byte(uri.String()),
		})
}
