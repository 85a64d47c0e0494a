package controllers_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/manager"
	"seang.org/operator/internal/testkit/apiserver"
)

// end is how an operator's write ends that was sent.
type end string

const (
	// crash: it is answered, and the operator does nothing any more.
	crash end = "the operator stops dead"
	// lost: it is done and the answer never comes; the operator goes on.
	lost end = "the answer is lost"
)

var (
	errDead = errors.New("this operator is dead")
	errLost = errors.New("the answer was lost")
)

// life is one operator, wired as in production, from its start to its death. Its
// writes are counted: requests that change something on the API server, and commands
// that change something on a Redis process.
type life struct {
	operator *manager.Operator
	cancel   context.CancelFunc
	ended    chan error
	died     chan struct{}
	// questions are INFO commands: each pass asks every member.
	questions atomic.Int64
	// deletions are requests to delete something that were granted.
	deletions atomic.Int64

	mu     sync.Mutex
	writes int
	at     int // the write that ends in how; 0 for none
	how    end
	conns  map[*countedConn]struct{}
}

// live starts an operator on the namespace, with an empty memory. It reads through stale
// if there is one.
func live(t *testing.T, server *apiserver.Server, namespace string, stale *staleClient) *life {
	t.Helper()
	l := &life{ended: make(chan error, 1), died: make(chan struct{}), conns: map[*countedConn]struct{}{}}
	config := rest.CopyConfig(server.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &countedTransport{life: l, next: next} })
	var err error
	if l.operator, err = manager.New(t.Context(), config, managerOptions(namespace)); err != nil {
		t.Fatalf("make the manager: %v", err)
	}
	l.operator.Reconciler.Members.Dial, l.operator.Reconciler.Members.Over = l.dial, l.over
	if stale != nil {
		stale.Client = l.operator.Reconciler.Client
		l.operator.Reconciler.Client = stale
	}
	ctx, cancel := context.WithCancel(t.Context())
	l.cancel = cancel
	go func() { l.ended <- l.operator.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		err := <-l.ended
		l.operator.Reconciler.Members.Close()
		if err != nil && !l.dead() {
			t.Errorf("the operator ended: %v", err)
		}
	})
	return l
}

// arm makes the k-th write from now on end so; 0 for none.
func (l *life) arm(k int, how end) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at, l.how = 0, how
	if k > 0 {
		l.at = l.writes + k
	}
}

// reached says that the write to end at was counted.
func (l *life) reached() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at > 0 && l.writes >= l.at
}

func (l *life) written() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writes
}

// count counts a write, and returns how it is to end; "" as usual.
func (l *life) count() end {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes++
	if l.writes == l.at {
		return l.how
	}
	return ""
}

func (l *life) dead() bool {
	select {
	case <-l.died:
		return true
	default:
		return false
	}
}

// die stops everything, as the end of a process does: its connections are closed by
// the kernel once what was sent is delivered.
func (l *life) die() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.died)
	l.cancel()
	for conn := range l.conns {
		conn.hangUp()
	}
}

// wake asks for a pass.
func (l *life) wake(cluster *v1alpha1.RedisCluster) func() {
	object := cluster.DeepCopy()
	return func() { l.operator.Reconciler.Wake <- event.TypedGenericEvent[*v1alpha1.RedisCluster]{Object: object} }
}

// idle makes passes and returns an error if one of them writes anything.
func (l *life) idle(cluster *v1alpha1.RedisCluster, members int) error {
	before := l.written()
	for range idlePasses {
		asked := l.questions.Load()
		l.wake(cluster)()
		for deadline := time.Now().Add(10 * time.Second); l.questions.Load() < asked+int64(members); time.Sleep(time.Millisecond) {
			if l.dead() || time.Now().After(deadline) {
				return errors.New("the operator makes no pass")
			}
		}
	}
	if after := l.written(); after > before {
		return fmt.Errorf("%d writes in %d passes", after-before, idlePasses)
	}
	return nil
}

// idlePasses are made once all is as asked, and must not write.
const idlePasses = 10

// countedTransport counts the requests of an operator that change something.
type countedTransport struct {
	life *life
	next http.RoundTripper
}

func (c *countedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if c.life.dead() {
		return nil, errDead
	}
	response, err := c.next.RoundTrip(request)
	if err != nil || !changesObjects(request) {
		return response, err
	}
	if deletes(request, response) {
		c.life.deletions.Add(1)
	}
	switch c.life.count() {
	case crash:
		c.life.die()
	case lost:
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		return nil, errLost
	}
	return response, err
}

