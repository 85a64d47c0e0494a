package fakeredis

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/redcon"

	"seang.org/operator/internal/redis/conf"
)

// What a member that follows nobody says that it follows.
const (
	nowhere     = "127.0.0.1"
	nowherePort = "1"
)

// member is one Redis process. The lock of its fleet guards it.
type member struct {
	fleet *Fleet
	users map[string]conf.User
	ip    string
	runID string
	// id and secondary name its history.
	id, secondary string
	// branched is the offset of the first byte that is not of the second.
	branched int64
	// host and port are what it follows; empty for a primary.
	host, port string
	config     map[string]string
	// info is the reply of INFO; nil if it has to be written anew.
	info []byte
}

// users reads an ACL file.
func users(acl string) map[string]conf.User {
	found := map[string]conf.User{}
	for _, user := range conf.ParseACL(acl) {
		found[user.Name] = user
	}
	return found
}

// serve answers one command. A connection must log in first.
func (m *member) serve(conn redcon.Conn, command redcon.Command) {
	words := make([]string, len(command.Args))
	for i, word := range command.Args {
		words[i] = string(word)
	}
	name := strings.ToUpper(words[0])
	session, _ := conn.Context().(*session)
	if session == nil && name != "HELLO" {
		conn.WriteError("NOAUTH Authentication required.")
		return
	}
	m.fleet.mu.Lock()
	defer m.fleet.mu.Unlock()
	if session != nil && session.queues(conn, name, words) {
		return
	}
	m.answer(conn, name, words)
}

// session is a connection that has logged in, and its transaction.
type session struct {
	inside bool
	queue  [][]string
}

// queues keeps a command for the end of the transaction that it is in.
func (s *session) queues(conn redcon.Conn, name string, words []string) bool {
	if !s.inside || name == "EXEC" {
		return false
	}
	s.queue = append(s.queue, words)
	conn.WriteString("QUEUED")
	return true
}

func (m *member) answer(conn redcon.Conn, name string, words []string) {
	switch name {
	case "MULTI":
		conn.Context().(*session).inside = true //nolint:forcetypeassert // It is logged in.
		conn.WriteString("OK")
	case "EXEC":
		done := *conn.Context().(*session) //nolint:forcetypeassert // It is logged in.
		conn.SetContext(&session{})
		conn.WriteArray(len(done.queue))
		for _, words := range done.queue {
			m.answer(conn, strings.ToUpper(words[0]), words)
		}
	case "HELLO":
		m.hello(conn, words)
	case "INFO":
		conn.WriteRaw(m.infoReply())
	case "CONFIG":
		m.configure(conn, words)
	case "REPLICAOF":
		m.replicaOf(conn, words)
	case "ACL":
		m.acl(conn, words)
	case "CLIENT":
		conn.WriteString("OK")
	case "WAIT":
		conn.WriteInt(len(m.replicas()))
	default:
		conn.WriteError("ERR unknown command '" + words[0] + "'")
	}
}

// hello is HELLO 3 AUTH user password and what may follow.
func (m *member) hello(conn redcon.Conn, words []string) {
	if len(words) < 5 || words[1] != "3" || strings.ToUpper(words[2]) != "AUTH" {
		conn.WriteError("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used")
		return
	}
	if !slices.Contains(m.users[words[3]].Hashes, conf.Hash(words[4])) {
		conn.WriteError("WRONGPASS invalid username-password pair or user is disabled.")
		return
	}
	conn.SetContext(&session{})
	writeMap(conn, 3)
	for _, word := range []string{"server", "redis", "version", version} {
		conn.WriteBulkString(word)
	}
	conn.WriteBulkString("proto")
	conn.WriteInt(3)
}

// acl is ACL LIST, SETUSER name reset rule … or DELUSER name ….
func (m *member) acl(conn redcon.Conn, words []string) {
	switch strings.ToUpper(words[1]) {
	case "LIST":
		conn.WriteArray(len(m.users))
		for _, user := range m.users {
			conn.WriteBulkString(strings.TrimSpace(conf.RenderACL([]conf.User{user})))
		}
	case "SETUSER":
		for _, user := range conf.ParseACL("user " + strings.Join(append(words[2:3:3], words[4:]...), " ")) {
			m.users[user.Name] = user
		}
		conn.WriteString("OK")
	case "DELUSER":
		for _, name := range words[2:] {
			delete(m.users, name)
		}
		conn.WriteInt(len(words) - 2)
	default:
		conn.WriteError("ERR unknown subcommand '" + words[1] + "'")
	}
}

// configure is CONFIG GET or CONFIG SET.
func (m *member) configure(conn redcon.Conn, words []string) {
	if len(words) < 3 {
		conn.WriteError("ERR wrong number of arguments for 'config' command")
		return
	}
	if strings.EqualFold(words[1], "SET") {
		for i := 2; i+1 < len(words); i += 2 {
			m.config[words[i]] = words[i+1]
		}
		m.fleet.changed()
		conn.WriteString("OK")
		return
	}
	var known []string
	for _, name := range words[2:] {
		if _, ok := m.config[name]; ok {
			known = append(known, name)
		}
	}
	writeMap(conn, len(known))
	for _, name := range known {
		conn.WriteBulkString(name)
		conn.WriteBulkString(m.config[name])
	}
}

// replicaOf is REPLICAOF NO ONE or REPLICAOF host port.
func (m *member) replicaOf(conn redcon.Conn, words []string) {
	if len(words) != 3 {
		conn.WriteError("ERR wrong number of arguments for 'replicaof' command")
		return
	}
	if promote := strings.EqualFold(words[1], "NO"); promote && m.host != "" {
		m.id, m.secondary, m.branched, m.host, m.port = identity(), m.id, offset+1, "", ""
	} else if !promote {
		m.host, m.port = words[1], words[2]
	}
	m.fleet.changed()
	conn.WriteString("OK")
}

// changed makes all members write INFO anew: what one does may show in another.
func (f *Fleet) changed() {
	for _, m := range f.members {
		m.info = nil
	}
}

// writeMap begins a map of RESP3, which the library does not know.
func writeMap(conn redcon.Conn, pairs int) {
	conn.WriteRaw([]byte("%" + strconv.Itoa(pairs) + "\r\n"))
}
