package fakeredis

import (
	_ "embed"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"seang.org/operator/internal/redis"
)

// version is that of the server which wrote info.txt.
const version = "8.0.2"

// constant has the lines of INFO that do not depend on the member: of a Redis
// 8.0, the sections server, memory and persistence.
//
//go:embed info.txt
var constant string

// offset of every member: nothing is ever written.
const offset = 1

// primary is the member that m follows, or nil.
func (m *member) primary() *member {
	if p := m.fleet.members[m.host]; p != nil && p.host == "" && m.port == strconv.Itoa(redis.Port) {
		return p
	}
	return nil
}

// replicas are the members that follow m, by address.
func (m *member) replicas() []string {
	var found []string
	for _, other := range m.fleet.members {
		if other.host == m.ip && other.primary() == m {
			found = append(found, other.ip)
		}
	}
	slices.SortFunc(found, func(a, b string) int { return slices.Compare(net.ParseIP(a), net.ParseIP(b)) })
	return found
}

// infoReply is the reply of INFO, as the verbatim string of RESP3 that Redis
// sends.
func (m *member) infoReply() []byte {
	if m.info == nil {
		text := strings.ReplaceAll(m.infoText(), "\n", "\r\n")
		m.info = fmt.Appendf(nil, "=%d\r\ntxt:%s\r\n", len("txt:")+len(text), text)
	}
	return m.info
}

func (m *member) infoText() string {
	var b strings.Builder
	line := func(format string, values ...any) { fmt.Fprintf(&b, format+"\n", values...) }
	b.WriteString(constant)
	line("run_id:%s", m.runID)
	line("maxmemory:%s", m.config["maxmemory"])
	line("")
	line("# Replication")
	id, secondary, branched := m.id, m.secondary, m.branched
	if m.host == "" {
		replicas := m.replicas()
		line("role:master\nconnected_slaves:%d", len(replicas))
		if m.config["min-replicas-to-write"] != "0" {
			line("min_slaves_good_slaves:%d", len(replicas))
		}
		for i, ip := range replicas {
			line("slave%d:ip=%s,port=%d,state=online,offset=%d,lag=0", i, ip, redis.Port, offset)
		}
	} else {
		line("role:slave\nmaster_host:%s\nmaster_port:%s", m.host, m.port)
		if p := m.primary(); p != nil {
			id, secondary, branched = p.id, p.secondary, p.branched
			line("master_link_status:up\nmaster_last_io_seconds_ago:0")
		} else {
			line("master_link_status:down\nmaster_last_io_seconds_ago:-1\nmaster_link_down_since_seconds:-1")
		}
		line("master_sync_in_progress:0\nslave_read_repl_offset:%d\nslave_repl_offset:%d\nslave_priority:100\nslave_read_only:1\nconnected_slaves:0", offset, offset)
	}
	if secondary == "" {
		secondary, branched = strings.Repeat("0", len(id)), -1
	}
	line("master_failover_state:no-failover\nmaster_replid:%s\nmaster_replid2:%s\nmaster_repl_offset:%d\nsecond_repl_offset:%d", id, secondary, offset, branched)
	line("repl_backlog_active:1\nrepl_backlog_size:1048576\nrepl_backlog_first_byte_offset:1\nrepl_backlog_histlen:1")
	line("\n# Keyspace")
	return b.String()
}
