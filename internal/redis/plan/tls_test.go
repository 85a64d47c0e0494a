package plan

import (
	"slices"
	"testing"

	"seang.org/operator/internal/redis"
)

func encrypted(m *Member) { m.TLS = true }

func overTLS(m *Member) { m.TLS, m.Info.PrimaryPort = true, redis.PortTLS }

func TestALinkIsEncryptedWhereBothCan(t *testing.T) {
	for name, c := range map[string]struct {
		facts Facts
		want  []bool // TLS of each step that makes a member follow
	}{
		"both, over TLS":           {facts(record(), member(0, primary(1), encrypted), member(1, replica(0), overTLS)), nil},
		"both, without":            {facts(record(), member(0, primary(1), encrypted), member(1, replica(0), encrypted)), []bool{true}},
		"the primary cannot":       {facts(record(), member(0, primary(1)), member(1, replica(0), encrypted)), nil},
		"the replica cannot":       {facts(record(), member(0, primary(1), encrypted), member(1, replica(0))), nil},
		"the replica cannot, does": {facts(record(), member(0, primary(1), encrypted), member(1, replica(0), func(m *Member) { m.Info.PrimaryPort = redis.PortTLS })), []bool{false}},
		"a new one":                {facts(record(), member(0, primary(), encrypted), member(1, booted, encrypted)), []bool{true}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []bool
			for _, step := range Next(c.facts).Steps {
				if follow, ok := step.(Follow); ok {
					got = append(got, follow.TLS)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("told to follow with TLS %v, want %v", got, c.want)
			}
		})
	}
}

func TestALinkOverTLSIsNoDetachment(t *testing.T) {
	m := member(1, replica(0), overTLS, linkDown(1))
	if m.detached() {
		t.Error("its link may be connected again at any moment")
	}
}
