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
	// OLM has the Operator Lifecycle Manager and the tools of its Jobs.
	OLM Image = "olm"
	// OPM serves catalogs and unpacks bundles.
	OPM Image = "opm"
)

// Registry is where the project's own images are published. It stands in the Makefile:
// make generate writes it here.
const Registry = "registry.seang.org"

// What users and tests write to get an image.
const (
	Redis70Reference  = "docker.io/library/redis:7.0"
	Redis80Reference  = "docker.io/library/redis:8.0"
	Valkey81Reference = "docker.io/valkey/valkey:8.1"
	NotRedisReference = Registry + "/test/not-redis:v1"
	ClientReference   = Registry + "/test/client:v1"
	OLMReference      = "quay.io/operator-framework/olm:v0.46.0"
	OPMReference      = "quay.io/operator-framework/opm:v1.73.0"
	// OperatorRepository has a tag for each version of the operator.
	OperatorRepository = Registry + "/redis-operator"
)

// OperatorReference is the operator's image of a version, such as v0.1.0.
func OperatorReference(version string) string { return OperatorRepository + ":" + version }

// All are the images.
func All() []Image { return append(FromPackages(), OLM, OPM, Operator) }

// FromPackages are the images that are made from Debian's packages alone.
func FromPackages() []Image { return []Image{Redis70, Redis80, Valkey81, NotRedis, Client} }

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
		OLM:      OLMReference,
		OPM:      OPMReference,
	}[i]
}

// File is the image's docker-archive in a directory.
func (i Image) File(dir string) string { return dir + "/" + string(i) + ".tar" }
