"""A machine's root directory, and commands that have it as their root.

A command gets a mount namespace of its own in which the host's /usr is bound read-only below the directory; the
namespace of the lab never sees these mounts, so deleting the directory cannot reach the host. They are recursive
because a user namespace may not uncover what is below a mount.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

_LINKS = {
    "bin": "usr/bin",
    "sbin": "usr/sbin",
    "lib": "usr/lib",
    "lib64": "usr/lib64",
    "home": "var/home",
    "root": "var/roothome",
}
_DIRECTORIES = ("usr", "dev", "etc/ssh", "run", "tmp", "var/home/core", "var/roothome", "var/log", "var/usrlocal/bin",
                "var/lib", "proc/sys/kernel", "sys", "opt", "mnt")  # fmt: skip
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_ENTER = """\
set -e
root=$1 name=$2 directory=$3
shift 3
mount --rbind -o ro /usr "$root/usr"
mount --rbind /dev "$root/dev"
mount --bind "$root/var/usrlocal" "$root/usr/local"
# Whoever is root in a user namespace only may call sethostname, but not write the file.
hostname "$name" 2>/dev/null || echo "$name" > /proc/sys/kernel/hostname
cd "$root"
exec chroot . /bin/sh -c 'cd "$1" && shift && exec "$@"' sh "$directory" "$@"
"""
_SUDO = """\
#!/bin/sh
# core may become root without a password on CoreOS; here everybody is.
while [ "${1#-}" != "$1" ]; do shift; done
exec "$@"
"""
_ACCOUNTS = """\
root:x:0:0:root:/root:/bin/sh
core:x:0:0:CoreOS Admin:/var/home/core:/bin/sh
nobody:x:65534:65534::/:/bin/false
"""


def make(root: Path, tools: Mapping[str, Path], os_release: str) -> None:
    """A fresh root directory, as a live system has after its kernel started. `os_release` is /etc/os-release."""
    if root.exists():
        shutil.rmtree(root)
    for name in _DIRECTORIES:
        (root / name).mkdir(parents=True, exist_ok=True)
    for name, target in _LINKS.items():
        if Path("/" + name).exists() or name in ("home", "root"):
            (root / name).symlink_to(target)
    (root / "tmp").chmod(0o1777)
    # As container managers mark their containers for systemd: whoever asks knows that the kernel is not theirs alone.
    (root / "run/systemd").mkdir()
    (root / "run/systemd/container").write_text("simulated\n")
    (root / "etc/passwd").write_text(_ACCOUNTS)
    (root / "etc/group").write_text("root:x:0:\nnogroup:x:65534:\n")
    (root / "etc/os-release").write_text(os_release)
    for name in ("resolv.conf", "hosts", "nsswitch.conf"):
        source = Path("/etc") / name
        if source.exists():
            shutil.copyfile(source, root / "etc" / name)
    sudo = root / "var/usrlocal/bin/sudo"
    sudo.write_text(_SUDO)
    sudo.chmod(0o755)
    for name, program in tools.items():
        _install(program, root / "var/usrlocal/bin" / name)


def _install(tool: Path, place: Path) -> None:
    """A hard link where that is possible: a hundred machines share one binary."""
    try:
        place.hardlink_to(tool.resolve())
    except OSError:
        shutil.copyfile(tool, place)
        place.chmod(0o755)


def has_executable(root: Path, path: str) -> bool:
    """Whether a program is there for the machine: in its directory, or in the /usr it shares."""
    if path.startswith("/usr/local/"):
        return os.access(root / "var/usrlocal" / path.removeprefix("/usr/local/"), os.X_OK)
    if path.startswith(("/usr/", "/bin/", "/sbin/")):
        return os.access(path, os.X_OK)
    return os.access(root / path.lstrip("/"), os.X_OK)


def command(root: Path, hostname: str, argv: list[str], *, directory: str = "/") -> list[str]:
    """The command line that runs `argv` on the machine. It stays one process: signals reach the program."""
    return ["unshare", "--mount", "--uts", "--propagation", "private", "sh", "-c", _ENTER, "sh",
            str(root), hostname, directory, *argv]  # fmt: skip


def environment(extra: dict[str, str]) -> dict[str, str]:
    """The environment of a process of the machine: nothing of ours."""
    return {"PATH": _PATH, "LANG": "C.UTF-8", **extra}
