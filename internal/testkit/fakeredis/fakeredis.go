// Package fakeredis plays Redis members at the wire, thousands in one process,
// for what measures the operator and not Redis. A member is what a settled one
// is to the operator: it logs users in by its ACL file, changes its role and its
// directives as it is told, and says so in INFO. It holds no data and its
// replicas are in sync at once; all that depends on more is shown with real
// servers.
package fakeredis

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"

	"github.com/tidwall/redcon"

	"seang.org/operator/internal/redis"
)

// Fleet is a set of members that can follow each other.
type Fleet struct {
	mu        sync.Mutex
	members   map[string]*member // by IP
	listeners []net.Listener
}

// NewFleet returns a fleet without members.
func NewFleet() *Fleet { return &Fleet{members: map[string]*member{}} }

// maxMembers is how many addresses there are.
const maxMembers = 1 << 16

// address is a loopback address that no other part of testkit uses: real servers
// have those from 127.1 to 127.200.
func address(n int) string { return fmt.Sprintf("127.201.%d.%d", n>>8, n&0xff) }

// Boot starts a member that follows nobody, and returns its IP. Acl is the text
// of its ACL file and maxMemory its first maxmemory in bytes. Addresses that
// another process took are passed over.
func (f *Fleet) Boot(acl string, maxMemory int64) (string, error) {
	m := &member{fleet: f, users: users(acl), runID: identity(), id: identity(), host: nowhere, port: nowherePort,
		config: map[string]string{"maxmemory": strconv.FormatInt(maxMemory, 10), "min-replicas-to-write": "0",
			"min-replicas-max-lag": "2", "replica-serve-stale-data": "no"}}
	f.mu.Lock()
	defer f.mu.Unlock()
	for n := len(f.members) + 1; n < maxMembers; n++ {
		ip := address(n)
		if f.members[ip] != nil {
			continue
		}
		listener, err := net.Listen("tcp", net.JoinHostPort(ip, strconv.Itoa(redis.Port)))
		if err != nil {
			continue
		}
		m.ip = ip
		f.members[ip], f.listeners = m, append(f.listeners, listener)
		go func() { _ = redcon.Serve(listener, m.serve, nil, nil) }() // Close ends it.
		return ip, nil
	}
	return "", errors.New("start a fake Redis: no loopback address is free")
}

// Close ends all members.
func (f *Fleet) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var failed error
	for _, listener := range f.listeners {
		failed = errors.Join(failed, listener.Close())
	}
	f.members, f.listeners = map[string]*member{}, nil
	return failed
}

// identity is a run ID or a replication ID: 40 hexadecimal digits.
func identity() string {
	random := make([]byte, 20)
	_, _ = rand.Read(random) // Never fails.
	return fmt.Sprintf("%x", random)
}