func changesObjects(request *http.Request) bool {
	for _, aside := range []string{"/leases", "/events", "reviews"} {
		if strings.Contains(request.URL.Path, aside) {
			return false
		}
	}
	return request.Method != http.MethodGet && request.Method != http.MethodHead
}

func (l *life) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if l.dead() {
		return nil, errDead
	}
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

// over counts what is sent over a connection, inside of TLS.
func (l *life) over(conn net.Conn) net.Conn {
	counted := &countedConn{halfCloser: conn.(halfCloser), life: l}
	l.mu.Lock()
	l.conns[counted] = struct{}{}
	l.mu.Unlock()
	return counted
}

// halfCloser is a connection that can say that nothing more comes.
type halfCloser interface {
	net.Conn
	CloseWrite() error
}

// countedConn counts the commands of an operator that change something. The client
// library sends a command, and a transaction, in one write.
type countedConn struct {
	halfCloser
	life          *life
	inTransaction bool
	answerLost    atomic.Bool
}

// hangUp lets the peer read what was sent and see the end after it.
func (c *countedConn) hangUp() { _ = c.CloseWrite() }

func (c *countedConn) Write(b []byte) (int, error) {
	if c.life.dead() || c.answerLost.Load() {
		return 0, errDead
	}
	for sent := 0; sent < len(b); {
		words, size := command(b[sent:])
		sent += size
		if !c.changes(words) {
			continue
		}
		how := c.life.count()
		if how == "" {
			continue
		}
		n, err := c.halfCloser.Write(b[:sent])
		if err != nil {
			return n, err
		}
		if how == crash {
			c.life.die()
		} else {
			c.answerLost.Store(true)
			c.hangUp()
		}
		return len(b), nil
	}
	return c.halfCloser.Write(b)
}

func (c *countedConn) Read(b []byte) (int, error) {
	if c.answerLost.Load() {
		_, _ = io.Copy(io.Discard, c.halfCloser)
		return 0, errLost
	}
	n, err := c.halfCloser.Read(b)
	if c.answerLost.Load() {
		return 0, errLost
	}
	return n, err
}

// Close lets the peer have what was sent, even if its answer was not read.
func (c *countedConn) Close() error {
	c.life.mu.Lock()
	delete(c.life.conns, c)
	c.life.mu.Unlock()
	c.hangUp()
	_ = c.SetReadDeadline(time.Now().Add(time.Second))
	go func() {
		_, _ = io.Copy(io.Discard, c.halfCloser)
		_ = c.halfCloser.Close()
	}()
	return nil
}

// changes says that a command changes something; a transaction does at its end. To close
// the connections of earlier operators does not: every new connection does so.
func (c *countedConn) changes(words []string) bool {
	line := strings.ToUpper(strings.Join(words, " ")) + " "
	switch {
	case strings.HasPrefix(line, "MULTI "):
		c.inTransaction = true
	case strings.HasPrefix(line, "EXEC "):
		c.inTransaction = false
		return true
	case c.inTransaction:
	case strings.HasPrefix(line, "INFO "):
		c.life.questions.Add(1)
	default:
		for _, prefix := range []string{"REPLICAOF ", "CONFIG SET ", "CLIENT PAUSE ", "CLIENT UNPAUSE ", "CLIENT KILL TYPE ", "BGSAVE ", "ACL DELUSER "} {
			if strings.HasPrefix(line, prefix) {
				return true
			}
		}
	}
	return false
}

// command reads the first command of the protocol's form, an array of strings, and
// returns its words and its length; what is no command counts as one without words.
func command(b []byte) (words []string, size int) {
	number := func(mark byte) int {
		end := bytes.Index(b[size:], []byte("\r\n"))
		if end < 1 || b[size] != mark {
			return -1
		}
		n, err := strconv.Atoi(string(b[size+1 : size+end]))
		if err != nil {
			return -1
		}
		size += end + 2
		return n
	}
	for n := number('*'); n > 0; n-- {
		length := number('$')
		if length < 0 || size+length+2 > len(b) {
			return nil, len(b)
		}
		words = append(words, string(b[size:size+length]))
		size += length + 2
	}
	if words == nil {
		return nil, len(b)
	}
	return words, size
}
