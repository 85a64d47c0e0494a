package main

import (
	"testing"

	"seang.org/operator/catalog"
)

func TestTheEdgeAcrossChannelsIsTheNewest(t *testing.T) {
	candidate, both := []string{"candidate"}, []string{"candidate", "stable"}
	in := func(version string, channels []string) catalog.Release {
		return catalog.Release{Version: version, Channels: channels}
	}
	from, to, err := acrossChannels(catalog.Releases{in("0.1.0", candidate), in("0.2.0", both), in("0.3.0", candidate), in("0.4.0", both), in("0.5.0", candidate)})
	if err != nil || from != "0.3.0" || to != "0.4.0" {
		t.Errorf("got %s → %s, %v, want 0.3.0 → 0.4.0", from, to, err)
	}
	if from, to, err := acrossChannels(catalog.Releases{in("0.1.0", both), in("0.2.0", candidate)}); err == nil {
		t.Errorf("got %s → %s, want an error", from, to)
	}
}
