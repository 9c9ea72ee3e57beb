#!/bin/bash
# Installs this machine to its disk. Runs in the live system, from metal-ipi-install.service; installer.py renders what it
# reads. Then it waits: whoever booted the machine reads the status file over SSH, and reboots it.
#
# Nothing is written before every check has passed. It may be killed, or the power lost, at any moment, and run again:
#   - a finished installation is known by its marker on the boot partition, and is not touched;
#   - one in progress by a claim in the disk's last MiB, where coreos-installer writes nothing. The claim is believed only
#     while the first MiB is empty (coreos-installer writes it after all others), or CoreOS without a marker is there.
# A machine that was installed before is known by its marker on any disk, by the claim, and by `metal-ipi.device` on the
# kernel's command line: the disk that it is installed on, as its resource has it; empty where that is not known, or
# another one is wanted. Its data stays: listed disks are not wiped again, and no other disk is taken without consent.
set -Eeuo pipefail
shopt -s nullglob inherit_errexit
umask 022

# shellcheck source=/dev/null
. /etc/metal-ipi/install.env # CLUSTER MACHINE GENERATION ACCEPT IMAGE_URL IMAGE_SHA256 HOLD
rules=/etc/metal-ipi/install-rules.json
pointer=/etc/metal-ipi/pointer.ign # there only if this live system bootstraps the cluster: docs/adr/0019
by_mac=/etc/metal-ipi/network-by-mac # profiles with @MAC address@ for names of cards: docs/adr/0085
authorities=/etc/metal-ipi/ca.pem # there only if the boot server's authority is none that this system trusts
state=/run/metal-ipi
mib=1048576
device='' stable='' step='looking at the disks' recorded='' before=''
declare -A sizes # of disks, in bytes, by path

status() { # state [reason remedy]
    jq -cn --arg state "$1" --arg generation "$GENERATION" --arg device "$device" --arg stable "$stable" \
        --arg step "$step" --arg reason "${2-}" --arg remedy "${3-}" \
        '{$state, $generation, $device, $stable, $step, $reason, $remedy}' >"$state/install.json.new"
    mv -f "$state/install.json.new" "$state/install.json"
    echo "$1: $step${2:+: $2}${3:+ -> $3}"
}

fail() { # reason remedy [state]
    trap - ERR
    status "${3-failed}" "$1" "$2"
    exit 1
}

kernel_argument() { # name; prints its value, fails where it is not given
    local argument found='' value=''
    for argument in $(</proc/cmdline); do
        case $argument in "$1"=*) found=yes value=${argument#*=} ;; esac
    done
    printf %s "$value"
    [ -n "$found" ]
}

