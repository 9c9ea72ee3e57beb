# What a machine's live system tells of itself and of its surroundings: JSON. Read by bash as root, with these variables
# before it: NAMES REGISTRIES PEERS (words), ADDRESS (its own), AUTHORITIES (PEM).
set -uo pipefail
state=/run/metal-ipi

lines() { jq -Rsc 'split("\n") | map(select(. != ""))'; }

memory() { sed -nE 's/^MemTotal: +([0-9]+) kB$/\1/p' /proc/meminfo 2>/dev/null; } # KiB
processors() { grep -c '^processor' /proc/cpuinfo 2>/dev/null; }

# Whether the clock is synchronised, and by which source (chrony, chronyc(1): tracking).
clock() {
    local told
    if ! told=$(LC_ALL=C chronyc -c tracking 2>/dev/null); then
        echo null
        return
    fi
    jq -Rc 'split(",") | {source: .[1], synchronised: (.[13] == "Normal")}' <<<"$told"
}

# How long a write of 4 KiB takes until the disk has it: milliseconds. The last blocks of the disk are read, and written
# again as they are, so nothing changes. dd's own clock leaves out the start of a program.
latencies() { # disk size
    local count=${WRITES:-100} first number
    first=$(($2 / 4096 - count))
    dd if="$1" of="$state/blocks" bs=4096 skip="$first" count="$count" status=none || return
    for ((number = 0; number < count; number++)); do
        LC_ALL=C dd if="$state/blocks" of="$1" bs=4096 skip="$number" seek=$((first + number)) count=1 conv=notrunc \
            oflag=dsync 2>&1
    done | sed -nE 's/.* copied, ([0-9.e+-]+) s.*/\1/p' | jq -Rsc 'split("\n") | map(select(. != "") | tonumber * 1000)'
    rm -f "$state/blocks"
}

disk() {
    local path size
    path=$(jq -r .device "$state/install.json")
    size=$(lsblk --json --bytes --output PATH,SIZE "$path" | jq '.blockdevices[0].size')
    jq -cn --arg path "$path" --argjson size "$size" --argjson latencies "$(latencies "$path" "$size")" \
        '{$path, $size, $latencies}'
}

resolved() {
    local name
    for name in $NAMES; do
        jq -cn --arg name "$name" --argjson to "$(getent ahostsv4 "$name" | cut -d' ' -f1 | sort -u | lines)" '{($name): $to}'
    done | jq -sc 'add // {}'
}

# The status that a registry answers with, or what curl says: accounts and images were tried before.
registries() {
    local place status trust=()
    if [ -n "$AUTHORITIES" ]; then
        { cat /etc/pki/tls/certs/ca-bundle.crt 2>/dev/null; printf '%s\n' "$AUTHORITIES"; } >"$state/registries.pem"
        trust=(--cacert "$state/registries.pem")
    fi
    for place in $REGISTRIES; do
        status=$(curl --silent --show-error --max-time 15 "${trust[@]}" --output /dev/null --write-out '%{http_code}' \
            "https://$place/v2/" 2>"$state/curl.err") || status=$(tail -n 1 "$state/curl.err")
        jq -cn --arg place "$place" --arg status "$status" '{($place): $status}'
    done | jq -sc 'add // {}'
}

# A few small packets to each peer, and one as large as the device takes, which nobody may break up.
peers() {
    local peer device mtu told
    if ! command -v ping >/dev/null; then
        echo null
        return
    fi
    for peer in $PEERS; do
        device=$(ip -json route get "$peer" | jq -r '.[0].dev')
        mtu=$(ip -json link show dev "$device" | jq '.[0].mtu')
        told=$(LC_ALL=C ping -n -q -c 5 -i 0.2 -W 2 "$peer" 2>&1)
        ping -n -q -c 1 -W 2 -M do -s $((mtu - 28)) "$peer" >/dev/null 2>&1
        jq -cn --arg peer "$peer" --arg told "$told" --argjson mtu "$mtu" --argjson whole $((! $?)) '{($peer): {
            $mtu, whole: ($whole == 1),
            lost: (($told | capture("(?<p>[0-9.]+)% packet loss").p | tonumber) // 100),
            ms: (($told | capture("= [0-9.]+/(?<a>[0-9.]+)/").a | tonumber) // null)}}'
    done | jq -sc 'add // {}'
}

# One at a time: another one may go on whose caller is gone, and would write to the same place of the disk.
exec 8>"$state/probe.lock" && flock 8 || exit

jq -cn --arg hostname "$(</proc/sys/kernel/hostname)" --arg memory "$(memory)" --arg processors "$(processors)" \
    --argjson clock "$(clock)" --argjson disk "$(disk)" \
    --argjson routes "$(ip -json route show default | jq -c 'map(.gateway // .dev)')" \
    --argjson names "$(resolved)" --argjson registries "$(registries)" --argjson peers "$(peers)" \
    --argjson reverse "$(getent hosts "$ADDRESS" | sed -E 's/^[^ ]+ +([^ ]+).*/\1/' | lines)" '{
        $hostname, $clock, $disk, $routes, $names, $registries, $peers, $reverse,
        memoryMib: ($memory | (tonumber / 1024 | floor)? // null), processors: ($processors | tonumber? // null)}'
