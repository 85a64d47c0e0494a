package build

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// redrawInterval keeps the line steady to the eye.
const redrawInterval = 200 * time.Millisecond

// progress shows the state of all builds on one line of a terminal. Elsewhere
// it prints a line when a build begins and when it ends.
type progress struct {
	out      io.Writer
	terminal bool
	began    time.Time
	done     chan struct{}
	stopped  sync.WaitGroup

	mu     sync.Mutex
	order  []string
	states map[string]string
	counts map[string]int
}

func newProgress(out io.Writer, sources []source) *progress {
	p := &progress{
		out: out, began: time.Now(), done: make(chan struct{}), //nolint:forbidigo // shown to a human
		states: map[string]string{}, counts: map[string]int{},
	}
	if file, ok := out.(*os.File); ok {
		p.terminal = term.IsTerminal(int(file.Fd()))
	}
	for _, s := range sources {
		p.order = append(p.order, s.Name)
		p.states[s.Name] = "waiting"
		if !p.terminal {
			_, _ = fmt.Fprintf(out, "build %s %s\n", s.Name, s.version)
		}
	}
	if p.terminal {
		p.stopped.Go(p.redraw)
	}
	return p
}

func (p *progress) redraw() {
	ticker := time.NewTicker(redrawInterval)
	defer ticker.Stop()
	for {
		select {
		case <-p.done:
			_, _ = fmt.Fprint(p.out, "\r\033[K")
			return
		case <-ticker.C:
			_, _ = fmt.Fprintf(p.out, "\r\033[K%s", p.line())
		}
	}
}

func (p *progress) line() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	parts := []string{"build " + p.elapsed()}
	for _, name := range p.order {
		parts = append(parts, name+" "+p.states[name])
	}
	return strings.Join(parts, " · ")
}

func (p *progress) elapsed() string {
	return time.Since(p.began).Round(time.Second).String() //nolint:forbidigo // shown to a human
}

func (p *progress) compiled(name, _ string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[name]++
	p.states[name] = fmt.Sprintf("%d packages", p.counts[name])
}

func (p *progress) finished(name string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.states[name] = "done"
	if err != nil {
		p.states[name] = "failed"
	}
	if !p.terminal {
		_, _ = fmt.Fprintf(p.out, "build %s: %s after %s, %d packages compiled\n", name, p.states[name], p.elapsed(), p.counts[name])
	}
}

func (p *progress) stop() {
	close(p.done)
	p.stopped.Wait()
}