# Every disk as JSON: what lsblk and udev say of it, and in `never` why it is no disk to write to (empty: it may be).
list_disks() {
    local tree path
    tree=$(lsblk --json --bytes --output \
        NAME,PATH,TYPE,SIZE,RO,RM,ROTA,MODEL,VENDOR,SERIAL,HCTL,FSTYPE,PTTYPE,LABEL,MOUNTPOINTS)
    # Starting jq takes longer than its work, so one jq reads all disks: a separator and the path come before each one's
    # properties. udev keeps links in a set without order (systemd, sd-device.c, device_properties_prepare); they are sorted,
    # so that equal lists are equal texts.
    jq -r '.blockdevices[].path' <<<"$tree" | while read -r path; do
        printf '\036%s\n' "$path"
        udevadm info --query=property --name="$path"
    done | jq -Rcs --argjson tree "$tree" '
        ([split("\u001e")[1:][] | split("\n") | .[0] as $path
            | [.[1:][] | split("=") | select(length > 1) | {key: .[0], value: (.[1:] | join("="))}] | from_entries
            | {$path, links: (.DEVLINKS // "" | split(" ") | sort), wwn: .ID_WWN, wwnWithExtension: .ID_WWN_WITH_EXTENSION,
               wwnVendorExtension: .ID_WWN_VENDOR_EXTENSION, serials: [.ID_SERIAL_SHORT, .ID_SCSI_SERIAL]}]
            | INDEX(.path)) as $udev
        | [$tree.blockdevices[] | ([.. | objects | .mountpoints? // [] | .[] | strings]) as $mounted
            | ([(.children // [])[] | .. | objects | .type? // empty | select(. != "part")] | unique) as $above
            | . + $udev[.path]
            | .serials += [.serial]
            | .never = (
                if .type != "disk" then "it is not a disk but \(.type)"
                elif .name | test("^z?ram\\d") then "it is memory"
                elif .rm then "it is removable"
                elif .ro then "it is read-only"
                elif .size == 0 then "it has no size"
                elif ($mounted | length) > 0 then "the running system uses it (\($mounted | join(", ")))"
                elif ($above | any(. == "mpath" or startswith("raid") or . == "md")) or .fstype == "mpath_member" then
                    "it is part of multipath or RAID (\([$above[], .fstype // empty] | join(", "))), which is not supported"
                elif ($above | length) > 0 then "a \($above | join(", ")) device is active on it"
                else "" end)]'
}

# The disks that meet a set of rules; all rules are to be met.
matching() { # rules
    jq -c --argjson rules "$1" '
        def meets($rule):
            . as $disk | $rule.value as $wanted | $rule.key
            | if . == "deviceName" then $disk.links | index([$wanted]) != null
              elif . == "byId" then $disk.links | index(["/dev/disk/by-id/\($wanted)"]) != null
              elif . == "serial" then $disk.serials | index([$wanted]) != null
              elif . == "model" or . == "vendor" then $disk[.] // "" | contains($wanted)
              elif . == "minSize" then $disk.size >= $wanted * 1073741824
              elif . == "maxSize" then $disk.size <= $wanted * 1073741824
              elif . == "rotational" then $disk.rota == $wanted
              elif . == "wwn" or . == "wwnWithExtension" or . == "wwnVendorExtension" or . == "hctl" then
                  $disk[.] == $wanted
              elif . == "smallest" then true
              else error("there is no rule \(.)") end;
        [.[] | select(.never == "") | . as $disk | select($rules | to_entries | all(. as $rule | $disk | meets($rule)))]
        | if $rules.smallest and length > 0 then (map(.size) | min) as $least | map(select(.size == $least)) else . end
        ' <<<"$disks"
}

described() { # reads disks
    jq -r 'map("\(.path) (" + ([
        "\(.size / 1073741824 * 10 | round / 10) GiB",
        (if .vendor then "vendor \(.vendor)" else empty end), (if .model then "model \(.model)" else empty end),
        (.serials | map(strings) | unique | if length > 0 then "serial \(join(" or "))" else empty end),
        (if .wwn then "wwn \(.wwn)" else empty end),
        (if .wwnWithExtension then "wwnWithExtension \(.wwnWithExtension)" else empty end),
        (if .hctl then "hctl \(.hctl)" else empty end),
        (if .rota then "rotational" else "not rotational" end),
        (.links | map(select(startswith("/dev/disk/by-id/")) | ltrimstr("/dev/disk/by-id/"))
            | if length > 0 then "byId \(join(" or "))" else empty end),
        (if .never != "" then "never: \(.never)" else empty end)] | join(", ")) + ")")
        | if length > 0 then join("; ") else "none at all" end'
}

# Whether the kernel has had a minute to find the disks of controllers that start slowly. ironic-python-agent 13.0.0 waits
# half as long at most, and takes the first list with a disk that fits (config.py, disk_wait_attempts and disk_wait_delay).
is_long_up() {
    local up rest
    read -r up rest </proc/uptime
    [ "${up%.*}" -ge 60 ]
}

choose_device() {
    local wanted found seen='' steady=0 since=$SECONDS waited=0 chosen listed path size
    wanted=$(jq -c .device "$rules")
    while :; do # a controller may still be starting, and a rule mean another disk until then
        disks=$(list_disks)
        found=$(matching "$wanted")
        if [ "$disks" = "$seen" ]; then steady=$((steady + 1)); else steady=0 since=$SECONDS seen=$disks; fi
        if [ "$waited" -ge "${DISK_WAIT:-30}" ]; then break; fi
        if [ -n "$recorded" ]; then
            if jq -e --arg link "$recorded" 'any(.links | index([$link]))' <<<"$found" >/dev/null; then break; fi
        elif [ "$found" != '[]' ] && { [ "$steady" -ge 5 ] || [ $((SECONDS - since)) -ge "${DISK_STEADY:-5}" ] ||
            is_long_up; }; then # a look takes seconds itself where the machine is slow
            break
        fi
        sleep 1
        waited=$((waited + 1))
    done
    case $(jq length <<<"$found") in
    1) ;;
    0) fail "no disk meets the rules $wanted; the disks are: $(described <<<"$disks")" \
        'correct boot.install.device (or the installDevice of this server)' ;;
    *) fail "several disks meet the rules $wanted: $(described <<<"$found"); all disks: $(described <<<"$disks")" \
        'add rules to boot.install.device (or to the installDevice of this server) until only one disk meets them' ;;
    esac
    chosen=$(jq -r '.[0] | tojson, .path, (.path as $path | .links | [(.[] | select(test("/by-id/(wwn-|nvme-eui)"))),
        (.[] | select(test("/by-id/"))), (.[] | select(test("/by-path/"))), $path][0])' <<<"$found")
    {
        read -r disk
        read -r device
        read -r stable
    } <<<"$chosen"
    listed=$(jq -r '.[] | "\(.size) \(.path)"' <<<"$disks")
    while read -r size path; do sizes[$path]=$size; done <<<"$listed"
}

