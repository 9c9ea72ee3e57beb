#!/bin/sh
# Asks the machine's hardware what this program would do; see lab/machines/simulated/hardware.py.
set -eu
call=$(mktemp -d /run/simulated/calls/XXXXXXXX)
{ printf '%s\0' "${0##*/}" "$PWD" "$@"; } > "$call/request"
mkfifo "$call/answer"
# A machine that lost its power answers nobody: what was left behind by it must end.
timeout --foreground 10 sh -c 'echo "$1" > /run/simulated/bell' sh "${call##*/}"
status=$(timeout --foreground 300 cat "$call/answer")
cat "$call/stdout"
cat "$call/stderr" >&2
then=$(cat "$call/then")
rm -r "$call"
[ -z "$then" ] || eval "PATH=/usr/sbin:/usr/bin:/sbin:/bin exec $then"
exit "$status"
