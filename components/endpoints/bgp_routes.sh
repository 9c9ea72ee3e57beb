#!/bin/bash
# Lets BGP sessions of this machine leave from its private address and on its network: from anywhere else the peers drop
# them. Address, gateway and peers are what the platform's metadata says of this machine; looked at again once a minute.
# Settings: /etc/metal-ipi/bgp-routes.env.
set -u
root=${METAL_IPI_ROOT:-} # for tests
# shellcheck source=/dev/null
. "$root/etc/metal-ipi/bgp-routes.env"
metadata=$root/run/metal-ipi/bgp-routes.json
told=

say() { # each thing once, until there is another
    [ "$told" = "$*" ] || printf '%s\n' "$*" >&2
    told=$*
}

ways() { # address/prefix, gateway and peer of each way to be laid; fails if there is none
    jq -er '. as $all | [.bgp_neighbors[]? | select(.address_family == 4) | .customer_ip as $own
        | ($all.network.addresses[] | select(.address == $own)) as $address
        | .peer_ips[] | ["\($own)/\($address.cidr)", $address.gateway, .] | @tsv] | if . == [] then null else .[] end' \
        "$metadata"
}

lay() { # device
    ways | while read -r own gateway peer; do
        ip address replace "$own" dev "$1" && ip route replace "$peer/32" via "$gateway" dev "$1" src "${own%/*}" ||
            return 1
    done
}

umask 077
mkdir -p "${metadata%/*}"
while :; do
    device=$(ip -j -4 route show default | jq -r '.[0].dev // empty')
    if [ -z "$device" ]; then
        say "there is no default route: the way to the BGP peers is not known"
    elif ! curl -fsS --max-time 10 -o "$metadata" "$METADATA_URL" || ! ways >/dev/null; then
        say "waiting until $METADATA_URL names this machine's BGP neighbours"
    elif ! lay "$device"; then
        say "the way to the BGP peers cannot be laid"
    else
        say "the BGP peers are reached over the private network: $(ways | cut -f 3 | tr '\n' ' ')"
        sleep 60
        continue
    fi
    sleep 2
done
