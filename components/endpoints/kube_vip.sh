#!/bin/bash
# Announces the API's address from this machine, with kube-vip as a static pod, for as long as its own API server and its
# own machine config server answer. Settings: /etc/metal-ipi/kube-vip.env. MODE is
#   bgp  each such machine has the address. Who the peers are, their passwords, the address to speak from and the way to
#        them are what the platform's metadata says of this machine;
#   arp  one of them has it and answers for it in their network; a lease in the API says which.
# Without an argument it runs as a service; `status` tells how things are, `stop` lets go of the address.
set -u
root=${METAL_IPI_ROOT:-} # for tests
# shellcheck source=/dev/null
. "$root/etc/metal-ipi/kube-vip.env"
manifest=$root/etc/kubernetes/manifests/metal-ipi-kube-vip.json
prepared=$root/run/metal-ipi/kube-vip.json
own=$root/run/metal-ipi/kube-vip.own
complained=
metadata=$root/run/metal-ipi/metadata.json

say() { printf '%s\n' "$*" >&2; }

complain() { # once, however often it is tried
    [ "$complained" = "$*" ] || say "$*"
    complained=$*
}

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

speak_bgp() { # the pod's kubeconfig holds no credentials, because kube-vip asks the API for nothing here
    kubeconfig=/etc/metal-ipi/kube-vip.kubeconfig
    jq --arg hold "$HOLD_SECONDS" --arg keepalive "$KEEPALIVE_SECONDS" '
        [.bgp_neighbors[] | select(.address_family == 4)] as $all | $all[0] as $first
        | [$all[] | . as $n | .peer_ips[]
            | "\(.):\($n.peer_as):\(if $n.md5_enabled then $n.md5_password // "" else "" end):\($n.multihop // false)"
            ] as $peers
        | {vip_arp: "false", vip_interface: "lo", vip_leaderelection: "false", bgp_enable: "true",
            bgp_routerid: $first.customer_ip, bgp_sourceip: $first.customer_ip,
            bgp_as: ($first.customer_as | tostring), bgp_peers: ($peers | join(",")),
            bgp_hold_time: $hold, bgp_keepalive_interval: $keepalive}' "$metadata"
}

answer_arp() { # who has the lease is gone after 5 s at the latest
    kubeconfig=
    for each in $KUBECONFIGS; do
        [ ! -r "$root$each" ] || { kubeconfig=$each && break; }
    done
    interface=$(device)
    if [ -z "$kubeconfig" ] || [ -z "$interface" ]; then
        complain "cannot announce $ADDRESS: ${kubeconfig:-none of $KUBECONFIGS is here}; interface ${interface:-unknown}"
        return 1
    fi
    jq -n --arg interface "$interface" --arg node "$(cat /proc/sys/kernel/hostname)" '
        {vip_arp: "true", vip_interface: $interface, vip_leaderelection: "true", vip_leaseduration: "5",
            vip_renewdeadline: "3", vip_retryperiod: "1", vip_nodename: $node, bgp_enable: "false",
            kubernetes_addr: "https://localhost:6443"}'
}

device() { # the interface that has the address, when this machine has it
    if [ "$MODE" = bgp ]; then
        echo lo
    else
        echo "${INTERFACE:-$(ip -j -4 route show default | jq -r '.[0].dev // empty')}"
    fi
}

prepare() { # the static pod
    if [ "$MODE" = bgp ]; then speak_bgp; else answer_arp; fi >"$own" || return 1
    jq -n --arg address "$ADDRESS" --arg image "$IMAGE" --arg kubeconfig "$kubeconfig" --slurpfile own "$own" '
        {apiVersion: "v1", kind: "Pod", metadata: {name: "kube-vip", namespace: "kube-system"}, spec: {
            hostNetwork: true, priorityClassName: "system-node-critical",
            containers: [{name: "kube-vip", image: $image, args: ["manager"],
                env: [{port: "6443", vip_subnet: "32", cp_enable: "true", cp_namespace: "kube-system",
                    svc_enable: "false", address: $address} + $own[0]
                    | to_entries[] | {name: .key, value: .value}],
                securityContext: {capabilities: {add: ["NET_ADMIN", "NET_RAW"], drop: ["ALL"]}},
                volumeMounts: [{name: "kubeconfig", mountPath: "/etc/kubernetes/admin.conf", readOnly: true}]}],
            volumes: [{name: "kubeconfig", hostPath: {path: $kubeconfig, type: "File"}}]}}' >"$prepared"
}

pull() { # beforehand: whoever takes over must not begin by fetching an image
    set --
    for keys in "$root/var/lib/kubelet/config.json" "$root/root/.docker/config.json"; do
        [ ! -r "$keys" ] || { set -- --authfile "$keys" && break; }
    done
    podman pull --quiet "$@" "$IMAGE" >/dev/null || say "$IMAGE is not here yet: the kubelet will try again"
}

answers() { # port path; 7 where nobody listens, something else where somebody is not well
    curl -fs --max-time 3 -o /dev/null --cacert "$root/etc/metal-ipi/api-ca.pem" \
        --resolve "$API_NAME:$1:127.0.0.1" "https://$API_NAME:$1$2"
}

withdraw() {
    [ -e "$manifest" ] || return 0
    say "$1: withdrawing $ADDRESS from here"
    rm -f "$manifest"
    # What this machine asks of the API must not end at its own, which does not answer.
    sleep 1
    ip address delete "$ADDRESS/32" dev "$(device)" 2>/dev/null
}

announce() {
    [ -e "$manifest" ] && return 0
    prepare || return 1
    say "API server and machine config server answer: announcing $ADDRESS from here"
    mkdir -p "${manifest%/*}"
    new=${manifest%/*}/.metal-ipi-kube-vip # the kubelet does not look at hidden files
    cp "$prepared" "$new" && mv "$new" "$manifest"
}

status() {
    [ ! -e "$manifest" ] || echo "kube-vip runs"
    ip -4 -o address show to "$ADDRESS/32"
    cat /proc/net/tcp
}

case ${1:-} in
status) status && exit ;;
stop) exec systemctl stop metal-ipi-kube-vip.service ;;
esac
umask 077
mkdir -p "$root/run/metal-ipi"
trap 'withdraw "asked to stop"; exit 0' TERM INT
withdraw "started anew"
if [ "$MODE" = bgp ]; then
    fetch_neighbours
    reach_peers || exit 1
fi
pull &
failed=0
while :; do
    answers 6443 /readyz && answers 22623 /healthz
    case $? in
    0) failed=0 && announce ;;
    7) withdraw "nobody listens any more" ;;
    *)
        failed=$((failed + 1))
        [ "$failed" -lt 3 ] || withdraw "API server or machine config server does not answer"
        ;;
    esac
    sleep 1
done
