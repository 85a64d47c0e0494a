package main

import (
	"strings"
	"testing"
)

func TestOneFailureFailsAndIsShown(t *testing.T) {
	const pass = `{"spec":{"labels":{"suite":"olm"}},"status":{"results":[{"name":"a","state":"pass"}]}}`
	const fail = `{"status":{"results":[{"name":"b","state":"fail","errors":["it broke"]}]}}`
	for name, c := range map[string]struct{ in, wantErr, wantOut string }{
		"all pass": {`{"items":[` + pass + `]}`, "", "pass  olm"},
		"one":      {`{"items":[` + pass + "," + fail + `]}`, "1 of 2 tests failed", "it broke"},
		"none":     {`{"items":[]}`, "no test ran", ""},
		"no JSON":  {`error`, "read the output", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			err := summarise(strings.NewReader(c.in), &out)
			if (err == nil) != (c.wantErr == "") || err != nil && !strings.Contains(err.Error(), c.wantErr) {
				t.Errorf("got error %v, want %q", err, c.wantErr)
			}
			if !strings.Contains(out.String(), c.wantOut) {
				t.Errorf("printed %q, want %q", out.String(), c.wantOut)
			}
		})
	}
}
