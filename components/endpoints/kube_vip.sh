#!/bin/bash
# Announces the API's address from this machine over BGP, with kube-vip as a static pod, for as long as its own API
# server and its own machine config server answer. Who the peers are, their passwords, the address to speak from and the
# way to them are what the platform's metadata says of this machine. Settings: /etc/metal-ipi/kube-vip.env.
set -u
root=${METAL_IPI_ROOT:-} # for tests
# shellcheck source=/dev/null
. "$root/etc/metal-ipi/kube-vip.env"
manifest=$root/etc/kubernetes/manifests/metal-ipi-kube-vip.json
prepared=$root/run/metal-ipi/kube-vip.json
metadata=$root/run/metal-ipi/metadata.json

say() { printf '%s\n' "$*" >&2; }

fetch_neighbours() { # until the platform tells of a BGP session of this machine
    told=
    until curl -fsS --max-time 10 -o "$metadata" "$METADATA_URL" &&
        [ "$(jq '[.bgp_neighbors[]? | select(.address_family == 4)] | length' "$metadata")" -gt 0 ]; do
        [ -n "$told" ] || say "waiting until $METADATA_URL names this machine's BGP neighbours"
        told=yes
        sleep 2
    done
    if jq -e '[.bgp_neighbors[] | select(.address_family == 4) | .md5_password // "" | test("[:,/]")] | any' \
        "$metadata" >/dev/null; then
        say "the MD5 password of a BGP neighbour holds one of ':,/', which kube-vip cannot be told: set another"
        exit 1
    fi
}

reach_peers() { # BGP must leave from the private address, and on its network
    device=$(ip -j -4 route show default | jq -r '.[0].dev // empty')
    if [ -z "$device" ]; then
        say "there is no default route: the way to the BGP peers is not known"
        return 1
    fi
    jq -r '. as $all | .bgp_neighbors[] | select(.address_family == 4) | .customer_ip as $own
        | ($all.network.addresses[] | select(.address == $own)) as $address
        | .peer_ips[] | [$own, $address.cidr, $address.gateway, .] | @tsv' "$metadata" |
        while read -r own prefix gateway peer; do
            ip address replace "$own/$prefix" dev "$device" &&
                ip route replace "$peer/32" via "$gateway" dev "$device" src "$own" || return 1
        done
}

prepare() { # the static pod; its kubeconfig holds no credentials, because kube-vip asks the API for nothing here
    jq --arg address "$ADDRESS" --arg image "$IMAGE" --arg hold "$HOLD_SECONDS" --arg keepalive "$KEEPALIVE_SECONDS" '
        [.bgp_neighbors[] | select(.address_family == 4)] as $all | $all[0] as $first
        | [$all[] | . as $n | .peer_ips[]
            | "\(.):\($n.peer_as):\(if $n.md5_enabled then $n.md5_password // "" else "" end):\($n.multihop // false)"
            ] as $peers
        | {apiVersion: "v1", kind: "Pod", metadata: {name: "kube-vip", namespace: "kube-system"}, spec: {
            hostNetwork: true, priorityClassName: "system-node-critical",
            containers: [{name: "kube-vip", image: $image, args: ["manager"],
                env: [{vip_arp: "false", port: "6443", vip_interface: "lo", vip_subnet: "32", cp_enable: "true",
                    cp_namespace: "kube-system", svc_enable: "false", vip_leaderelection: "false", bgp_enable: "true",
                    bgp_routerid: $first.customer_ip, bgp_sourceip: $first.customer_ip,
                    bgp_as: ($first.customer_as | tostring), bgp_peers: ($peers | join(",")),
                    bgp_hold_time: $hold, bgp_keepalive_interval: $keepalive, address: $address}
                    | to_entries[] | {name: .key, value: .value}],
                securityContext: {capabilities: {add: ["NET_ADMIN", "NET_RAW"], drop: ["ALL"]}},
                volumeMounts: [{name: "kubeconfig", mountPath: "/etc/kubernetes/admin.conf", readOnly: true}]}],
            volumes: [{name: "kubeconfig", hostPath: {path: "/etc/metal-ipi/kube-vip.kubeconfig", type: "File"}}]}}' \
        "$metadata" >"$prepared"
}

pull() { # beforehand: whoever takes over must not begin by fetching an image
    set --
    for keys in "$root/var/lib/kubelet/config.json" "$root/root/.docker/config.json"; do
        [ ! -r "$keys" ] || { set -- --authfile "$keys" && break; }
    done
    podman pull --quiet "$@" "$IMAGE" >/dev/null || say "$IMAGE is not here yet: the kubelet will try again"
}

answers() { # port path
    curl -fs --max-time 3 -o /dev/null --cacert "$root/etc/metal-ipi/api-ca.pem" \
        --resolve "$API_NAME:$1:127.0.0.1" "https://$API_NAME:$1$2"
}

withdraw() {
    [ -e "$manifest" ] || return 0
    say "$1: withdrawing $ADDRESS from here"
    rm -f "$manifest"
    # What this machine asks of the API must not end at its own, which does not answer.
    sleep 1
    ip address delete "$ADDRESS/32" dev lo 2>/dev/null
}

announce() {
    [ -e "$manifest" ] && return 0
    say "API server and machine config server answer: announcing $ADDRESS from here"
    mkdir -p "${manifest%/*}"
    new=${manifest%/*}/.metal-ipi-kube-vip # the kubelet does not look at hidden files
    cp "$prepared" "$new" && mv "$new" "$manifest"
}

umask 077
mkdir -p "$root/run/metal-ipi"
trap 'withdraw "asked to stop"; exit 0' TERM INT
withdraw "started anew"
fetch_neighbours
reach_peers || exit 1
prepare || exit 1
pull &
failed=0
while :; do
    if answers 6443 /readyz && answers 22623 /healthz; then
        failed=0
        announce
    else
        failed=$((failed + 1))
        [ "$failed" -lt 3 ] || withdraw "API server or machine config server does not answer"
    fi
    sleep 1
done
