package simulation

import (
	"strings"
	"testing"

	"seang.org/operator/internal/testkit/golden"
)

// TestTheLifeOfACluster shows what the operator does, step by step, from nothing
// through a failover to the end of a scale-in.
func TestTheLifeOfACluster(t *testing.T) {
	w := newWorld(1, true)
	w.healing, w.persistent, w.wanted, w.size = true, false, 3, 3 // No failures but those below.
	w.pods, w.processes, w.trace = map[string]*pod{}, nil, nil
	w.createPods()
	o := &Operator{world: w}
	o.restart()
	for _, event := range []struct {
		what string
		do   func()
	}{
		{"a new cluster of three", func() {}},
		{"the primary is killed", func() { w.kill(w.last) }},
		{"a member is added", func() { w.wanted = 4 }},
		{"two are removed", func() { w.wanted = 2 }},
	} {
		w.note("== %s", event.what)
		event.do()
		for {
			w.write(w.writable(), true)
			w.elapse(20)
			if d := o.Pass(); settled(d) && len(d.Waits) == 0 && len(w.pods) == w.wanted {
				break
			}
		}
		if w.violation != nil {
			t.Fatalf("%v\n%s", w.violation, w.Trace())
		}
	}
	var lines []string
	for _, line := range w.trace {
		if line = line[11:]; !strings.Contains(line, "stalls") {
			lines = append(lines, line)
		}
	}
	golden.Text(t, "life.txt", strings.Join(lines, "\n")+"\n")
}

// writable is the process that was promoted last, or any before the first was.
func (w *World) writable() *process {
	if w.last == nil {
		return w.processes[0]
	}
	return w.last
}
