"""A machine's root directory, and commands that have it as their root.

A command gets a mount namespace of its own in which the host's /usr is bound read-only below the directory; the
namespace of the lab never sees these mounts, so deleting the directory cannot reach the host. They are recursive
because a user namespace may not uncover what is below a mount.

A machine with disks has a /dev of its own: its disks are there, as files, beside the host's harmless devices.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lab.machines.simulated.disk import Disks

_LINKS = {
    "bin": "usr/bin",
    "sbin": "usr/sbin",
    "lib": "usr/lib",
    "lib64": "usr/lib64",
    "home": "var/home",
    "root": "var/roothome",
}
_VOLATILE = ("run", "tmp", "proc", "dev")
_DIRECTORIES = (*_VOLATILE, "usr", "boot", "etc/ssh", "var/home/core", "var/roothome", "var/log", "var/usrlocal/bin",
                "var/lib", "var/tmp", "sys", "opt", "mnt")  # fmt: skip
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_ENTER = """\
set -e
root=$1 name=$2 directory=$3
shift 3
# One program for all mounts: with one for each, they were most of what a machine's many short processes cost.
mount --all --fstab "$root/run/simulated/mounts"
# Whoever is root in a user namespace only may call sethostname, but not write the file.
{ echo "$name" > /proc/sys/kernel/hostname; } 2>/dev/null || hostname "$name"
cd "$root"
exec chroot . /bin/sh -c 'cd "$1" && shift && exec "$@"' sh "$directory" "$@"
"""
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
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


@dataclass(frozen=True, kw_only=True)
class System:
    """The running system of a machine, as its processes see it."""

    root: Path
    hostname: str
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    """Environment variables of every process."""
    filesystems: Path | None = None
    """The directory with the file systems of its disks; None without disks."""
    boot: Path | None = None
    """The directory that is mounted at /boot; None for a live system."""

    async def start(
        self, argv: Sequence[str], variables: Mapping[str, str], *, directory: str, stdin: int, stderr: int
    ) -> asyncio.subprocess.Process:
        """Run a program on the machine, in a session of its own; what it says goes into a pipe, and it ends with us.

        It stays one process: signals reach the program. Its environment has nothing of ours.
        """
        table = self.root / "run/simulated/mounts"
        table.parent.mkdir(exist_ok=True)
        fresh = table.with_suffix(".new")
        fresh.write_text(self._mounts())
        fresh.replace(table)  # another process may be reading it
        return await asyncio.create_subprocess_exec(
            *("setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--uts", "--propagation", "private"),
            *("sh", "-c", _ENTER, "sh", self.root, self.hostname, directory, *argv),
            stdin=stdin,
            stdout=asyncio.subprocess.PIPE,
            stderr=stderr,
            env={"PATH": _PATH, "LANG": "C.UTF-8", **self.variables, **variables},
            start_new_session=True,
        )

    def _mounts(self) -> str:
        """What a process of the machine sees at which place, in the format of fstab(5)."""
        root = self.root
        binds: list[tuple[Path, Path, str]] = [(Path("/usr"), root / "usr", "rbind,ro")]
        if (root / "dev/disk").is_dir():
            nodes = (name for name in ("pts", "shm", *_DEVICES) if Path("/dev", name).exists())
            binds += [(Path("/dev", name), root / "dev" / name, "rbind") for name in nodes]
            assert self.filesystems is not None, "a machine with disks has them"
            binds.append((self.filesystems, root / "run/simulated/filesystems", "bind"))
            binds.append((Path("/proc"), root / "run/simulated/proc", "rbind"))
        else:
            binds.append((Path("/dev"), root / "dev", "rbind"))
        if self.boot is not None:
            binds.append((self.boot, root / "boot", "bind"))
        binds.append((root / "var/usrlocal", root / "usr/local", "bind"))
        return "".join(f"{_escaped(what)} {_escaped(where)} none {how} 0 0\n" for what, where, how in binds)


def _escaped(path: Path) -> str:
    """A path as fstab(5) wants it."""
    return re.sub(r"[\s\\#]", lambda found: f"\\{ord(found[0]):03o}", str(path))


def make(root: Path, lab_openshift: Path, os_release: str) -> None:
    """A fresh root directory, as an image has it. `os_release` is /etc/os-release."""
    if root.exists():
        shutil.rmtree(root)
    for name in _DIRECTORIES:
        (root / name).mkdir(parents=True, exist_ok=True)
    for name, target in _LINKS.items():
        if Path("/" + name).exists() or name in ("home", "root"):
            (root / name).symlink_to(target)
    (root / "var/tmp").chmod(0o1777)
    (root / "etc/passwd").write_text(_ACCOUNTS)
    (root / "etc/group").write_text("root:x:0:\nnogroup:x:65534:\n")
    (root / "etc/os-release").write_text(os_release)
    sudo = root / "var/usrlocal/bin/sudo"
    sudo.write_text(_SUDO)
    sudo.chmod(0o755)
    install(lab_openshift, root / "var/usrlocal/bin/lab-openshift")


def start(root: Path, disks: Disks, *, live: bool) -> None:
    """What is new at every boot: /run, /tmp, /proc, /dev, and what DHCP writes. `live`: it runs from memory."""
    for name in _VOLATILE:
        shutil.rmtree(root / name, ignore_errors=False)
        (root / name).mkdir()
    (root / "tmp").chmod(0o1777)
    (root / "proc/sys/kernel/random").mkdir(parents=True)
    # As container managers mark their containers for systemd: whoever asks knows that the kernel is not theirs alone.
    (root / "run/systemd").mkdir()
    (root / "run/systemd/container").write_text("simulated\n")
    (root / "run/ostree-booted").touch()
    if live:
        (root / "run/ostree-live").touch()
    for name in ("resolv.conf", "hosts", "nsswitch.conf"):
        source = Path("/etc") / name
        if source.exists():
            shutil.copyfile(source, root / "etc" / name)
    if disks.all:
        for name in ("filesystems", "proc"):
            (root / "run/simulated" / name).mkdir(parents=True)
        # The machine's own /proc says what its kernel would say; a shell's /dev/fd needs the real one.
        (root / "dev/fd").symlink_to("/run/simulated/proc/self/fd")
        for name in ("pts", "shm"):
            (root / "dev" / name).mkdir()
        for name in _DEVICES:
            (root / "dev" / name).touch()
        populate(root, disks)


def populate(root: Path, disks: Disks) -> None:
    """Write udev's links for the current disks below /dev; without disks it is the host's /dev."""
    if not disks.all:
        return
    devices = root / "dev"
    links, partitions = _udev(disks)
    for disk in disks.all:
        if not (devices / disk.name).exists():
            (devices / disk.name).hardlink_to(disk.path)
    known = {path.name for path in devices.glob("vd?[0-9]*")}
    for name in known - partitions:
        (devices / name).unlink()
    for name in partitions - known:
        (devices / name).touch()
    for kind in ("by-id", "by-label", "by-partlabel", "by-uuid"):
        (devices / "disk" / kind).mkdir(parents=True, exist_ok=True)
    # Every program that asks the hardware comes here: what is right stays.
    by_name = devices / "disk"
    found = {str(path.relative_to(by_name)): path.readlink().name for path in by_name.glob("*/*")}
    for name, device in found.items():
        if links.get(name) != device:
            (by_name / name).unlink()
    for name, device in links.items():
        if found.get(name) != device:
            (by_name / name).symlink_to(f"../../{device}")


def _udev(disks: Disks) -> tuple[dict[str, str], set[str]]:
    """The links below /dev/disk and the devices that they lead to, and the partitions' devices; of two that would have
    the same link the first has it."""
    links: dict[str, str] = {}
    partitions: set[str] = set()
    for disk in disks.all:
        links.setdefault(f"by-id/virtio-{disk.serial[:20]}", disk.name)
        for partition in disk.partitions():
            device = disk.device(partition)
            partitions.add(device)
            links.setdefault(f"by-id/virtio-{disk.serial[:20]}-part{partition.number}", device)
            links.setdefault(f"by-partlabel/{partition.name}", device)
        for found in disk.filesystems():
            links.setdefault(f"by-label/{found.label}", found.device)
            links.setdefault(f"by-uuid/{found.identity}", found.device)
    return links, partitions


def install(program: Path, place: Path) -> None:
    """A hard link where that is possible: a hundred machines share one binary."""
    try:
        place.hardlink_to(program.resolve())
    except OSError:
        shutil.copyfile(program, place)
        place.chmod(0o755)


def end_processes(name: str, value: str) -> None:
    """Kill what has a variable in its environment: whatever runs on a machine, also outside of any session of ours."""
    wanted = f"{name}={value}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended meanwhile, or is none of ours
            if wanted in (process / "environ").read_bytes().split(b"\0"):
                os.kill(int(process.name), signal.SIGKILL)


def has_executable(root: Path, path: str) -> bool:
    """Whether a program is there for the machine: in its directory, or in the /usr it shares."""
    if path.startswith("/usr/local/"):
        return os.access(root / "var/usrlocal" / path.removeprefix("/usr/local/"), os.X_OK)
    if path.startswith(("/usr/", "/bin/", "/sbin/")):
        return os.access(path, os.X_OK)
    return os.access(root / path.lstrip("/"), os.X_OK)
