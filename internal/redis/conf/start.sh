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

# With an append-only file it is loaded. With a snapshot alone appendonly must be
# off while it loads, or Redis starts empty; the operator turns it on afterwards.
set -- /data/appendonlydir/*.manifest
if [ -e "$1" ] || [ ! -e /data/dump.rdb ]; then
	exec "$server" "$config" --appendonly yes
fi
exec "$server" "$config" --appendonly no
