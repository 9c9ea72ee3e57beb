# Checks one node and prints one line per check: name, TAB, status (passed, failed, skipped), TAB, what was read here.
# Ends with 1 when a check failed. Expected values come before this text as shell variables. Reads only, and starts as few
# processes as it can: an emulated machine takes a twentieth of a second for each.
set -uf
failed=0
report() { # name status observed [why it failed]
    observed=$3
    if [ "${#observed}" -gt 300 ] || [ "$observed" != "${observed#*[[:cntrl:]]}" ]; then
        observed=$(printf '%s' "$observed" | tr '[:cntrl:]' ' ' | cut -c1-300)
    fi
    printf '%s\t%s\t%s\n' "$1" "$2" "$observed"
    if [ "$2" = failed ]; then
        failed=1
        printf '%s failed: %s: %s\n' "$EXPECTED_HOSTNAME" "$1" "$4" >&2
    fi
}
expect() { # name observed expected
    if [ "$2" = "$3" ]; then report "$1" passed "$2"; else report "$1" failed "$2" "read '$2', expected '$3'"; fi
}
look_up() { # file key; sets $value, empty when there is none
    value=
    [ -r "$1" ] || return 0
    while IFS='=' read -r key text || [ -n "$key" ]; do
        if [ "$key" = "$2" ]; then
            text=${text#[\"\']}
            value=${text%[\"\']}
            return 0
        fi
    done <"$1"
}

result=/etc/.ignition-result.json
found=$(sudo -n cat "$result" 2>&1 | tr -d ' \n') # Ignition keeps it to root
case $found in
*'"userConfigProvided":true'*) report ignition passed "$found" ;;
*) report ignition failed "$found" "$result does not say that Ignition applied our config to this node: '$found'" ;;
esac

read -r cmdline </proc/cmdline
platform=
for argument in $cmdline; do
    case $argument in ignition.platform.id=*) platform=${argument#*=} ;; esac
done
expect platform-karg "$platform" "$EXPECTED_PLATFORM"

for wanted in $EXPECTED_KERNEL_ARGUMENTS; do
    case " $cmdline " in
    *" $wanted "*) report "karg $wanted" passed "$wanted" ;;
    *) report "karg $wanted" failed absent "it is not on the kernel's command line" ;;
    esac
done

if [ -n "${EXPECTED_FIPS-}" ]; then
    mode=absent
    [ ! -r /proc/sys/crypto/fips_enabled ] || read -r mode </proc/sys/crypto/fips_enabled
    case $mode in
    1) report fips passed '/proc/sys/crypto/fips_enabled is 1' ;;
    *) report fips failed "$mode" "/proc/sys/crypto/fips_enabled is $mode, not 1: the kernel is not in FIPS mode" ;;
    esac
fi

# afterburn.service may still be waiting for the metadata service when SSH already answers.
check_afterburn() {
    attributes=/run/metadata/afterburn
    waited=0
    while [ ! -s "$attributes" ] && command -v afterburn >/dev/null && [ "$waited" -lt "$AFTERBURN_WAIT" ]; do
        sleep 1
        waited=$((waited + 1))
    done
    if [ -s "$attributes" ] || command -v afterburn >/dev/null; then
        look_up "$attributes" AFTERBURN_PACKET_IPV4_PUBLIC_0
        expect afterburn-public-ipv4 "$value" "$EXPECTED_PUBLIC_IPV4"
        look_up "$attributes" AFTERBURN_PACKET_IPV4_PRIVATE_0
        expect afterburn-private-ipv4 "$value" "$EXPECTED_PRIVATE_IPV4"
        look_up "$attributes" AFTERBURN_PACKET_HOSTNAME
        expect afterburn-hostname "$value" "$EXPECTED_METADATA_HOSTNAME"
        return
    fi
    look_up /etc/os-release ID
    case $value in
    rhcos | scos | fedora | rhel | centos) report afterburn failed absent "$value comes with Afterburn, this node has none" ;;
    *) report afterburn skipped "the image of this node ($value) was built without Afterburn" ;;
    esac
}
case $EXPECTED_PLATFORM in
metal) report afterburn skipped 'platform metal has no metadata service for Afterburn to read' ;;
*) check_afterburn ;;
esac

