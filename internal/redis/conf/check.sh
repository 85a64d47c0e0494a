
# Starts a server with the directives in REDIS_CONF and no data, and says as its last
# words what it makes of the directives in NAMES, and which version it is; or why it does
# not start. Only sh, the
# server and its cli are assumed of the image.
set -eu

if command -v redis-server >/dev/null 2>&1; then
	flavour=redis
elif command -v valkey-server >/dev/null 2>&1; then
	flavour=valkey
else
	echo "neither redis-server nor valkey-server is on the PATH of this image" >&2
	exit 78
fi

cd "${TMPDIR:-/tmp}"
printf '%s\n' "$REDIS_CONF" >checked.conf
"$flavour-server" ./checked.conf --port 0 --unixsocket "$PWD/redis.sock" --save "" --appendonly no &
server=$!
until said=$("$flavour-cli" -s "$PWD/redis.sock" ping 2>/dev/null) && [ "$said" = PONG ]; do
	kill -0 $server 2>/dev/null || exit 1
done
# Unquoted: each name is a word.
{
	"$flavour-cli" -s "$PWD/redis.sock" config get $NAMES
	echo server
	"$flavour-server" --version
} >"${TERMINATION_LOG:-/dev/termination-log}"
"$flavour-cli" -s "$PWD/redis.sock" shutdown nosave
