# Starts Redis in a pod. It decides what must be decided before the process
# runs, which is how the data is loaded; never a role: every process boots as a
# replica of nobody, and the operator says what it is to be.
# Only sh and the server are assumed of the image. Why the files that it chooses
# are never older than they must be: docs/adr/0002-restart-with-history.md.
set -eu

config=/etc/redis/config/redis.conf

if command -v redis-server >/dev/null 2>&1; then
	server=redis-server
elif command -v valkey-server >/dev/null 2>&1; then
	server=valkey-server
else
	echo "neither redis-server nor valkey-server is on the PATH of this image" >&2
	exit 78
fi

# A pod that mounts a certificate serves TLS. Without one, the server ends where
# redis.conf closes the other port: it never falls back to it.
set -- "$config"
tls=/etc/redis/tls/tls.conf
[ ! -r "$tls" ] || set -- "$@" --include "$tls"

# REDIS_PERSISTENCE (true or false) is set by the pod template.
if [ "${REDIS_PERSISTENCE:-false}" != true ]; then
	exec "$server" "$@" --save "" --appendonly no
fi

# One process per volume: a pod that was deleted by force may still run beside
# its successor on the same node. The lock ends with the last process that has
# file 9 open, which is the server or a child that saves. Without flock in the
# image, the volume being attached to one node is all there is.
if command -v flock >/dev/null 2>&1; then
	exec 9>>/data/.lock
	if ! flock -n 9; then
		echo "another process uses /data: waiting for its end" >&2
		flock 9
	fi
else
	echo "no flock in this image: /data is used without a lock" >&2
fi

# text prints a file.
text() {
	while IFS= read -r line || [ -n "$line" ]; do printf '%s\n' "$line"; done <"$1"
}

# The operator names pods that could not load their files and whose primary has the
# data, each with the time: such files are renamed, once. The token is the last to be
# written, so that a start that is cut short goes on with the rest.
unreadable=/data/unreadable
set_aside() {
	echo "the files in /data could not be loaded: they are renamed to $unreadable" >&2
	[ ! -e $unreadable/token ] || rm -rf $unreadable
	mkdir -p $unreadable
	for name in dump.rdb appendonlydir .saved; do
		[ ! -e /data/$name ] || mv -f /data/$name $unreadable/
	done
	printf '%s\n' "$1" >$unreadable/token
}
if [ -r "${config%/*}/unreadable" ]; then
	while read -r pod token; do
		if [ "$pod" != "${HOSTNAME:-}" ]; then continue; fi
		if [ ! -e $unreadable/token ] || [ "$(text $unreadable/token)" != "$token" ]; then set_aside "$token"; fi
	done <"${config%/*}/unreadable"
fi

dump=/data/dump.rdb
# Only the manifest counts, by its full name: a crash can leave a temporary one.
manifest=/data/appendonlydir/appendonly.aof.manifest
# The marker says that the snapshot, which has the replication history, is at
# least as new as the append-only files of the manifest whose text it holds.
marker=/data/.saved

# marked: the marker is whole, which its last line shows, and of this manifest.
marked() {
	[ -s "$marker" ] && [ "$(text "$marker")" = "$(text "$manifest" && printf end)" ]
}

# appended FILE: data that the manifest names was written after the file. The
# manifest itself may be newer: Redis 8.0 writes offsets to it as its last act.
appended() {
	while read -r _ name _; do
		if [ "/data/appendonlydir/$name" -nt "$1" ]; then return 0; fi
	done <"$manifest"
	return 1
}

# A snapshot that the marker vouches for is loaded, and so is one alone: with
# appendonly on, Redis would not read it. The operator turns appendonly on
# afterwards; until then nothing but the snapshot grows, and the marker stays.
# Otherwise the append-only file grows from here on, so the marker ends before.
appendonly=yes
if [ -s "$dump" ] && [ -e "$manifest" ] && marked && ! appended "$marker"; then
	appendonly=no
else
	[ ! -s "$marker" ] || : >"$marker"
	if [ -e "$dump" ] && [ ! -e "$manifest" ]; then appendonly=no; fi
fi

# forward SIGNAL passes a signal on and remembers which snapshot was there then:
# the open file keeps its inode from being used again, whatever clocks say.
before=''
forward() {
	signalled=true before=''
	if [ ! -e "$dump" ]; then
		before=/dev/null
	elif command exec 8<"$dump" && [ "$dump" -ef /proc/self/fd/8 ]; then
		before=/proc/self/fd/8
	fi
	kill -s "$1" "$child" 2>/dev/null || :
}

# The traps come after the child: one that has not become the server yet would
# inherit them, and swallow a signal.
"$server" "$@" --appendonly "$appendonly" &
child=$!
trap 'forward TERM' TERM
trap 'forward INT' INT

# A signal interrupts wait, and the server may go on: its save may fail. One that
# comes just after the end makes wait ask twice: then 127 is no news.
status=''
while :; do
	signalled=''
	wait "$child" 2>/dev/null && result=0 || result=$?
	[ -n "$status" ] && [ "$result" = 127 ] || status=$result
	[ -n "$signalled" ] || break
done
trap '' TERM INT

# The server ended well after a signal, and replaced the snapshot: as its last
# act, with everything that it had. A marker that says so already is left alone,
# since a failing write would take it away.
if [ "$status" = 0 ] && [ -n "$before" ] && [ -s "$dump" ] && ! [ "$dump" -ef "$before" ] &&
	[ -e "$manifest" ] && ! appended "$dump" && ! marked; then
	printf '%s\nend\n' "$(text "$manifest")" >"$marker" || echo "the next start loads the append-only file" >&2
fi
exit "$status"
