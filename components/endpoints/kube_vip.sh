#!/bin/bash
# Announces the API's address from this machine, with kube-vip as a static pod, for as long as the machine's own API
# server answers /readyz. Settings: /etc/metal-ipi/kube-vip.env. MODE is
#   bgp  each such machine announces the address as a route to its BGP peers; bgp_routes.sh finds out who they are, and
#        lays the routes to them;
#   arp  one such machine has the address and answers for it in their network; a lease in the API says which one.
# Nothing here asks the machine config server: OVN-Kubernetes rejects what a node sends to ports 22623 and 22624, also to
# itself. Nothing here asks the API at its address, the platform or a registry: after a power cut of the whole control
# plane none of them may be there before this script has done its work.
# Without an argument it runs as a service; `status` tells how things are, `stop` lets go of the address for good.
set -u
root=${METAL_IPI_ROOT:-} # for tests
# shellcheck source=/dev/null
. "$root/etc/metal-ipi/kube-vip.env"
manifest=$root/etc/kubernetes/manifests/metal-ipi-kube-vip.json
state=$root/run/metal-ipi
sessions=$root/var/lib/metal-ipi/bgp-sessions.json
complained=
interface= # bears the address when this machine has it
facts=     # what the pod is made from, besides the settings
made_from= # what it was made from
patience=0 # until then kube-vip may end by itself

say() { printf '%s\n' "$*" >&2; }

complain() { # once, however often it is tried
    [ "$complained" = "$*" ] || say "$*"
    complained=$*
}

find_kubeconfig() { # sets `kubeconfig` to the administrator's that OpenShift keeps on this machine
    for kubeconfig in $KUBECONFIGS; do
        [ ! -r "$root$kubeconfig" ] || return 0
    done
    complain "there is no API server on this machine yet: none of $KUBECONFIGS is here"
    return 1
}

answers() { # 7 where nobody listens, something else where the API server is not well
    find_kubeconfig || return 1
    local authority='certificate-authority-data"?:[[:space:]]*"?([A-Za-z0-9+/=]+)'
    if ! [[ $(<"$root$kubeconfig") =~ $authority ]] || ! base64 -d <<<"${BASH_REMATCH[1]}" >"$state/api-ca.pem"; then
        complain "$kubeconfig names no certificate authority"
        return 1
    fi
    curl -fs --noproxy '*' --max-time 3 -o /dev/null --cacert "$state/api-ca.pem" \
        --resolve "$API_NAME:6443:127.0.0.1" "https://$API_NAME:6443/readyz"
}

examine() { # interface; sets `index`, `up` and `master`; fails where there is no such interface
    local found
    found=$(ip -j link show dev "$1" 2>/dev/null | jq -r '.[0] // empty | "\(.ifindex) \(.operstate) \(.master // "")"')
    read -r index up master <<<"$found"
    [ -n "$index" ]
}

follow() { # interface; sets `interface` to what bears its addresses: itself, or what it has been made a port of
    local device=$1 index up master
    while examine "$device" && [ -n "$master" ]; do
        if [ "$master" = ovs-system ]; then # the kernel knows the datapath only, not the bridge
            if ! device=$(ovs-vsctl --timeout=5 iface-to-br "$device" 2>/dev/null); then
                complain "cannot announce $ADDRESS: Open vSwitch does not say which bridge has $1"
                return 1
            fi
            examine "$device"
            break
        fi
        device=$master
    done
    case $up in
    UP | UNKNOWN) interface=$device facts="$device, interface number $index" ;;
    *)
        complain "cannot announce $ADDRESS: interface ${device:-of the default route} is not there, or not up"
        return 1
        ;;
    esac
}

look() { # sets `interface` and `facts`; fails while they are not known
    if [ "$MODE" = arp ]; then
        follow "${INTERFACE:-$(ip -j -4 route show default | jq -r '.[0].dev // empty')}"
    elif [ ! -e "$state/bgp-routes" ]; then
        complain "cannot announce $ADDRESS: metal-ipi-bgp-routes.service has not laid the routes to the BGP peers yet"
        return 1
    else
        interface=lo facts=$(<"$state/bgp-routes")
    fi
}

speak_bgp() { # the pod's kubeconfig holds no credentials, because kube-vip asks the API for nothing here
    if jq -e 'any(.[]; .password | test("[:,/]"))' "$sessions" >/dev/null; then
        complain "the MD5 password of a BGP neighbour holds one of ':,/', which kube-vip cannot be told: set another"
        return 1
    fi
    jq --arg hold "$HOLD_SECONDS" --arg keepalive "$KEEPALIVE_SECONDS" '
        [.[] | . as $session | .peers[] | "\(.):\($session.peer_as):\($session.password):\($session.multihop)"] as $peers
        | {vip_arp: "false", vip_interface: "lo", vip_leaderelection: "false", bgp_enable: "true",
            bgp_routerid: .[0].own, bgp_sourceip: .[0].own, bgp_as: (.[0].as | tostring),
            bgp_peers: ($peers | join(",")), bgp_hold_time: $hold, bgp_keepalive_interval: $keepalive}' "$sessions"
}

answer_arp() { # who has the lease and is lost is missed for 5 s at the longest; other machines must call it the same
    jq -n --arg interface "$interface" --arg node "$(cat /proc/sys/kernel/hostname)" '
        {vip_arp: "true", vip_interface: $interface, vip_leaderelection: "true", vip_leasename: "plndr-cp-lock",
            vip_leaseduration: "5", vip_renewdeadline: "3", vip_retryperiod: "1", vip_nodename: $node,
            bgp_enable: "false", kubernetes_addr: "https://localhost:6443"}'
}

