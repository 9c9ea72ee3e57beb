#!/bin/sh
# Asks the machine's hardware what this program would do; see lab/machines/simulated/hardware.py. Installing a machine
# calls it thirty times, so it starts no program that it can do without.
set -eu
call=$(mktemp -d /run/simulated/calls/XXXXXXXX)
{ printf '%s\0' "${0##*/}" "$PWD" "$@"; } > "$call/request"
mkfifo "$call/answer"
echo "${call##*/}" 1<> /run/simulated/bell # opened for reading, too: a machine that lost its power does not hold it
# Such a machine answers nobody: what was left behind by it must end.
status=$(timeout --foreground 300 cat "$call/answer")
[ ! -s "$call/stdout" ] || cat "$call/stdout"
[ ! -s "$call/stderr" ] || cat "$call/stderr" >&2
then=
[ ! -s "$call/then" ] || then=$(cat "$call/then")
rm -r "$call"
[ -z "$then" ] || eval "PATH=/usr/sbin:/usr/bin:/sbin:/bin exec $then"
exit "$status"