if [ -n "$EXPECTED_GENERATION" ]; then
    marker=/etc/metal-ipi/installation.json
    installed=
    if [ -r "$marker" ]; then
        read -r text <"$marker"
        case $text in *'"generation": "'*'"'*) installed=${text#*'"generation": "'} installed=${installed%%'"'*} ;; esac
    fi
    if [ "$installed" = "$EXPECTED_GENERATION" ]; then
        report installation passed "$installed"
    else
        report installation failed "$installed" "$marker says '$installed', expected generation $EXPECTED_GENERATION"
    fi
    source= # of the root file system: CoreOS shows it at /sysroot, its / may be an overlay
    while read -r device place rest; do
        case $place in / | /sysroot) if [ -z "$source" ] || [ "$place" = /sysroot ]; then source=$device; fi ;; esac
    done </proc/mounts
    case $source in
    /dev/loop* | /dev/ram* | /dev/zram*) report root-on-disk failed "$source" 'the root file system is in memory' ;;
    /dev/*) report root-on-disk passed "$source" ;;
    *) report root-on-disk failed "$source" "the root file system is on no disk but on '$source'" ;;
    esac
fi

# Bonds as name=mode/permanent MAC addresses of the ports, VLANs as name=number/parent. OVN moves addresses, and no links.
for link in ${EXPECTED_LINKS-}; do
    name=${link%%=*} found=absent
    if [ -r "/sys/class/net/$name/bonding/mode" ]; then
        read -r found rest <"/sys/class/net/$name/bonding/mode"
        read -r ports <"/sys/class/net/$name/bonding/slaves"
        found=$found/$(for port in $ports; do cat "/sys/class/net/$port/bonding_slave/perm_hwaddr"; done | sort | paste -s -d ,)
    elif text=$(sudo -n cat "/proc/net/vlan/$name" 2>/dev/null); then # the kernel keeps it to root
        number=${text#*VID: } parent=${text#*Device: }
        found=${number%%[!0-9]*}/${parent%%[!A-Za-z0-9_.-]*}
    fi
    expect "link $name" "$found" "${link#*=}"
done

# With dual stack: the address, which no other host has, and a default route. OVN moves both to its bridge.
if [ -n "${EXPECTED_IPV6-}" ]; then
    found=absent
    while read -r address _ _ _ flags device; do
        [ "$address" = "$EXPECTED_IPV6" ] || continue
        found="on $device"
        [ $((0x$flags & 0x48)) = 0 ] || found="$found, tentative or a duplicate (flags 0x$flags)"
    done </proc/net/if_inet6
    case $found in
    *,* | absent) report ipv6-address failed "$found" "no interface has $EXPECTED_IPV6 for its own: $found" ;;
    *) report ipv6-address passed "$found" ;;
    esac
    route=absent
    while read -r _ bits _ _ gateway _ _ _ _ device; do
        case $bits$device in
        00lo) ;; # it says that there is none
        00*) route="via $gateway on $device" ;;
        esac
    done </proc/net/ipv6_route
    if [ "$route" = absent ]; then
        report ipv6-route failed "$route" 'there is no IPv6 default route: the kubelet will choose no IPv6 address'
    else
        report ipv6-route passed "$route"
    fi
fi

read -r hostname </proc/sys/kernel/hostname
expect hostname "$hostname" "$EXPECTED_HOSTNAME"
look_up /etc/os-release OSTREE_VERSION
# In the first boot machine-config-daemon puts the operating system of the cluster's release in place, renames this file and
# restarts, or removes it where that was there already; the daemon of the cluster keeps the other file from then on.
config=/etc/ignition-machine-config-encapsulated.json
if [ -e "$config" ]; then
    report os-version failed "$value" "the first boot is not over: $config is still there"
elif [ -e "$config.bak" ] || [ -e /etc/machine-config-daemon/currentconfig ]; then
    report os-version skipped "$value, of the cluster's release, which may be another than the machine was installed with"
elif [ -z "$EXPECTED_RELEASE" ]; then
    report os-version skipped "$value stays: reprovision.controlPlane is keep"
else
    expect os-version "$value" "$EXPECTED_RELEASE"
fi
exit "$failed"
