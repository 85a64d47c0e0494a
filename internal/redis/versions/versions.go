// Package versions judges the versions of servers by a vetted list. It is pure.
package versions

import (
	_ "embed"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"
)

//go:embed versions.yaml
var text []byte

type list struct {
	// Oldest version that is supported, by flavour.
	Oldest map[string]string `json:"oldest"`
	// Tested are FLAVOUR-MAJOR.MINOR.
	Tested []string `json:"tested"`
	Flaws  []flaw   `json:"flaws"`
	// Formats of RDB that a line writes, by flavour and line.
	Formats map[string]map[string]int `json:"formats"`
	// Foreign are the first and the last format that a flavour does not read.
	Foreign map[string][2]int `json:"foreign"`
}

type flaw struct {
	ID     string `json:"id"`
	What   string `json:"what"`
	Source string `json:"source"`
	// Fixed are the first versions with the fix, one of each line, by flavour.
	Fixed map[string][]string `json:"fixed"`
}

var known = read()

func read() list {
	var l list
	if err := yaml.UnmarshalStrict(text, &l); err != nil {
		panic(fmt.Sprintf("versions.yaml: %v", err)) // It is part of the program.
	}
	return l
}

// Tested are the flavours and lines that the tests run, such as redis-8.0.
func Tested() []string { return known.Tested }

// Verdict is what the list says of a version: nothing, if both are empty.
type Verdict struct {
	// Unsupported says why the operator does not promise to work with it.
	Unsupported string
	// Vulnerable names the flaws and the versions that are without.
	Vulnerable string
}

// Server is a flavour, such as redis, and a version, such as 8.0.2.
type Server struct{ Flavour, Version string }

func (s Server) String() string { return s.Flavour + " " + s.Version }

// CannotLoad says why the server cannot load what another wrote; empty if it can, or if
// that is not known. A server loads the formats up to its own, but for foreign ones.
func (s Server) CannotLoad(other Server) string {
	reads, writes, foreign := s.format(), other.format(), known.Foreign[s.Flavour]
	switch {
	case reads == 0 || writes == 0:
		return ""
	case reads < writes:
		return fmt.Sprintf("%s reads RDB files up to format %d, and %s writes format %d", s, reads, other, writes)
	case foreign[0] <= writes && writes <= foreign[1]:
		return fmt.Sprintf("%s does not read the RDB format %d of %s", s, writes, other)
	}
	return ""
}

// format of RDB that the server writes; 0 if it is not known.
func (s Server) format() int {
	v, err := version.ParseGeneric(s.Version)
	if err != nil {
		return 0
	}
	return known.Formats[s.Flavour][fmt.Sprintf("%d.%d", v.Major(), v.Minor())]
}

// Judge looks a version up, for example "redis" and "8.0.2". One that cannot be read
// is unsupported.
func Judge(flavour, number string) Verdict {
	v, err := version.ParseGeneric(number)
	oldest, ok := known.Oldest[flavour]
	switch {
	case err != nil || !ok:
		return Verdict{Unsupported: fmt.Sprintf("%s %s is not known", flavour, number)}
	case v.LessThan(version.MustParseGeneric(oldest)):
		return Verdict{Unsupported: fmt.Sprintf("%s %s is older than %s, the oldest that is supported", flavour, number, oldest)}
	}
	var flaws []string
	for _, f := range known.Flaws {
		if !f.fixedIn(flavour, v) {
			flaws = append(flaws, fmt.Sprintf("%s (%s; fixed in %s; %s)", f.ID, f.What, strings.Join(f.Fixed[flavour], ", "), f.Source))
		}
	}
	if len(flaws) == 0 {
		return Verdict{}
	}
	return Verdict{Vulnerable: fmt.Sprintf("%s %s has known flaws, unless its maker brought the fixes back: %s", flavour, number, strings.Join(flaws, "; "))}
}

// fixedIn says that the version is without the flaw.
func (f flaw) fixedIn(flavour string, v *version.Version) bool {
	newest := true
	for _, text := range f.Fixed[flavour] {
		fixed := version.MustParseGeneric(text)
		if v.Major() == fixed.Major() && v.Minor() == fixed.Minor() {
			return v.AtLeast(fixed)
		}
		newest = newest && v.AtLeast(fixed)
	}
	return newest
}
