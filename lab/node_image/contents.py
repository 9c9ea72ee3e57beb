"""What is in the node image: every file that it takes from Debian is named here, shared libraries follow by themselves.

Lean is the point. Machines are emulated in software, two processors carry six of them at once, and each megabyte is
transferred, hashed and unpacked by every one.
"""

from __future__ import annotations

KERNEL_PACKAGE = "linux-image-cloud-amd64"

PACKAGES = (
    *("linux-image-cloud-amd64", "bash", "busybox-static", "coreutils", "curl", "diffutils", "e2fsprogs"),
    *("fdisk", "ignition", "iproute2", "iputils-ping", "jq", "kexec-tools", "libc-bin", "libnss-myhostname"),
    "libpam-modules",
    *("network-manager", "nftables"),
    *("openssh-client", "openssh-server", "passwd", "sudo", "systemd", "udev", "util-linux"),
)

TOOLS = ("e2fsprogs", "grub-pc-bin", "mtools", "zstd")
"""Packages of what builds the disk image; nothing of them but GRUB is in it."""

ISOLINUX = (
    ("isolinux", "usr/lib/ISOLINUX/isolinux.bin"),
    ("syslinux-common", "usr/lib/syslinux/modules/bios/ldlinux.c32"),
)
"""The boot loader that a BIOS starts from the live ISO: packages, and the files that are needed of them."""

SIGNED = ("grub-efi-amd64-signed", "shim-signed")
"""Boot loaders that UEFI firmware starts, also with Secure Boot: shim is signed by Microsoft, GRUB by Debian."""

IGNITION = "usr/lib/dracut/modules.d/30ignition/ignition"

MODULES = ("virtio_pci", "virtio_net", "nf_tables", "nft_reject_inet", "bridge")
"""Kernel modules that the initramfs loads; what they depend on comes before them."""

DISK_MODULES = ("virtio_blk", "virtio_scsi", "sd_mod")
"""Those that it loads on a machine that has disks. ext4 is in the kernel."""

NETWORK_MODULES = ("bonding", "8021q")
"""Those for NetworkManager, where a machine's profiles are for it."""

INITRAMFS_APPLETS = (
    *("cat", "chgrp", "chmod", "chroot", "cp", "grep", "hostname", "insmod", "ip", "ln", "mkdir", "mount"),
    *("readlink", "rm", "sh", "sha512sum", "sleep", "stat", "switch_root", "tar", "udhcpc", "umount", "wget"),
)

SETUID = ("usr/bin/sudo",)

PROGRAMS = (
    *("usr/bin/bash", "usr/bin/busybox", "usr/bin/cmp", "usr/bin/curl", "usr/bin/date", "usr/bin/dd"),
    *("usr/bin/flock", "usr/bin/getent", "usr/bin/ip", "usr/bin/journalctl", "usr/bin/jq", "usr/bin/lsblk"),
    *(
        "usr/bin/partx",
        "usr/bin/paste",
        "usr/bin/ping",
        "usr/bin/ssh-keygen",
        "usr/bin/sudo",
        "usr/bin/sync",
        "usr/bin/systemctl",
    ),
    *("usr/bin/systemd-machine-id-setup", "usr/bin/systemd-tmpfiles", "usr/bin/truncate", "usr/bin/udevadm"),
    *("usr/lib/openssh/sshd-session", "usr/lib/openssh/sshd-auth", "usr/lib/systemd/systemd"),
    *("usr/lib/systemd/systemd-executor", "usr/lib/systemd/systemd-journald"),
    *("usr/lib/systemd/systemd-shutdown", "usr/lib/udev/scsi_id"),
    *("usr/lib/x86_64-linux-gnu/libnss_myhostname.so.2", "usr/lib/x86_64-linux-gnu/security/pam_permit.so"),
    *("usr/libexec/sudo/libsudo_util.so.0", "usr/libexec/sudo/sudoers.so", "usr/sbin/blkid"),
    *("usr/sbin/blockdev", "usr/sbin/groupadd", "usr/sbin/kexec", "usr/sbin/nft", "usr/sbin/resize2fs"),
    *("usr/sbin/sfdisk", "usr/sbin/sshd", "usr/sbin/useradd", "usr/sbin/usermod", "usr/sbin/wipefs"),
)
"""Programs of the root file system."""

NOT_IN_EVERY_RELEASE = ("usr/lib/openssh/sshd-session", "usr/lib/openssh/sshd-auth", "usr/lib/systemd/systemd-executor")
"""Programs that came with Debian 13."""

UNITS = (
    *("basic.target", "boot-complete.target", "default.target", "emergency.target", "exit.target"),
    *("final.target", "first-boot-complete.target", "graphical.target", "halt.target", "local-fs-pre.target"),
    *("local-fs.target", "multi-user.target", "network-online.target", "network-pre.target", "network.target"),
    *("nss-lookup.target", "nss-user-lookup.target", "paths.target", "poweroff.target", "reboot.target"),
    *("remote-fs.target", "shutdown.target", "slices.target", "sockets.target", "swap.target", "sysinit.target"),
    *("time-sync.target", "timers.target", "umount.target", "user.slice", "systemd-journald.service"),
    *("systemd-journald.socket", "systemd-journald-dev-log.socket", "systemd-halt.service"),
    *("systemd-poweroff.service", "systemd-reboot.service", "kexec.target", "systemd-kexec.service"),
    *("systemd-machine-id-commit.service", "systemd-udevd.service", "systemd-udevd-control.socket"),
    "systemd-udevd-kernel.socket",
)
"""Units of systemd's own. The rest (logind, getty, networkd, ...) would only cost time on these machines; udev and what
keeps the machine's identity start where there are disks: files/initramfs/init sees to it."""

UDEV_RULES = ("60-block.rules", "60-persistent-storage.rules")
"""What names disks. Without the others network interfaces keep the kernel's names."""

WANTED = {
    "sockets.target": ("systemd-journald.socket", "systemd-journald-dev-log.socket"),
    "sysinit.target": ("systemd-journald.service",),
    "multi-user.target": ("coreos-ignition-firstboot-complete.service",),
}

ROOTFS_APPLETS = (
    *("awk", "base64", "basename", "cat", "chgrp", "chmod", "chown", "cp", "cut", "df", "dirname"),
    *("dmesg", "du", "echo", "env", "expr", "false", "find", "free", "grep", "gunzip", "gzip", "head"),
    *("hostname", "id", "kill", "less", "ln", "ls", "md5sum", "mkdir", "mktemp", "mount", "mv", "nslookup"),
    *("poweroff", "printenv", "printf", "ps", "pwd", "readlink", "realpath", "reboot", "rm", "rmdir"),
    *("sed", "seq", "sh", "sha256sum", "sha512sum", "sleep", "sort", "stat", "stty", "tail", "tar", "tee"),
    *("test", "timeout", "touch", "tr", "true", "tty", "umount", "uname", "uniq", "uptime", "vi", "wc", "wget"),
    *("which", "whoami", "xargs"),
)
