# What a machine's live system tells of itself and of its surroundings: JSON. Read by bash as root, with these variables
# before it: NAMES REGISTRIES PEERS (words), ADDRESS (its own), AUTHORITIES (PEM).
#
# Parts print lines of words, and one jq reads them all: starting it takes longer than its work, seconds where processors
# are slow.
set -uo pipefail
state=/run/metal-ipi
writing_seconds=10

first() { [[ $(cat) =~ $1 ]] && printf %s "${BASH_REMATCH[1]}"; } # pattern; the first group of its first match

memory() { sed -nE 's/^MemTotal: +([0-9]+) kB$/\1/p' /proc/meminfo 2>/dev/null; } # KiB
processors() { grep -c '^processor' /proc/cpuinfo 2>/dev/null; }

# Whether the clock is synchronised, and by which source (chrony, chronyc(1): tracking): CSV; nothing without chrony.
clock() { LC_ALL=C chronyc -c tracking 2>/dev/null; }

# How many seconds a write of 4 KiB takes until the disk has it. The last blocks of the disk are read, and written again
# as they are, so nothing changes. dd's own clock leaves out the start of a program, which takes longer than the write
# where processors are slow: so there are fewer writes there.
latencies() { # disk size
    local count=100 from number end=$((SECONDS + writing_seconds))
    from=$((${2:-0} / 4096 - count)) # without a size dd fails, and jq says so
    dd if="$1" of="$state/blocks" bs=4096 skip="$from" count="$count" status=none || return
    for ((number = 0; number < count && (number == 0 || SECONDS < end); number++)); do
        LC_ALL=C dd if="$state/blocks" of="$1" bs=4096 skip="$number" seek=$((from + number)) count=1 conv=notrunc \
            oflag=dsync 2>&1
    done | sed -nE 's/.* copied, ([0-9.e+-]+) s.*/\1/p'
    rm -f "$state/blocks"
}

# Path and size, then the seconds of each write.
disk() {
    local path size
    path=$(first '"device": *"([^"]*)"' <"$state/install.json")
    size=$(lsblk --json --bytes --output PATH,SIZE "$path" | first '"size": *"?([0-9]+)')
    printf '%s\n' "$path" "$size"
    latencies "$path" "$size"
}

# Each name, and its addresses.
resolved() {
    local name
    for name in $NAMES; do
        printf '%s\n' "$name $(getent ahostsv4 "$name" | cut -d' ' -f1 | sort -u | tr '\n' ' ')"
    done
}

# Each registry, and the status that it answers with, or what curl says: accounts and images were tried before.
registries() {
    local place status trust=()
    if [ -n "$AUTHORITIES" ]; then
        { cat /etc/pki/tls/certs/ca-bundle.crt 2>/dev/null; printf '%s\n' "$AUTHORITIES"; } >"$state/registries.pem"
        trust=(--cacert "$state/registries.pem")
    fi
    for place in $REGISTRIES; do
        status=$(curl --silent --show-error --max-time 15 "${trust[@]}" --output /dev/null --write-out '%{http_code}' \
            "https://$place/v2/" 2>"$state/curl.err") || status=$(tail -n 1 "$state/curl.err")
        printf '%s\n' "$place $status"
    done
}

# A few small packets to each peer, and one as large as the device takes, which nobody may break up: the peer, the MTU,
# whether the large one came back, and what ping says.
peers() {
    local peer device mtu told whole
    for peer in $PEERS; do
        device=$(ip -json route get "$peer" | first '"dev": *"([^"]*)"')
        mtu=$(ip -json link show dev "$device" | first '"mtu": *([0-9]+)')
        told=$(LC_ALL=C ping -n -q -c 5 -i 0.2 -W 2 "$peer" 2>&1)
        if ping -n -q -c 1 -W 2 -M do -s $((mtu - 28)) "$peer" >/dev/null 2>&1; then whole=true; else whole=false; fi
        printf '%s\n' "$peer $mtu $whole ${told//$'\n'/ }"
    done
}

# One at a time: another one may go on whose caller is gone, and would write to the same place of the disk.
exec 8>"$state/probe.lock" && flock 8 || exit

jq -cn --arg hostname "$(</proc/sys/kernel/hostname)" --arg memory "$(memory)" --arg processors "$(processors)" \
    --arg clock "$(clock)" --arg disk "$(disk)" --argjson routes "$(ip -json route show default)" \
    --arg names "$(resolved)" --arg registries "$(registries)" \
    --argjson ping "$(if command -v ping >/dev/null; then echo true; else echo false; fi)" --arg peers "$(peers)" \
    --arg reverse "$(getent hosts "$ADDRESS")" '
    def lines: split("\n") | map(select(. != ""));
    def words: split(" ") | map(select(. != ""));
    ($disk | lines) as $disk | {
        $hostname,
        memoryMib: ($memory | (tonumber / 1024 | floor)? // null),
        processors: ($processors | tonumber? // null),
        clock: (if $clock == "" then null else $clock | split(",") | {source: .[1], synchronised: (.[13] == "Normal")} end),
        disk: {path: $disk[0], size: ($disk[1] | tonumber), latencies: ($disk[2:] | map(tonumber * 1000))},
        routes: ($routes | map(.gateway // .dev)),
        names: ($names | lines | map(words | {(.[0]): .[1:]}) | add // {}),
        registries: ($registries | lines | map(words | {(.[0]): (.[1:] | join(" "))}) | add // {}),
        reverse: ($reverse | lines | map(words[1] | values)),
        peers: (if $ping then $peers | lines | map(. as $told | words | {(.[0]): {
            mtu: (.[1] | tonumber), whole: (.[2] == "true"),
            lost: (($told | capture("(?<p>[0-9.]+)% packet loss").p | tonumber) // 100),
            ms: (($told | capture("= [0-9.]+/(?<a>[0-9.]+)/").a | tonumber) // null)}}) | add // {} else null end)}'
