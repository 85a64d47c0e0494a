package conf

import (
	"slices"
	"testing"
	"time"
)

func TestNextHashes(t *testing.T) {
	began := time.Date(2026, 12, 3, 0, 0, 0, 0, time.UTC)
	at := func(seconds int, settled bool) Progress {
		return Progress{Now: began.Add(time.Duration(seconds) * time.Second), Overlap: time.Minute, Settled: settled}
	}
	for name, c := range map[string]struct {
		have         []string
		wanted       string
		p            Progress
		want         []string
		began, ended bool
	}{
		"a new user has one password":                    {nil, "a", at(0, true), []string{"a"}, false, false},
		"nothing changes":                                {[]string{"a"}, "a", at(3600, true), []string{"a"}, false, false},
		"a new password comes beside the old":            {[]string{"a"}, "b", at(0, true), []string{"b", "a"}, true, false},
		"and stays there until the overlap is over":      {[]string{"b", "a"}, "b", at(59, true), []string{"b", "a"}, false, false},
		"and while a member does not have it":            {[]string{"b", "a"}, "b", at(3600, false), []string{"b", "a"}, false, false},
		"then the old one goes":                          {[]string{"b", "a"}, "b", at(60, true), []string{"b"}, false, true},
		"another one before that drops none":             {[]string{"b", "a"}, "c", at(3600, true), []string{"c", "b", "a"}, true, false},
		"one that is taken back is the new one":          {[]string{"b", "a"}, "a", at(3600, true), []string{"a", "b"}, true, false},
		"of many changes in a row the oldest go":         {[]string{"d", "c", "b", "a"}, "e", at(0, true), []string{"e", "d", "c", "b"}, true, false},
		"without a member nothing is known to be behind": {[]string{"b", "a"}, "b", Progress{Now: began, Settled: true}, []string{"b"}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(c.have)
			got, isNew, over := NextHashes(c.have, c.wanted, began, c.p)
			if !slices.Equal(got, c.want) || isNew != c.began || over != c.ended {
				t.Errorf("got %v, began %t, ended %t", got, isNew, over)
			}
			if !slices.Equal(before, c.have) {
				t.Errorf("it changed what it was given to %v", c.have)
			}
		})
	}
}

func TestRotationsAreReadAsTheyWereWritten(t *testing.T) {
	r := Rotations{RotationSystem: {Since: time.Date(2026, 12, 3, 1, 2, 3, 0, time.UTC)}, "app": {Since: time.Unix(0, 0).UTC(), Pending: `a"b\c`}}
	got := ParseRotations(r.Encode())
	if len(got) != 2 || got["app"] != r["app"] || got[RotationSystem] != r[RotationSystem] {
		t.Errorf("got %v, want %v", got, r)
	}
	for _, text := range []string{"", "null", "[]", "{", `{"a":1}`} {
		if got := ParseRotations([]byte(text)); got == nil || len(got) != 0 {
			t.Errorf("%q is read as %v", text, got)
		}
	}
	if text := (Rotations{}).Encode(); text != nil {
		t.Errorf("none is written as %s", text)
	}
}
