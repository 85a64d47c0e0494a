package versions

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
)

func TestJudge(t *testing.T) {
	for text, want := range map[string]struct{ unsupported, vulnerable string }{
		"redis 7.0.15":  {vulnerable: "CVE-2025-49844"},
		"redis 7.2.10":  {vulnerable: "fixed in 6.2.20, 7.2.11"},
		"redis 7.2.11":  {},
		"redis 8.0.2":   {vulnerable: "unless its maker brought the fixes back"},
		"redis 8.0.4":   {},
		"redis 8.1.0":   {vulnerable: "CVE-2025-49844"},
		"redis 8.4.0":   {},
		"redis 10.0.0":  {},
		"redis 6.2.20":  {unsupported: "older than 7.0"},
		"valkey 8.1.1":  {vulnerable: "8.1.4"},
		"valkey 8.1.4":  {},
		"valkey 9.0.0":  {},
		"valkey 7.2.11": {unsupported: "older than 8.0"},
		"keydb 6.3.4":   {unsupported: "not known"},
		"redis unknown": {unsupported: "not known"},
		"redis 8.0.4-1": {},
	} {
		flavour, number, _ := strings.Cut(text, " ")
		got := Judge(flavour, number)
		for _, pair := range [][2]string{{got.Unsupported, want.unsupported}, {got.Vulnerable, want.vulnerable}} {
			if (pair[0] == "") != (pair[1] == "") || !strings.Contains(pair[0], pair[1]) {
				t.Errorf("%s: got %q, want %q", text, pair[0], pair[1])
			}
		}
	}
}

func TestTheListIsWhole(t *testing.T) {
	for _, f := range known.Flaws {
		if f.ID == "" || f.What == "" || !strings.HasPrefix(f.Source, "https://") {
			t.Errorf("%+v says too little", f)
		}
		for flavour := range known.Oldest {
			if len(f.Fixed[flavour]) == 0 {
				t.Errorf("%s does not say where %s has the fix", f.ID, flavour)
			}
		}
		for flavour, fixed := range f.Fixed {
			for _, text := range fixed {
				if _, err := version.ParseGeneric(text); err != nil {
					t.Errorf("%s of %s: %v", f.ID, flavour, err)
				}
			}
		}
	}
	for _, line := range Tested() {
		flavour, number, _ := strings.Cut(line, "-")
		if v := Judge(flavour, number+".0"); v.Unsupported != "" {
			t.Errorf("tested, and %s", v.Unsupported)
		}
	}
}

func TestCannotLoad(t *testing.T) {
	for name, c := range map[string]struct {
		by, of Server
		want   string
	}{
		"an upgrade":             {Server{"redis", "8.0.4"}, Server{"redis", "7.0.15"}, ""},
		"the same":               {Server{"redis", "8.0.4"}, Server{"redis", "8.0.1"}, ""},
		"a downgrade":            {Server{"redis", "7.0.15"}, Server{"redis", "8.0.4"}, "redis 7.0.15 reads RDB files up to format 10, and redis 8.0.4 writes format 12"},
		"to Redis of one format": {Server{"redis", "8.0.4"}, Server{"valkey", "8.1.4"}, ""},
		"to an older Redis":      {Server{"redis", "7.0.15"}, Server{"valkey", "8.1.4"}, "format 11"},
		"to Valkey":              {Server{"valkey", "8.1.4"}, Server{"redis", "7.0.15"}, ""},
		"to Valkey, too late":    {Server{"valkey", "8.1.4"}, Server{"redis", "8.0.4"}, "format 12"},
		"to a newer Valkey":      {Server{"valkey", "9.0.1"}, Server{"redis", "8.0.4"}, "does not read the RDB format 12"},
		"from a newer Valkey":    {Server{"redis", "8.0.4"}, Server{"valkey", "9.0.1"}, "format 80"},
		"what is not known":      {Server{"redis", "7.0.15"}, Server{"redis", "99.0.0"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.by.CannotLoad(c.of)
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
