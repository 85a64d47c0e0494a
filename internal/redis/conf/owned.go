package conf

import "strings"

// ownedDirectives belong to the operator; the value names the field of the spec
// to use instead, if there is one.
var ownedDirectives = map[string]string{
	"bind": "", "port": "", "protected-mode": "", "bind-source-addr": "",
	"daemonize": "", "supervised": "", "pidfile": "", "logfile": "", "dbfilename": "", "rdb-del-sync-files": "",
	"include": "", "loadmodule": "", "rename-command": "",
	"aclfile": "auth", "user": "auth", "requirepass": "auth", "masterauth": "auth", "masteruser": "auth", "primaryauth": "auth", "primaryuser": "auth", "acl-pubsub-default": "",
	"replicaof": "", "slaveof": "", "stop-writes-on-bgsave-error": "", "import-mode": "",
	"maxmemory": "memoryLimit", "replica-ignore-maxmemory": "memoryLimit", "slave-ignore-maxmemory": "memoryLimit",
	"appendonly": "enablePersistence", "appendfilename": "", "appenddirname": "", "aof-load-truncated": "", "aof-use-rdb-preamble": "",
	"save": "enablePersistence", "client-output-buffer-limit": "memoryLimit", "oom-score-adj": "", "oom-score-adj-values": "",
	"enable-debug-command": "", "enable-module-command": "", "enable-protected-configs": "",
	"server_cpulist": "resources.cpu", "bio_cpulist": "resources.cpu", "aof_rewrite_cpulist": "resources.cpu", "bgsave_cpulist": "resources.cpu",
	"server-cpulist": "resources.cpu", "bio-cpulist": "resources.cpu", "aof-rewrite-cpulist": "resources.cpu", "bgsave-cpulist": "resources.cpu",
	"socket-mark-id": "", "set-proc-title": "", "proc-title-template": "", "always-show-logo": "", "crash-log-enabled": "", "ignore-warnings": "",
}

// ownedPrefixes are families of directives that belong to the operator.
var ownedPrefixes = []string{
	"replica-", "slave-", "min-replicas-", "min-slaves-", "repl-", "shutdown-", "dir", "cluster-", "sentinel", "syslog-", "dual-channel-", "unixsocket", "rdma-",
}

// Owned says whether a directive belongs to the operator, and which field of
// the spec to use instead; the field is empty if there is none.
func Owned(directive string) (field string, owned bool) {
	name := strings.ToLower(directive)
	if field, owned = ownedDirectives[name]; owned {
		return field, true
	}
	if strings.HasPrefix(name, "tls-") {
		return "tls", true
	}
	for _, prefix := range ownedPrefixes {
		if strings.HasPrefix(name, prefix) {
			return "", true
		}
	}
	return "", false
}