choose_others() { # which other disks are to be wiped
    local sets set found path keep=''
    others=()
    sets=$(jq -c '.wipe[]' "$rules")
    [ -n "$sets" ] || return 0
    if [ -n "$before" ] && [ "$ACCEPT" != wipe ]; then keep=yes; fi
    while read -r set; do
        found=$(matching "$set" | jq -r '.[].path')
        [ -n "$found$keep" ] || fail "no disk meets the rules $set of wipeDisks; the disks are: $(described <<<"$disks")" \
            'correct wipeDisks'
        for path in $found; do
            [ "$path" != "$device" ] ||
                fail "the rules $set of wipeDisks select $device, the disk to install to" 'correct wipeDisks'
            if [ -z "$keep" ] || is_ours "$(marker_of "$path")"; then
                others+=("$path")
            else
                echo "$path is in wipeDisks, but is not wiped, because this machine was installed before"
            fi
        done
    done <<<"$sets"
    mapfile -t others < <(printf '%s\n' "${others[@]}" | sort -u | sed '/^$/d')
}

boot_partition() { # disk; prints the device of the file system with label boot, if there is one
    lsblk --json --bytes --output NAME,PATH,TYPE,LABEL "$1" |
        jq -r '[.blockdevices[].children // [] | .[] | select(.type == "part" and .label == "boot").path][0] // empty'
}

with_boot() { # disk, mount options, command...
    local partition options=$2 result=0
    partition=$(boot_partition "$1")
    shift 2
    [ -n "$partition" ] || return 1
    mkdir -p "$state/boot"
    mount -o "$options,nodev,nosuid,noexec" "$partition" "$state/boot" || return 1
    "$@" || result=$?
    umount "$state/boot"
    return "$result"
}

read_marker() { cat "$state/boot/metal-ipi/installation.json"; }
unfinished() { [ -d "$state/boot/ostree" ] && [ ! -e "$state/boot/metal-ipi/installation.json" ]; }
write_marker() {
    local marker=$state/boot/metal-ipi/installation.json
    mkdir -p "${marker%/*}" &&
        jq -cn --arg cluster "$CLUSTER" --arg machine "$MACHINE" --arg generation "$GENERATION" \
            '{$cluster, $machine, $generation}' >"$marker.new" &&
        sync "$marker.new" && mv -f "$marker.new" "$marker" && sync -f "$marker"
}

claim() { printf 'metal-ipi installs %s of %s here%s\n' "$MACHINE" "$CLUSTER" "${1:+ again}"; } # [whether again]
claim_on() { last_mib "$1" | tr -d '\0'; }
claimed() { local found; found=$(claim_on "$1"); [ "$found" = "$(claim)" ] || [ "$found" = "$(claim again)" ]; }
first_mib() { dd if="$1" bs="$mib" count=1 status=none; }
last_mib() { dd if="$1" bs="$mib" skip=$((${sizes[$1]} - mib)) iflag=skip_bytes status=none; }
empty() { cmp -s -n "$mib" - /dev/zero; }
write_first_mib() { write_mib "$1" 0; }
write_last_mib() { write_mib "$1" $((${sizes[$1]} - mib)); }
write_mib() { # disk offset; reads what stands in front, the rest becomes zero
    cat >"$state/mib"
    truncate -s "$mib" "$state/mib"
    dd if="$state/mib" of="$1" bs="$mib" seek="$2" oflag=seek_bytes conv=notrunc,fsync status=none
}

