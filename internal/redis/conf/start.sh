# Starts Redis in a pod. It decides what must be decided before the process
# runs, which is how the data is loaded; never a role: every process boots as a
# replica of nobody, and the operator says what it is to be.
# Only sh and the server are assumed of the image.
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

# REDIS_PERSISTENCE (true or false) is set by the pod template.
if [ "${REDIS_PERSISTENCE:-false}" != true ]; then
	exec "$server" "$config" --save "" --appendonly no
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

# With an append-only file it is loaded. With a snapshot alone appendonly must be
# off while it loads, or Redis starts empty; the operator turns it on afterwards.
# Only the manifest counts, by its full name: a crash can leave a temporary one.
if [ -e /data/appendonlydir/appendonly.aof.manifest ] || [ ! -e /data/dump.rdb ]; then
	exec "$server" "$config" --appendonly yes
fi
exec "$server" "$config" --appendonly no
