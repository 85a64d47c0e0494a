#!/usr/bin/env bash
# Runs the govulncheck command that it is given. Where the vulnerability database
# cannot be reached it says so and passes: that is the machine's, not the code's.
set -euo pipefail
output=$(mktemp)
trap 'rm -f "$output"' EXIT
"$@" >"$output" 2>&1 && status=0 || status=$?
if [ "$status" -ne 0 ] && grep -q '^govulncheck: fetching vulnerabilities' "$output"; then
	echo "not checked: database unreachable"
	exit 0
fi
cat "$output"
exit "$status"
