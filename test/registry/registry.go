// Package registry has the names of the project's own images.
package registry

// Host is where they are published. It stands in the Makefile: make generate writes it
// here, and wherever else it is needed.
const Host = "registry.seang.org"

// The images, without their tags.
const (
	Operator  = Host + "/redis-operator"
	Bundle    = Operator + "-bundle"
	Catalog   = Operator + "-catalog"
	Scorecard = Operator + "-scorecard"
	// NotRedis is there for tests: it has a shell, and no server.
	NotRedis = Host + "/test/not-redis:v1"
	// Absent is in no registry.
	Absent = Host + "/test/absent:v1"
)
