package controllers

import (
	"testing"
	"time"
)

func TestProxies(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(ms int) time.Time { return noon.Add(time.Duration(ms) * time.Millisecond) }
	p := proxies{}
	for _, step := range []struct {
		ms             int
		endpoints      string
		idle, followed bool
	}{
		{0, "a", false, false},
		{400, "a", false, true},
		{1400, "a", true, true},
		{1500, "b", false, false}, // It begins at once,
		{1600, "c", false, false}, // and with this a second later,
		{1900, "c", false, false},
		{2900, "c", false, true},
		{3900, "c", true, true},
		{3950, "d", false, false},
		{4350, "d", false, true},
	} {
		p.note(at(step.ms), step.endpoints)
		if p.idle(at(step.ms)) != step.idle || p.followed(at(step.ms)) != step.followed {
			t.Errorf("%d ms after the first: idle %t, followed %t; want %t, %t", step.ms, p.idle(at(step.ms)), p.followed(at(step.ms)), step.idle, step.followed)
		}
	}
}
