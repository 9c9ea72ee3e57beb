#!/bin/bash
# Who may ask this machine's machine config server: what it serves holds secrets, and it asks nobody who they are.
#   machine-config-access        load the packet filter with the networks kept here; none yet: only this machine itself
#   machine-config-access set    the same, after keeping the networks from standard input, one CIDR or address per line
# Prints one line: what was done, or `skipped`, TAB, why there is nothing to be done. Everything else on this machine is
# left as it is: the filter has a table of its own.
set -euo pipefail
kept=/etc/metal-ipi/machine-config-networks
table=metal_ipi_machine_config
if [ -e /run/systemd/container ]; then
    printf 'skipped\tthis machine shares its kernel with others, and has no packet filter of its own\n'
    exit 0
fi
if [ "${1:-}" = set ]; then
    mkdir -p "${kept%/*}"
    cat >"$kept.new"
    mv "$kept.new" "$kept"
fi
from4= from6=
if [ -e "$kept" ]; then
    while read -r network; do
        case $network in
        *:*) from6="$from6${from6:+, }$network" ;;
        ?*) from4="$from4${from4:+, }$network" ;;
        esac
    done <"$kept"
fi
# Made, deleted and made again in one transaction: there is no moment without the filter. The first line lets a table
# that is not there be deleted.
nft -f - <<EOF
table inet $table
delete table inet $table
table inet $table {
    set from4 {
        type ipv4_addr
        flags interval
        auto-merge
        ${from4:+elements = { $from4 \}}
    }
    set from6 {
        type ipv6_addr
        flags interval
        auto-merge
        ${from6:+elements = { $from6 \}}
    }
    chain machine_config {
        iifname "lo" accept
        ip saddr @from4 accept
        ip6 saddr @from6 accept
        reject with tcp reset
    }
    chain input {
        type filter hook input priority filter - 10; policy accept;
        tcp dport { 22623, 22624 } jump machine_config
    }
}
EOF
printf 'loaded\t%s\n' "${from4:-nobody else}${from6:+, $from6}"