marker_of() { # disk; what its boot partition says of itself, nothing where it says nothing
    # Without its journal's replay nothing is written; what is claimed is ours, and may be repaired.
    with_boot "$1" ro,norecovery read_marker 2>/dev/null ||
        { claimed "$1" && with_boot "$1" ro read_marker 2>/dev/null; } || true
}

is_ours() { # marker
    [ -n "$1" ] && # jq -e has nothing against no input at all
        jq -e --arg cluster "$CLUSTER" --arg machine "$MACHINE" '.cluster == $cluster and .machine == $machine' \
            <<<"$1" >/dev/null 2>&1
}

begun() { # disk; whether an installation of this machine was begun there and did not end
    claimed "$1" && { first_mib "$1" | empty || with_boot "$1" ro unfinished; }
}

# What is on the disk, in words; nothing for an empty one.
content() {
    local found
    found=$({
        wipefs --noheadings --output TYPE "$device" | sed 's/^ */signature of /'
        jq -r '(.children // [])[] | .. | objects | select(.path?) |
            "\(.path) with \(.fstype // "unknown content")\(if .label then " \(.label)" else "" end)"' <<<"$disk"
    } | paste -sd, | sed 's/,/, /g')
    if [ -z "$found" ] && ! { first_mib "$device" | empty && last_mib "$device" | empty; }; then
        found='data of no known kind'
    fi
    printf %s "$found"
}

installed_before() {
    local path
    if [ -n "$before" ]; then return; fi
    while read -r path; do
        if is_ours "$(marker_of "$path")"; then before=yes; fi
    done < <(jq -r '.[] | select(.never == "").path' <<<"$disks")
    if begun "$device" && [ "$(claim_on "$device")" = "$(claim again)" ]; then before=yes; fi
}

# Whether the disk may be overwritten; ends with "done" when that has happened already.
check_content() {
    local marker found
    marker=$(marker_of "$device")
    if is_ours "$marker"; then
        if [ "$(jq -r .generation <<<"$marker")" = "$GENERATION" ]; then
            if claimed "$device"; then write_last_mib "$device" </dev/null; fi # power was lost in the very last moment
            step='it was installed already'
            status 'done'
            exit 0
        fi
        return
    fi
    if [ "$ACCEPT" = wipe ] || begun "$device"; then return; fi
    check_recorded
    if [ "$ACCEPT" = new ] && [ -z "$before" ]; then return; fi
    found=$(content)
    if [ -n "$found" ]; then
        fail "$device ($stable) is not empty, and not an installation of this machine: $found${marker:+; its marker is: $marker}" \
            "look at its content; if it may be deleted, $consent"
    fi
}

check_recorded() { # the rule may choose another disk than before because that one is late, or dead
    local there
    if [ -z "$recorded" ] || jq -e --arg link "$recorded" '.links | index([$link])' <<<"$disk" >/dev/null; then
        return 0
    fi
    there=$(jq -r --arg link "$recorded" '.[] | select(.links | index([$link])).path' <<<"$disks")
    if [ -n "$there" ]; then
        fail "this machine is installed on $recorded ($there), but the rules $(jq -c .device "$rules") now select $device ($stable)" \
            "name the right disk in boot.install.device (or the installDevice of this server), by byId"
    fi
    fail "this machine is installed on $recorded, which is missing; the rules $(jq -c .device "$rules") now select $device\
 ($stable); the disks are: $(described <<<"$disks")" "find out why that disk is missing; if it will not come back, $consent"
}

