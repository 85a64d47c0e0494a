package controllers

import (
	"fmt"
	"strings"
	"time"
)

// How kube-proxy follows a change of a Service: after about a tenth of a second
// (measured: 115 to 231 ms), but not within a second after it followed another (its
// minSyncPeriod).
const (
	proxyLatency  = 250 * time.Millisecond
	proxyInterval = time.Second
	proxyIdle     = proxyInterval + 2*proxyLatency
)

// proxies is what is known of kube-proxy: when it had something to follow, and when it
// has followed.
type proxies struct {
	endpoints    string
	changed, due time.Time
}

// note takes down what the Services of the cluster lead to.
func (p *proxies) note(now time.Time, endpoints string) {
	if p.endpoints == endpoints {
		return
	}
	p.due = now.Add(proxyLatency)
	if !p.idle(now) {
		p.due = p.due.Add(proxyInterval)
	}
	p.endpoints, p.changed = endpoints, now
}

// idle says that kube-proxy can follow the next change at once. Before the first look
// nothing is known.
func (p *proxies) idle(now time.Time) bool {
	return !p.changed.IsZero() && now.Sub(p.changed) >= proxyIdle
}

func (p *proxies) followed(now time.Time) bool { return !now.Before(p.due) }

// endpoints is all that the Services of the cluster lead to.
func (s *scope) endpoints() string {
	var b strings.Builder
	b.WriteString(s.facts.Service)
	for i := range s.facts.Members {
		m := &s.facts.Members[i]
		fmt.Fprint(&b, " ", m.PodUID, m.IP, m.Leaving, m.Role)
	}
	return b.String()
}
