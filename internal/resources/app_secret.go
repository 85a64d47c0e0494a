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
// well-known keys of servicebinding.io. The host is that of the primary Service. With
// CAs for clients to trust, the connection is encrypted.
func AppSecret(in Input, username, password string) *corev1ac.SecretApplyConfiguration {
	host := naming.PrimaryHost(in.name(), in.namespace())
	scheme, port := "redis", strconv.Itoa(naming.PortRedis)
	if in.CA != nil {
		scheme, port = "rediss", strconv.Itoa(naming.PortTLS)
	}
	uri := url.URL{
		Scheme: scheme,
		User:   url.UserPassword(username, password),
		Host:   host + ":" + port,
	}
	data := map[string][]byte{
		naming.KeyType:     []byte(bindingType),
		naming.KeyHost:     []byte(host),
		naming.KeyPort:     []byte(port),
		naming.KeyUsername: []byte(username),
		naming.KeyPassword: []byte(password),
		naming.KeyURI:      []byte(uri.String()),
	}
	if in.CA != nil {
		data[naming.KeyCA] = in.CA
	}
	return corev1ac.Secret(naming.UserSecret(in.name(), username), in.namespace()).
		WithLabels(in.selector()).
		WithOwnerReferences(in.owner()).
		WithType(corev1.SecretType("servicebinding.io/" + bindingType)).
		WithData(data)
}
