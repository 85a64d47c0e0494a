package controllers

import (
	"fmt"
	"strings"
	"time"
)

// How kube-proxy follows a change of a Service: a second after it began to follow the
// one before (its minSyncPeriod) at the earliest, and then within about half a second
// (measured: 108 to 483 ms).
const (
	proxyInterval = time.Second
	proxyLatency  = 400 * time.Millisecond
)

// proxies is what is known of kube-proxy: which endpoints it has to follow, and when it
// began to, or will.
type proxies struct {
	endpoints string
	began     time.Time
}

// note takes down what the Services of the cluster lead to.
func (p *proxies) note(now time.Time, endpoints string) {
	if p.endpoints == endpoints {
		return
	}
	p.endpoints = endpoints
	if next := p.began.Add(proxyInterval); next.After(now) {
		p.began = next
	} else {
		p.began = now
	}
}

// idle says that kube-proxy can follow the next change at once.
func (p *proxies) idle(now time.Time) bool {
	return now.Sub(p.began) >= proxyInterval+proxyLatency
}

// followed says that kube-proxy had the time to follow the last change.
func (p *proxies) followed(now time.Time) bool {
	return now.Sub(p.began) >= proxyLatency
}

// endpoints is all that the Services of the cluster lead to.
func (s *scope) endpoints() string {
	var b strings.Builder
	b.WriteString(s.facts.Service + " " + string(s.ports()))
	for i := range s.facts.Members {
		m := &s.facts.Members[i]
		fmt.Fprint(&b, " ", m.PodUID, m.IP, m.Leaving, m.Role)
	}
	return b.String()
}
