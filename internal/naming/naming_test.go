package naming

import "testing"

func TestOrdinal(t *testing.T) {
	for name, c := range map[string]struct {
		cluster, pod string
		want         int
		wantOK       bool
	}{
		"a pod of the cluster":                           {"cache", "cache-2", 2, true},
		"more than one digit":                            {"cache", "cache-10", 10, true},
		"a cluster whose name ends like a pod":           {"cache-1", "cache-1-0", 0, true},
		"a pod of a cluster whose name begins with ours": {"cache", "cache-1-0", 0, false},
		"another object of ours":                         {"cache", "cache-primary", 0, false},
		"no ordinal":                                     {"cache", "cache-", 0, false},
		"the cluster itself":                             {"cache", "cache", 0, false},
		"a leading zero is another name":                 {"cache", "cache-01", 0, false},
		"a sign is another name":                         {"cache", "cache-+1", 0, false},
		"a negative number":                              {"cache", "cache--1", 0, false},
		"a number that overflows":                        {"cache", "cache-99999999999999999999", 0, false},
		"another cluster":                                {"cache", "store-0", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := Ordinal(c.cluster, c.pod)
			if ok != c.wantOK || (ok && got != c.want) {
				t.Errorf("Ordinal(%q, %q) is %d, %t; want %d, %t", c.cluster, c.pod, got, ok, c.want, c.wantOK)
			}
		})
	}
}

func TestClusterOf(t *testing.T) {
	for name, c := range map[string]struct {
		pod, want string
		wantOK    bool
	}{
		"a pod":                        {"cache-0", "cache", true},
		"a cluster's name with dashes": {"my-cache-1-12", "my-cache-1", true},
		"no dash":                      {"cache", "", false},
		"no cluster":                   {"-0", "", false},
		"no ordinal":                   {"cache-primary", "", false},
		"a leading zero":               {"cache-00", "", false},
		"nothing":                      {"", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := ClusterOf(c.pod)
			if ok != c.wantOK || (ok && got != c.want) {
				t.Errorf("ClusterOf(%q) is %q, %t; want %q, %t", c.pod, got, ok, c.want, c.wantOK)
			}
		})
	}
}

func TestAClaimNamesItsPod(t *testing.T) {
	pod, ok := ClaimedBy(Claim("cache", 3))
	if !ok || pod != Pod("cache", 3) {
		t.Errorf("ClaimedBy is %q, %t; want %q", pod, ok, Pod("cache", 3))
	}
	if pod, ok := ClaimedBy("other-cache-3"); ok {
		t.Errorf("a claim of others is said to be that of %q", pod)
	}
}
