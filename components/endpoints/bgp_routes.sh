#!/bin/bash
# Finds this machine's BGP sessions in the platform's metadata, and keeps the routes to its peers: a session must leave
# from the machine's private address and over its network, or the peers drop it.
# - The sessions are kept on disk. After a power cut the machine knows its peers before the metadata service is back.
#   The platform is asked again once a minute.
# - The routes lead over the interface of the default route. OpenShift moves the machine's addresses from there to an OVS
#   bridge, at every boot; so the interface is looked at every other second, and address and routes follow it.
# Whoever speaks BGP on this machine (kube_vip.sh) reads two files:
#   /var/lib/metal-ipi/bgp-sessions.json  the sessions;
#   /run/metal-ipi/bgp-routes             one line, there once the routes are: their interface, and a hash of the sessions.
# Settings: /etc/metal-ipi/bgp-routes.env.
set -u
root=${METAL_IPI_ROOT:-} # for tests
# shellcheck source=/dev/null
. "$root/etc/metal-ipi/bgp-routes.env"
sessions=$root/var/lib/metal-ipi/bgp-sessions.json
laid=$root/run/metal-ipi/bgp-routes
answer=$root/run/metal-ipi/metadata.json
rounds=30 # of two seconds: how often the platform is asked once its answer is known
told=

say() { # each thing once, until there is another
    [ "$told" = "$*" ] || printf '%s\n' "$*" >&2
    told=$*
}

ask() { # the platform; sets `why` and fails if it names no BGP session of this machine
    if ! why=$(curl -fsS --noproxy '*' --max-time 5 -o "$answer" "$METADATA_URL" 2>&1); then
        return 1
    elif ! jq -eS '. as $all | [.bgp_neighbors[]? | select(.address_family == 4) | . as $session
            | ([$all.network.addresses[]? | select(.address == $session.customer_ip)][0] // empty)
            | {own: .address, prefix: .cidr, gateway, as: $session.customer_as, peers: $session.peer_ips,
                peer_as: $session.peer_as, multihop: ($session.multihop // false),
                password: (if $session.md5_enabled then $session.md5_password // "" else "" end)}]
            | if . == [] then null else . end' "$answer" >"$sessions.new" 2>/dev/null; then
        why='it names no BGP session whose address is one of the machine'
        return 1
    elif [ "$(<"$sessions.new")" != "$(cat "$sessions" 2>/dev/null)" ]; then
        mv "$sessions.new" "$sessions"
    fi
}

routes() { # own address with prefix, gateway and peer of each route
    jq -r '.[] | "\(.own)/\(.prefix)" as $own | .gateway as $gateway | .peers[] | [$own, $gateway, .] | @tsv' "$sessions"
}

forsake() { # interface: takes away what was put there
    routes | while read -r own _; do
        ip address delete "$own" dev "$1" 2>/dev/null # its routes go with it
    done
}

lay() { # interface
    routes | while read -r own gateway peer; do
        [[ $(ip -4 -o address show dev "$1") == *" inet $own "* ]] || ip address replace "$own" dev "$1" || return 1
        [[ "$(ip -4 route show "$peer/32") " == *" via $gateway dev $1 "*"src ${own%/*} "* ]] ||
            ip route replace "$peer/32" via "$gateway" dev "$1" src "${own%/*}" || return 1
    done
}

publish() { # interface
    local line was=
    line="$1, sessions $(sha256sum "$sessions" | cut -c 1-16)"
    [ ! -e "$laid" ] || was=$(<"$laid")
    [ "$line" = "$was" ] || { printf '%s\n' "$line" >"$laid.new" && mv "$laid.new" "$laid"; }
}

umask 077
mkdir -p "${sessions%/*}" "${laid%/*}"
left=0
while :; do
    if [ "$left" -gt 0 ]; then
        left=$((left - 1))
    elif ask; then
        left=$rounds
    elif [ -e "$sessions" ]; then
        left=5 # a metadata service that is away must not delay what follows
    fi
    device=$(ip -j -4 route show default | jq -r '.[0].dev // empty')
    before=
    [ ! -e "$laid" ] || IFS=, read -r before _ <"$laid"
    if [ ! -e "$sessions" ]; then
        say "waiting until $METADATA_URL names this machine's BGP neighbours: $why"
    elif [ -z "$device" ]; then
        say "there is no default route: the way to the BGP peers is not known"
    else
        [ -z "$before" ] || [ "$before" = "$device" ] || forsake "$before"
        if lay "$device"; then
            publish "$device"
            say "the BGP peers are reached over $device: $(routes | cut -f 3 | tr '\n' ' ')"
        else
            say "the routes to the BGP peers cannot be laid over $device"
        fi
    fi
    sleep 2
done
