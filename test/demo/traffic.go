package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"seang.org/operator/internal/naming"
	"seang.org/operator/test/e2e/oracle"
)

// trafficCommand makes this program the writer that runs in the client pod.
const trafficCommand = "traffic"

// answer is a line that the writer prints for each line that it reads, and at
// the end of its input.
type answer struct {
	// Gap is the longest time without an acknowledged write since the last line.
	Gap    time.Duration  `json:"gap"`
	Report *oracle.Report `json:"report,omitempty"`
	Error  string         `json:"error,omitempty"`
}

// runTraffic reads a target as its first line, writes until in ends, and then
// verifies.
func runTraffic(ctx context.Context, in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	var target oracle.Target
	if !lines.Scan() {
		return fmt.Errorf("read the target: %w", orEOF(lines.Err()))
	}
	if err := json.Unmarshal(lines.Bytes(), &target); err != nil {
		return fmt.Errorf("read the target: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("name the keys: %w", err)
	}
	options := oracle.Options{Name: fmt.Sprintf("%s:%d", host, os.Getpid()), Plain: 2, Confirming: 2, Pace: time.Millisecond}
	o := oracle.Start(ctx, target, options)
	encoder := json.NewEncoder(out)
	for lines.Scan() {
		if err := o.Await(ctx, options.Plain+options.Confirming); err != nil {
			return encoder.Encode(answer{Error: err.Error()})
		}
		if err := encoder.Encode(answer{Gap: o.Mark()}); err != nil {
			return fmt.Errorf("answer: %w", err)
		}
	}
	report, err := o.Verify(ctx)
	if err != nil {
		return encoder.Encode(answer{Error: err.Error()})
	}
	return encoder.Encode(answer{Gap: o.Mark(), Report: &report})
}

// traffic is the writer as seen from outside of its pod.
type traffic struct {
	stdin   *io.PipeWriter
	answers *json.Decoder
}

// startTraffic starts the writer in the client pod, and returns when it writes.
func (d *demo) startTraffic(ctx context.Context) (*traffic, error) {
	password, err := d.password(ctx, d.memory)
	if err != nil {
		return nil, err
	}
	target := oracle.Target{Username: naming.UserDefault, Password: password,
		Address: fmt.Sprintf("%s:%d", naming.PrimaryService(d.memory.Name), naming.PortRedis)}
	stdin, in := io.Pipe()
	out, stdout := io.Pipe()
	t := &traffic{stdin: in, answers: json.NewDecoder(out)}
	go func() {
		err := d.api.Exec(ctx, d.pod, stdin, stdout, programInPod, trafficCommand)
		_ = stdout.CloseWithError(fmt.Errorf("the writer in the client pod ended: %w", orEOF(err)))
	}()
	if err := json.NewEncoder(in).Encode(target); err != nil { //nolint:gosec // Goes to the standard input of a pod of the demo, over TLS.
		return nil, fmt.Errorf("tell the writer where to write: %w", err)
	}
	if _, err := t.mark(); err != nil {
		return nil, err
	}
	d.screen.line("4 clients write through %s: 2 with WAIT 1 after each write, 2 without", naming.PrimaryService(d.memory.Name))
	return t, nil
}

func orEOF(err error) error {
	if err == nil {
		return io.EOF
	}
	return err
}

// mark returns the longest pause of writes since the last mark. It returns
// after a few more writes were acknowledged.
func (t *traffic) mark() (time.Duration, error) {
	if _, err := io.WriteString(t.stdin, "mark\n"); err != nil {
		return 0, fmt.Errorf("ask the writer: %w", err)
	}
	a, err := t.answer()
	return a.Gap, err
}

// finish ends the writes and returns what became of them.
func (t *traffic) finish() (oracle.Report, error) {
	if err := t.stdin.Close(); err != nil {
		return oracle.Report{}, fmt.Errorf("stop the writer: %w", err)
	}
	a, err := t.answer()
	if err != nil {
		return oracle.Report{}, err
	}
	if a.Report == nil {
		return oracle.Report{}, fmt.Errorf("the writer gave no report")
	}
	return *a.Report, nil
}

func (t *traffic) answer() (answer, error) {
	var a answer
	if err := t.answers.Decode(&a); err != nil {
		return a, fmt.Errorf("hear from the writer: %w", err)
	}
	if a.Error != "" {
		return a, fmt.Errorf("the writer in the client pod: %s", a.Error)
	}
	return a, nil
}

// showReport adds what became of the writes to the summary.
func (d *demo) showReport(of string, r oracle.Report) {
	d.screen.line("read back: %d of %d confirmed writes are gone, %d of %d unconfirmed ones", r.LostConfirmed, r.Confirmed, r.LostUnconfirmed, r.Unconfirmed)
	d.screen.result(of+": writes confirmed by WAIT 1", "%d, lost %d", r.Confirmed, r.LostConfirmed)
	d.screen.result(of+": writes acknowledged only", "%d, lost %d", r.Unconfirmed, r.LostUnconfirmed)
}
