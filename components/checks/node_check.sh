# Checks one node and prints one line per check: name, TAB, status (passed, failed, skipped), TAB, what was read here.
# Ends with 1 when a check failed. Expected values come before this text as shell variables. Reads only.
set -u
failed=0
report() { # name status observed
    printf '%s\t%s\t%s\n' "$1" "$2" "$(printf '%s' "$3" | tr '\t\n' '  ' | cut -c1-300)"
    if [ "$2" = failed ]; then
        failed=1
        printf '%s failed: %s: %s\n' "$EXPECTED_HOSTNAME" "$1" "$4" >&2
    fi
}
expect() { # name observed expected
    if [ "$2" = "$3" ]; then report "$1" passed "$2"; else report "$1" failed "$2" "read '$2', expected '$3'"; fi
}
attribute() { sed -n "s/^AFTERBURN_PACKET_$1=//p" /run/metadata/afterburn 2>/dev/null | tr -d '"'; }

result=/etc/.ignition-result.json
found=$(sudo -n cat "$result" 2>&1 | tr -d ' \n') # Ignition keeps it to root
case $found in
*'"userConfigProvided":true'*) report ignition passed "$found" ;;
*) report ignition failed "$found" "$result does not say that Ignition applied our config to this node: '$found'" ;;
esac

platform=$(tr ' ' '\n' </proc/cmdline | sed -n 's/^ignition\.platform\.id=//p')
expect platform-karg "$platform" "$EXPECTED_PLATFORM"

for wanted in $EXPECTED_KERNEL_ARGUMENTS; do
    if tr ' ' '\n' </proc/cmdline | grep -qxF -- "$wanted"; then
        report "karg $wanted" passed "$wanted"
    else
        report "karg $wanted" failed absent "it is not on the kernel's command line"
    fi
done

# afterburn.service may still be waiting for the metadata service when SSH already answers.
attributes=/run/metadata/afterburn
waited=0
while [ ! -s "$attributes" ] && command -v afterburn >/dev/null && [ "$waited" -lt "$AFTERBURN_WAIT" ]; do
    sleep 1
    waited=$((waited + 1))
done
id=$(sed -n 's/^ID=//p' /etc/os-release | tr -d "\"'")
if [ -s "$attributes" ] || command -v afterburn >/dev/null; then
    expect afterburn-public-ipv4 "$(attribute IPV4_PUBLIC_0)" "$EXPECTED_PUBLIC_IPV4"
    expect afterburn-private-ipv4 "$(attribute IPV4_PRIVATE_0)" "$EXPECTED_PRIVATE_IPV4"
    expect afterburn-hostname "$(attribute HOSTNAME)" "$EXPECTED_METADATA_HOSTNAME"
else
    case $id in
    rhcos | scos | fedora | rhel | centos) report afterburn failed absent "$id comes with Afterburn, this node has none" ;;
    *) report afterburn skipped "the image of this node ($id) was built without Afterburn" ;;
    esac
fi

expect hostname "$(cat /proc/sys/kernel/hostname)" "$EXPECTED_HOSTNAME"
expect os-version "$(sed -n 's/^OSTREE_VERSION=//p' /etc/os-release | tr -d "\"'")" "$EXPECTED_RELEASE"
exit "$failed"
