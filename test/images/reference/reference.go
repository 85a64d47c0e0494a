// Package reference has the names of the container images that the tests use.
package reference

import "fmt"

// Image is an image that the tests build.
type Image string

// The images, by the name of their file without .tar.
const (
	Redis70  Image = "redis-7.0"
	Redis80  Image = "redis-8.0"
	Valkey81 Image = "valkey-8.1"
	// NotRedis has a shell, and no server.
	NotRedis Image = "not-redis"
	// Client has redis-cli and a shell, and no server.
	Client   Image = "client"
	Operator Image = "operator"
)

// What users and tests write to get an image.
const (
	Redis70Reference  = "docker.io/library/redis:7.0"
	Redis80Reference  = "docker.io/library/redis:8.0"
	Valkey81Reference = "docker.io/valkey/valkey:8.1"
	NotRedisReference = "registry.seang.org/test/not-redis:v1"
	ClientReference   = "registry.seang.org/test/client:v1"
	// OperatorRepository has a tag for each version of the operator.
	OperatorRepository = "registry.seang.org/redis-operator"
)

// OperatorReference is the operator's image of a version, such as v0.1.0.
func OperatorReference(version string) string { return OperatorRepository + ":" + version }

// All are the images, the operator's last.
func All() []Image { return []Image{Redis70, Redis80, Valkey81, NotRedis, Client, Operator} }

// Find returns the image of a name.
func Find(name string) (Image, error) {
	for _, image := range All() {
		if string(image) == name {
			return image, nil
		}
	}
	return "", fmt.Errorf("no image is named %q: one of %v", name, All())
}

// Reference is what users write to get the image. The version is the
// operator's, and of no matter for others.
func (i Image) Reference(version string) string {
	return map[Image]string{
		Redis70:  Redis70Reference,
		Redis80:  Redis80Reference,
		Valkey81: Valkey81Reference,
		NotRedis: NotRedisReference,
		Client:   ClientReference,
		Operator: OperatorReference(version),
	}[i]
}

// File is the image's docker-archive in a directory.
func (i Image) File(dir string) string { return dir + "/" + string(i) + ".tar" }
