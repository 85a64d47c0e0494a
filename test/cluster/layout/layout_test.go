package layout

import (
	"strings"
	"testing"
)

func TestNewRefusesWhatCannotBeAName(t *testing.T) {
	for testName, tc := range map[string]struct {
		name    string
		nodes   int
		wantErr bool
	}{
		"a plain name":                      {"default", 3, false},
		"the longest name":                  {strings.Repeat("a", 16), 3, false},
		"a name with a dash":                {"a-b", 1, false},
		"no nodes means the default":        {"a", 0, false},
		"a name that is too long":           {strings.Repeat("a", 17), 3, true},
		"an empty name":                     {"", 3, true},
		"a dot would begin another's names": {"a.b", 3, true},
		"a path":                            {"../a", 3, true},
		"upper case":                        {"A", 3, true},
		"a dash at the end":                 {"a-", 3, true},
		"fewer than no nodes":               {"a", -1, true},
		"more nodes than addresses":         {"a", MaxNodes + 1, true},
	} {
		t.Run(testName, func(t *testing.T) {
			_, err := New(tc.name, tc.nodes)
			if (err != nil) != tc.wantErr {
				t.Errorf("error %v, want one: %t", err, tc.wantErr)
			}
		})
	}
}

func TestShimDirFitsASocket(t *testing.T) {
	const longest = 42 // containerd's bound
	l := Layout{Name: strings.Repeat("a", 16), Nodes: MaxNodes}
	if dir := l.Node(MaxNodes).ShimDir(); len(dir) > longest {
		t.Errorf("%s has %d bytes, want at most %d", dir, len(dir), longest)
	}
}

func TestNodesHaveAddressesOfTheirOwn(t *testing.T) {
	l := Layout{Name: "a", Nodes: MaxNodes}
	seen := map[string]string{ControlPlaneAddress: "the control plane"}
	for _, n := range l.AllNodes() {
		for _, address := range []string{n.Address(), n.PodSubnet(), n.Namespace(), n.Zone()} {
			if other, ok := seen[address]; ok {
				t.Errorf("%s is that of %s and of %s", address, other, n.Name())
			}
			seen[address] = n.Name()
		}
	}
}
