package lifecycle

import (
	"slices"
	"testing"

	"seang.org/operator/test/e2e/audit"
)

func TestWritesAreHeldToTheAnnouncement(t *testing.T) {
	seen := Seen{Children: []audit.Request{
		{Resource: "services", Name: "a-primary"}, {Resource: "services", Name: "a-replicas"},
		{Resource: "configmaps", Name: "a-config"}, {Resource: "services", Name: "a-primary"},
	}}
	var names []string
	for _, r := range seen.Unannounced("services", "secrets") {
		names = append(names, r.Resource+" "+r.Name)
	}
	if want := []string{"configmaps a-config", "services a-primary"}; !slices.Equal(names, want) {
		t.Errorf("not announced are %v, want %v: another resource, and a second write", names, want)
	}
	if got := seen.Unwritten("services", "secrets"); !slices.Equal(got, []string{"secrets"}) {
		t.Errorf("announced and not written are %v, want secrets", got)
	}
}