# With two file systems labelled boot the first boot of CoreOS ends in an error (coreos-unique-boot.service), or the
# firmware starts the wrong one.
check_others() {
    local other marker what
    while read -r other; do
        if [[ " ${others[*]} " = *" $other "* ]]; then continue; fi
        marker=$(marker_of "$other")
        what='a file system with label boot'
        if is_ours "$marker"; then
            what="an earlier installation of this machine ($(jq -r .generation <<<"$marker"))"
        elif [ -n "$marker" ]; then
            what="an installation with the marker $marker"
        fi
        fail "besides $device, the disk to install to, another disk has $what, and CoreOS does not start with two:\
 $(jq -c --arg path "$other" 'map(select(.path == $path))' <<<"$disks" | described)" \
            'if its content may be deleted, list that disk in wipeDisks; otherwise take it out of the machine'
    done < <(jq -r --arg device "$device" '.[] | select(.path != $device)
        | select([.. | objects | select(.label? == "boot")] | length > 0).path' <<<"$disks")
}

check_expiry() { # whoever published or started this says on the kernel's command line until when it may be used
    local not_after now
    not_after=$(kernel_argument metal-ipi.not-after) || return 0
    [[ $not_after =~ ^[0-9]+$ ]] ||
        fail "the installer's end of validity is not a number: '$not_after'" 'run up again' expired
    now=$(date +%s)
    # A clock that is behind does no harm; one that is ahead is told.
    [ "$now" -le "$not_after" ] || fail \
        "this installer was valid until $(date -u -d "@$not_after" +%FT%TZ), and the machine's clock says $(date -u +%FT%TZ)" \
        'run up again for a new one; if the clock is wrong, correct it' expired
}

# Whoever booted the machine looks at it here, together with the others (docs/adr/0095), and leaves `go`, or why not and
# what to do, in the file.
await_verdict() {
    local verdict=$state/verdict reason remedy
    [ -n "$HOLD" ] || return 0
    step='waiting to be checked together with the other machines'
    status held
    until [ -e "$verdict" ]; do sleep 1; done
    { read -r reason; read -r remedy || true; } <"$verdict"
    rm -f "$verdict" # the next start is looked at again
    [ "$reason" = go ] || fail "$reason" "$remedy"
    # A look that goes on (provider/live_checks/probe.sh) writes old blocks back: none may from here on.
    exec 8>"$state/probe.lock"
    flock 8
}

fetch_image() {
    image=()
    if [ -z "$IMAGE_URL" ]; then
        image=(--offline) # the image that the live system carries, and never one from elsewhere
        return
    fi
    local file=/var/tmp/metal-ipi-image actual trust=() system
    if [ -e "$authorities" ]; then # curl takes one file, which then stands for all
        for system in /etc/pki/tls/certs/ca-bundle.crt "$authorities"; do
            if [ -e "$system" ]; then cat "$system"; fi
        done >"$state/ca.pem"
        trust=(--cacert "$state/ca.pem")
    fi
    step="downloading $IMAGE_URL"
    status installing
    curl --fail --silent --show-error --location --connect-timeout 20 --speed-limit 1000 --speed-time 60 \
        "${trust[@]}" --retry "${DOWNLOAD_RETRIES:-8}" --retry-all-errors --output "$file" "$IMAGE_URL" \
        2>"$state/curl.err" ||
        fail "the disk image cannot be downloaded from $IMAGE_URL: $(tail -n 1 "$state/curl.err")" \
            "check that the machine reaches the server, and that the stream names an existing file"
    read -r actual _ < <(sha256sum "$file")
    [ "$actual" = "$IMAGE_SHA256" ] || fail \
        "the disk image from $IMAGE_URL has SHA-256 $actual, but the stream metadata say $IMAGE_SHA256" \
        'correct the stream, or the file on the server'
    image=(--image-file "$file" --insecure) # it has no signature file; its hash was checked
}

wipe_others() {
    local other part
    for other in "${others[@]}"; do
        step="wiping $other"
        status installing
        while read -r part; do wipefs --all --quiet "$part"; done < <(jq -r --arg path "$other" \
            '.[] | select(.path == $path) | (.children // [])[] | .. | objects | .path? // empty' <<<"$disks")
        wipefs --all --quiet "$other"
        write_first_mib "$other" </dev/null
        write_last_mib "$other" </dev/null
    done
}

# The installed system's profiles are bound to names of interfaces, which are known here only. They become files of its
# first boot's initramfs (coreos-installer, network-dir), and of its Ignition (docs/adr/0030).
bind_network() {
    local card mac file text config profiles='[]'
    local -A names=()
    if [ ! -d "$by_mac" ]; then return; fi
    step='finding the network cards'
    for card in /sys/class/net/*; do
        if [ ! -e "$card/device" ]; then continue; fi # bonds and VLANs have none
        read -r mac <"$card/address"
        if [ -e "$card/bonding_slave/perm_hwaddr" ]; then read -r mac <"$card/bonding_slave/perm_hwaddr"; fi
        names[$mac]=${card##*/}
    done
    mkdir -p "${by_mac%-by-mac}"
    for file in "$by_mac"/*; do
        text=$(<"$file")
        while [[ $text =~ @([0-9a-f:]{17})@ ]]; do
            mac=${BASH_REMATCH[1]}
            [ -n "${names[$mac]-}" ] || fail "this machine has no network card with the MAC address $mac; it has:\
 $(for mac in "${!names[@]}"; do echo "$mac (${names[$mac]})"; done | sort | paste -sd, | sed 's/,/, /g')" \
                'correct the interfaces of this server in platform.servers'
            text=${text//"@$mac@"/"${names[$mac]}"}
        done
        (umask 077 && printf '%s\n' "$text" >"${by_mac%-by-mac}/${file##*/}")
        profiles=$(jq -c --arg name "${file##*/}" --arg text "$text" '. + [{overwrite: true, mode: 384,
            path: "/etc/NetworkManager/system-connections/\($name)",
            contents: {source: "data:;base64,\("\($text)\n" | @base64)"}}]' <<<"$profiles")
    done
    for config in /etc/metal-ipi/disk.ign "$pointer"; do
        if [ ! -e "$config" ]; then continue; fi
        (
            umask 077 # it may have keys
            jq -c --argjson profiles "$profiles" '.storage.files |= ((. // [] | map(select(.path
                | IN($profiles[].path) | not))) + $profiles)' "$config" >"$state/ignition.new"
        )
        cat "$state/ignition.new" >"$config"
    done
}

