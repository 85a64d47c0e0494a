#!/usr/bin/env bash
# Wires the replication of a bare StatefulSet by hand: the first pod becomes the
# primary, the others follow it. It ends when all are in sync. NAMESPACE, NAME,
# PODS and PASSWORD, that of the user "operator", come in the environment.
set -euo pipefail

kubectl -n "$NAMESPACE" wait --for=jsonpath='{.status.readyReplicas}'="$PODS" --timeout=180s "statefulset/$NAME" >/dev/null
mapfile -t address < <(kubectl -n "$NAMESPACE" get pods -l app.kubernetes.io/instance="$NAME" --sort-by=.metadata.name \
	-o jsonpath='{range .items[*]}{.status.podIP}{"\n"}{end}')

# redis ADDRESS COMMAND talks to one member without starting a program. It fails
# while the process, whose container runs, does not listen yet.
redis() {
	{ exec 3<>"/dev/tcp/$1/6379"; } 2>/dev/null || return 1
	printf 'AUTH operator %s\r\n%s\r\nQUIT\r\n' "$PASSWORD" "$2" >&3
	reply=$(cat <&3)
	exec 3>&-
}

until redis "${address[0]}" 'REPLICAOF NO ONE'; do sleep 0.01; done
for follower in "${address[@]:1}"; do
	until redis "$follower" "REPLICAOF ${address[0]} 6379"; do sleep 0.01; done
done
for follower in "${address[@]:1}"; do
	until redis "$follower" 'INFO replication' && [[ $reply == *master_link_status:up* ]]; do
		sleep 0.01
	done
done