prepare() { # the static pod; it looks like those of OpenShift's machine config operator
    if [ "$MODE" = bgp ]; then
        kubeconfig=/etc/metal-ipi/kube-vip.kubeconfig
        speak_bgp
    else
        answer_arp
    fi >"$state/kube-vip.own" || return 1
    jq -n --arg address "$ADDRESS" --arg image "$IMAGE" --arg kubeconfig "$kubeconfig" --arg facts "$facts" \
        --slurpfile own "$state/kube-vip.own" '
        {apiVersion: "v1", kind: "Pod",
            metadata: {name: "kube-vip", namespace: "kube-system", annotations: {
                "target.workload.openshift.io/management": "{\"effect\": \"PreferredDuringScheduling\"}",
                "openshift.io/required-scc": "privileged", "metal-ipi/made-from": $facts}},
            spec: {
            hostNetwork: true, priorityClassName: "system-node-critical", tolerations: [{operator: "Exists"}],
            terminationGracePeriodSeconds: 3,
            containers: [{name: "kube-vip", image: $image, imagePullPolicy: "IfNotPresent",
                args: ["manager", "--prometheusHTTPServer="],
                env: [{port: "6443", vip_subnet: "32", cp_enable: "true", cp_namespace: "kube-system",
                    svc_enable: "false", address: $address} + $own[0]
                    | to_entries[] | {name: .key, value: .value}],
                resources: {requests: {cpu: "20m", memory: "50Mi"}},
                securityContext: {privileged: true}, terminationMessagePolicy: "FallbackToLogsOnError",
                volumeMounts: [{name: "kubeconfig", mountPath: "/etc/kubernetes/admin.conf", readOnly: true}]}],
            volumes: [{name: "kubeconfig", hostPath: {path: $kubeconfig, type: "File"}}]}}' >"$state/kube-vip.json"
}

pull() { # beforehand: whoever takes over must not begin by fetching an image
    ! podman image exists "$IMAGE" 2>/dev/null || return 0
    set --
    for keys in "$root/var/lib/kubelet/config.json" "$root/root/.docker/config.json"; do
        [ ! -r "$keys" ] || { set -- --authfile "$keys" && break; }
    done
    podman pull --quiet "$@" "$IMAGE" >/dev/null || say "$IMAGE is not here yet: the kubelet will try again"
}

announce() { # or announce it anew, if what the pod was made from has changed; while that is not known, leave it
    look || return
    [ ! -e "$manifest" ] || [ "$facts" != "$made_from" ] || return 0
    prepare || return
    if [ -e "$manifest" ]; then
        say "kube-vip is made anew: the way out was $made_from, and is $facts"
    else
        say "the API server answers: announcing $ADDRESS from here"
    fi
    mkdir -p "${manifest%/*}"
    new=${manifest%/*}/.metal-ipi-kube-vip # the kubelet does not look at hidden files
    cp "$state/kube-vip.json" "$new" && mv "$new" "$manifest" && made_from=$facts complained=
}

withdraw() { # reason
    [ -e "$manifest" ] || return 0
    say "$1: withdrawing $ADDRESS from here"
    rm -f "$manifest"
    patience=$((SECONDS + 4))
}

held() { # the interfaces of this machine that have the address, and what is said of it there
    local where address rest
    ip -4 -o address show to "$ADDRESS/32" | while read -r _ where _ address rest; do
        [ "$address" != "$ADDRESS/32" ] || printf '%s %s\n' "$where" "$rest"
    done
}

has_ended() { # whether kube-vip has said goodbye to its peers, or given the address back
    if [ "$MODE" = bgp ]; then
        ! grep -qE '^ *[0-9]+: [0-9A-F]{8}:[0-9A-F]{4} [0-9A-F]{8}:00B3 01 ' /proc/self/net/tcp
    else
        [ -z "$(held)" ]
    fi
}

tidy() { # what kube-vip does not: it leaves addresses behind, on lo, on a former interface, or when it is killed
    local keep='' where rest
    if [ -e "$manifest" ]; then
        keep=$interface
    elif [ "$SECONDS" -lt "$patience" ] && ! has_ended; then
        return
    fi
    held | while read -r where rest; do
        if [ "$where" != "$keep" ]; then
            # What this machine asks of the API must not end at its own, which does not answer.
            ip address delete "$ADDRESS/32" dev "$where"
        elif [ "$MODE" = arp ] && [[ $rest != *" deprecated "* ]]; then
            # So that OVN-Kubernetes never takes it for the machine's own address: it skips deprecated ones.
            ip address change "$ADDRESS/32" dev "$where" preferred_lft 0
        fi
    done
}

leave() {
    withdraw "asked to stop"
    until has_ended || [ "$SECONDS" -ge "$patience" ]; do
        sleep 1
    done
    patience=0
    tidy
    exit 0
}

status() {
    [ ! -e "$manifest" ] || echo "kube-vip runs"
    ip -4 -o address show to "$ADDRESS/32"
    cat /proc/self/net/tcp
}

stop() {
    systemctl stop metal-ipi-kube-vip.service || return
    has_ended && [ -z "$(held)" ] && return
    say "this machine has not let go of $ADDRESS: its kubelet does not end kube-vip"
    return 1
}

case ${1:-} in
status | stop) "$1"; exit ;;
esac
umask 077
mkdir -p "$state"
trap leave TERM INT
pull &
failed=0
while :; do
    answers
    case $? in
    0) failed=0 && announce ;;
    7) withdraw "nobody listens any more" ;;
    *)
        failed=$((failed + 1))
        [ "$failed" -lt 3 ] || withdraw "the API server does not answer"
        ;;
    esac
    tidy
    sleep 1
done