# bootkube leaves the Ignition of a control plane machine with all that the cluster is by then. Our pointer merges it.
await_bootkube() {
    local master=/opt/openshift/master.ign
    ignition=()
    [ -e "$pointer" ] || return 0
    step='waiting until bootkube has formed the cluster'
    status waiting
    until [ -e "${master%/*}/.bootkube.done" ]; do sleep 3; done
    [ -s "$master" ] ||
        fail "bootkube is done, but left no $master" 'look at journalctl -u bootkube on the live system'
    (
        umask 077 # the cluster's keys are in it
        gzip -c "$master" | base64 -w 0 >"$state/master"
        jq -c --rawfile master "$state/master" \
            '.ignition.config.merge += [{source: "data:;base64,\($master)", compression: "gzip"}]' \
            "$pointer" >"$state/disk.ign"
    )
    ignition=(--ignition-file "$state/disk.ign")
}

claim_device() {
    step="claiming $device"
    status installing
    claim "$before" | write_last_mib "$device"
    write_first_mib "$device" </dev/null
}

install_system() {
    local options=("${ignition[@]}") file
    for file in /etc/coreos/installer.d/*; do options+=(--config-file "$file"); done
    step="coreos-installer writes $device"
    status installing
    coreos-installer install "${options[@]}" "${image[@]}" "$device" >"$state/coreos-installer.log" 2>&1 ||
        fail "coreos-installer failed: $(tr '\r' '\n' <"$state/coreos-installer.log" | tail -n 3 | paste -sd' ')" \
            'correct the cause and run up again; the disk contains no system now'
}

mark_installation() {
    local waited=0
    step='writing the marker'
    status installing
    until udevadm settle && [ -n "$(boot_partition "$device")" ]; do
        [ "$waited" -lt 15 ] || fail "$device has no file system with label boot after the installation" \
            'this is not a CoreOS image, or its partitions are not visible: look at lsblk on the live system'
        sleep 1
        waited=$((waited + 1))
    done
    with_boot "$device" rw write_marker
    write_last_mib "$device" </dev/null
}

mkdir -p "$state"
exec 9>"$state/lock"
flock 9
trap 'fail "install.sh failed at line $LINENO: $BASH_COMMAND" "look at journalctl -u metal-ipi-install on the live system"' ERR
status waiting
case $ACCEPT in # empty, wipe, or new: whatever is on a machine's disks that was just ordered
new) consent='replace the machine (pulumi up --replace with its URN)' ;;
*) consent='give consent for this server (consent: wipe)' ;;
esac
if recorded=$(kernel_argument metal-ipi.device); then before=yes; fi
udevadm settle
choose_device
installed_before
check_content
check_expiry
choose_others
check_others
bind_network
await_verdict
fetch_image
await_bootkube
claim_device
wipe_others
install_system
mark_installation
step='installed'
status 'done'
