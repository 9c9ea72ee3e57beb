"""What is in the node image: every file that it takes from Debian is named here, shared libraries follow by themselves.

Lean is the point. Machines are emulated in software, two processors carry six of them at once, and each megabyte is
transferred, hashed and unpacked by every one.
"""

from __future__ import annotations

KERNEL_PACKAGE = "linux-image-cloud-amd64"

PACKAGES = (
    KERNEL_PACKAGE,
    "bash",
    "busybox-static",
    "curl",
    "ignition",
    "iproute2",
    "jq",
    "libnss-myhostname",
    "libpam-modules",
    "nftables",
    "openssh-client",
    "openssh-server",
    "passwd",
    "sudo",
    "systemd",
)

IGNITION = "usr/lib/dracut/modules.d/30ignition/ignition"

MODULES = ("virtio_pci", "virtio_net", "nf_tables", "nft_reject_inet")
"""Kernel modules that the initramfs loads; what they depend on comes before them."""

INITRAMFS_APPLETS = (
    *("cat", "chgrp", "chmod", "chroot", "cp", "insmod", "ip", "mkdir", "mount", "rm", "sh", "sha512sum", "sleep"),
    *("switch_root", "tar", "udhcpc", "wget"),
)

SETUID = ("usr/bin/sudo",)

PROGRAMS = (
    "usr/bin/bash",
    "usr/bin/busybox",
    "usr/bin/curl",
    "usr/bin/ip",
    "usr/bin/journalctl",
    "usr/bin/jq",
    "usr/bin/ssh-keygen",
    "usr/bin/sudo",
    "usr/bin/systemctl",
    "usr/bin/systemd-tmpfiles",
    "usr/lib/openssh/sshd-session",
    "usr/lib/openssh/sshd-auth",
    "usr/lib/systemd/systemd",
    "usr/lib/systemd/systemd-executor",
    "usr/lib/systemd/systemd-journald",
    "usr/lib/systemd/systemd-shutdown",
    "usr/lib/x86_64-linux-gnu/libnss_myhostname.so.2",
    "usr/lib/x86_64-linux-gnu/security/pam_permit.so",
    "usr/libexec/sudo/libsudo_util.so.0",
    "usr/libexec/sudo/sudoers.so",
    "usr/sbin/groupadd",
    "usr/sbin/nft",
    "usr/sbin/sshd",
    "usr/sbin/useradd",
    "usr/sbin/usermod",
)
"""Programs of the root file system. Not every Debian release has each of them (sshd-session came with Debian 13)."""

UNITS = (
    *("basic.target", "boot-complete.target", "default.target", "emergency.target", "exit.target", "final.target"),
    *("first-boot-complete.target", "graphical.target", "halt.target", "local-fs-pre.target", "local-fs.target"),
    *("multi-user.target", "network-online.target", "network-pre.target", "network.target", "nss-lookup.target"),
    *("nss-user-lookup.target", "paths.target", "poweroff.target", "reboot.target", "remote-fs.target"),
    *("shutdown.target", "slices.target", "sockets.target", "swap.target", "sysinit.target", "time-sync.target"),
    *("timers.target", "umount.target", "user.slice"),
    *("systemd-journald.service", "systemd-journald.socket", "systemd-journald-dev-log.socket"),
    *("systemd-halt.service", "systemd-poweroff.service", "systemd-reboot.service"),
)
"""Units of systemd's own. The rest (udev, logind, getty, networkd, ...) would only cost time on these machines."""

WANTED = {
    "sockets.target": ("systemd-journald.socket", "systemd-journald-dev-log.socket"),
    "sysinit.target": ("systemd-journald.service",),
}

ROOTFS_APPLETS = (
    *("awk", "base64", "basename", "cat", "chgrp", "chmod", "chown", "cp", "cut", "date", "dd", "df", "dirname"),
    *(
        "dmesg",
        "du",
        "echo",
        "env",
        "expr",
        "false",
        "find",
        "free",
        "grep",
        "gunzip",
        "gzip",
        "head",
        "hostname",
        "id",
    ),
    *("kill", "less", "ln", "ls", "md5sum", "mkdir", "mktemp", "mount", "mv", "nslookup", "ping", "poweroff"),
    *("printenv", "printf", "ps", "pwd", "readlink", "realpath", "reboot", "rm", "rmdir", "sed", "seq", "sh"),
    *("sha256sum", "sha512sum", "sleep", "sort", "stat", "stty", "sync", "tail", "tar", "tee", "test", "timeout"),
    *(
        "touch",
        "tr",
        "true",
        "tty",
        "umount",
        "uname",
        "uniq",
        "uptime",
        "vi",
        "wc",
        "wget",
        "which",
        "whoami",
        "xargs",
    ),
)
