// Package redis is the vocabulary of replication, and the parser of what Redis
// says of itself.
package redis

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Ports of every member: without TLS, and with it. Either may be closed.
const (
	Port    = 6379
	PortTLS = 6380
)

// PortOf is the port with TLS, or without.
func PortOf(secure bool) int {
	if secure {
		return PortTLS
	}
	return Port
}

// Role is what a process believes to be.
type Role string

// Roles.
const (
	RolePrimary Role = "primary"
	RoleReplica Role = "replica"
)

// ReplicationID names a history: 40 hexadecimal digits.
type ReplicationID string

// ReplicaOnline is the state of a replica that receives the stream.
const ReplicaOnline = "online"

// Info is what a process says of itself in INFO.
type Info struct {
	// Flavour is "redis" or "valkey".
	Flavour string
	// Version of the server, for example "8.0.2".
	Version string
	// RunID is new with each process.
	RunID string

	Role Role
	// PrimaryHost and PrimaryPort are the address that a replica follows.
	PrimaryHost string
	PrimaryPort int
	// LinkUp says that a replica receives from its primary.
	LinkUp bool
	// LinkDownSeconds since the link was lost; 0 while it is up, -1 if it never was.
	LinkDownSeconds int64

	ReplicationID ReplicationID
	// SecondaryID is the history that this one continues, up to BranchedAt.
	SecondaryID ReplicationID
	// BranchedAt is the offset in bytes of the first byte that the history of
	// SecondaryID does not have; -1 without one.
	BranchedAt int64
	// Offset in bytes: written as primary, applied as replica.
	Offset int64
	// MinReplicas without which the process refuses writes. INFO tells only that it is
	// not 0: the parser gives 1.
	MinReplicas int
	// Replicas as a primary sees them.
	Replicas []Replica

	// Loading says that the data is being loaded from disk, or copied from the
	// primary into memory.
	Loading bool
	// Keys of all databases.
	Keys int64
	// UsedMemory and MaxMemory in bytes.
	UsedMemory, MaxMemory int64
	// AppendOnly says that writes go to an append-only file.
	AppendOnly bool
	// Rewriting says that the append-only file is being written anew, or is about to.
	Rewriting bool
	// Saving says that a snapshot is being written.
	Saving bool
	// SaveFailed says that the last snapshot or append-only write failed.
	SaveFailed bool
}

// Replica is a replica as its primary sees it.
type Replica struct {
	IP    string
	State string
	// Offset in bytes that it acknowledged last.
	Offset int64
	// Lag in seconds since that acknowledgement.
	Lag int64
}

// Replica returns what the primary says of the replica at an address, or nil. Of
// two, one is the connection of a process that ended: the one that is less far
// counts.
func (i *Info) Replica(ip string) *Replica {
	var found *Replica
	for n := range i.Replicas {
		if r := &i.Replicas[n]; r.IP == ip && (found == nil || r.Offset < found.Offset) {
			found = r
		}
	}
	return found
}

// Has says that the process has the whole history of the other.
func (i *Info) Has(other *Info) bool {
	return i.ReplicationID == other.ReplicationID && i.Offset >= other.Offset
}

// ParseInfo reads the reply of INFO. Lines it does not know are ignored; a
// reply without a role, or with a malformed number, is an error.
func ParseInfo(reply string) (Info, error) {
	p := parser{}
	for line := range strings.Lines(reply) {
		if name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok {
			p.field(name, value)
		}
	}
	switch {
	case p.err != nil:
		return Info{}, p.err
	case p.info.Role == "":
		return Info{}, fmt.Errorf("parse INFO: it tells no role")
	case p.info.Role == RoleReplica && p.applied > 0:
		p.info.Offset = p.applied
	}
	if p.info.Flavour == "" {
		p.info.Flavour = "redis"
	}
	return p.info, nil
}

type parser struct {
	info    Info
	applied int64
	err     error
}

func (p *parser) field(name, value string) {
	if set, ok := fields[name]; ok {
		set(p, value)
		return
	}
	switch {
	case strings.HasPrefix(name, "slave") && strings.Contains(value, "offset="):
		p.info.Replicas = append(p.info.Replicas, p.replica(value))
	case strings.HasPrefix(name, "db") && strings.HasPrefix(value, "keys="):
		keys, _, _ := strings.Cut(strings.TrimPrefix(value, "keys="), ",")
		p.info.Keys += p.within(name, keys, math.MaxInt64-p.info.Keys)
	}
}

// fields that are read, by the name Redis gives them.
var fields = map[string]func(*parser, string){
	"redis_version": func(p *parser, v string) {
		if p.info.Version == "" {
			p.info.Version = v
		}
	},
	"valkey_version":                 func(p *parser, v string) { p.info.Flavour, p.info.Version = "valkey", v },
	"run_id":                         func(p *parser, v string) { p.info.RunID = v },
	"role":                           func(p *parser, v string) { p.info.Role = role(v) },
	"master_host":                    func(p *parser, v string) { p.info.PrimaryHost = v },
	"master_port":                    func(p *parser, v string) { p.info.PrimaryPort = int(p.within("master_port", v, math.MaxUint16)) },
	"master_link_status":             func(p *parser, v string) { p.info.LinkUp = v == "up" },
	"master_link_down_since_seconds": func(p *parser, v string) { p.info.LinkDownSeconds = p.number("master_link_down_since_seconds", v) },
	"master_replid":                  func(p *parser, v string) { p.info.ReplicationID = replicationID(v) },
	"master_replid2":                 func(p *parser, v string) { p.info.SecondaryID = replicationID(v) },
	"second_repl_offset":             func(p *parser, v string) { p.info.BranchedAt = p.number("second_repl_offset", v) },
	"master_repl_offset":             func(p *parser, v string) { p.info.Offset = p.within("master_repl_offset", v, math.MaxInt64) },
	"slave_repl_offset":              func(p *parser, v string) { p.applied = p.within("slave_repl_offset", v, math.MaxInt64) },
	"min_slaves_good_slaves":         func(p *parser, _ string) { p.info.MinReplicas = 1 },
	"loading":                        func(p *parser, v string) { p.info.Loading = p.info.Loading || v == "1" },
	"async_loading":                  func(p *parser, v string) { p.info.Loading = p.info.Loading || v == "1" },
	"used_memory":                    func(p *parser, v string) { p.info.UsedMemory = p.number("used_memory", v) },
	"maxmemory":                      func(p *parser, v string) { p.info.MaxMemory = p.number("maxmemory", v) },
	"aof_rewrite_in_progress":        func(p *parser, v string) { p.info.Rewriting = p.info.Rewriting || v == "1" },
	"aof_rewrite_scheduled":          func(p *parser, v string) { p.info.Rewriting = p.info.Rewriting || v == "1" },
	"aof_enabled":                    func(p *parser, v string) { p.info.AppendOnly = v == "1" },
	"rdb_bgsave_in_progress":         func(p *parser, v string) { p.info.Saving = v == "1" },
	"rdb_last_bgsave_status":         func(p *parser, v string) { p.info.SaveFailed = p.info.SaveFailed || v != "ok" },
	"aof_last_write_status":          func(p *parser, v string) { p.info.SaveFailed = p.info.SaveFailed || v != "ok" },
}

func role(value string) Role {
	switch value {
	case "master":
		return RolePrimary
	case "slave":
		return RoleReplica
	}
	return ""
}

// replicationID drops the zeros that stand for none.
func replicationID(value string) ReplicationID {
	if strings.Trim(value, "0") == "" {
		return ""
	}
	return ReplicationID(value)
}

// replica reads ip=…,port=…,state=…,offset=…,lag=… .
func (p *parser) replica(value string) Replica {
	replica := Replica{}
	for pair := range strings.SplitSeq(value, ",") {
		name, value, _ := strings.Cut(pair, "=")
		switch name {
		case "ip":
			replica.IP = value
		case "state":
			replica.State = value
		case "offset":
			replica.Offset = p.within(name, value, math.MaxInt64)
		case "lag":
			replica.Lag = p.number(name, value)
		}
	}
	return replica
}

func (p *parser) number(name, value string) int64 {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil && p.err == nil {
		p.err = fmt.Errorf("parse INFO: %s is not a number: %q", name, value)
	}
	return n
}

// within is a number from 0 to limit.
func (p *parser) within(name, value string, limit int64) int64 {
	n := p.number(name, value)
	if (n < 0 || n > limit) && p.err == nil {
		p.err = fmt.Errorf("parse INFO: %s is out of range: %q", name, value)
	}
	return n
}
