"""A machine to try install.sh on: a root of its own, disks that are files, and programs that say what a test wants.

Real: bash, jq, dd, wipefs, curl, sha256sum, and mount where loop devices work. Stand-ins: lsblk and udevadm (they tell
what fixtures say), coreos-installer (it notes its arguments and copies a prepared boot partition).
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from metal_ipi.components.boot.installer import InstallPlan, install_rules, install_values, installer_options

GIB = 1 << 30
PROGRAM = Path(__file__).resolve().parents[2] / "components" / "boot" / "install.sh"
_TOOLS = ("bin", "sbin", "usr", "lib", "lib64")
_ROOT = os.geteuid() == 0
_UNSHARE = ("unshare", "-m") if _ROOT else ("unshare", "-Urm")

PLAN = InstallPlan(
    cluster="rack.facility.test",
    machine="rack-worker-0.rack.facility.test",
    generation="0123456789abcdef",
    platform_id="metal",
    device={"smallest": True},
    pointer='{"ignition":{"version":"3.3.0"}}',
    consoles=("ttyS0,115200n8",),
    kernel_arguments=("nosmt",),
)

_LSBLK = r"""#!/bin/bash
# No jq: to start it takes ten times as long as all of this, and one installation asks seven times.
for device; do :; done
case $device in /*) ;; *) device=; echo look >>/record/looks ;; esac
read -r late looks </fixtures/late
[ ! -e /fixtures/slow ] || /bin/sleep "$(</fixtures/slow)"
mapfile -t seen </record/looks
if [ "${#seen[@]}" -gt "$looks" ]; then late=; fi
disks='' disk='' children=''
end() {
    [ -z "$disk" ] || disks+="${disks:+, }$disk${children:+, \"children\": [$children]}}"
    disk='' children=''
}
while IFS=$'\t' read -r kind path name json; do
    if [ "$kind" = disk ]; then
        end
        if [ "$name" != "$late" ] && [[ -z $device || $path = "$device" ]]; then disk=$json; fi
    elif [ -n "$disk" ] && [[ $kind != part || -e $path ]]; then
        children+="${children:+, }$json"
    fi
done </fixtures/lsblk
end
echo "{\"blockdevices\": [$disks]}"
"""
_UDEVADM = """#!/bin/sh
case $1 in
settle) exit 0 ;;
info)
    while IFS= read -r line; do
        case $line in # the real one keeps links in a set, and prints them in another order each time
        DEVLINKS=*) line=DEVLINKS=$(printf '%s\\n' ${line#DEVLINKS=} | shuf | paste -sd ' ') ;;
        esac
        printf '%s\\n' "$line"
    done <"/fixtures/udev/${3##*/}"
    exit
    ;;
esac
exit 1
"""
_INSTALLER = r"""#!/bin/bash
for device; do :; done
printf '%s\n' "$@" >/record/arguments
echo run >>/record/runs
case $(cat /fixtures/installer) in
fail) echo 'Error: something is broken' >&2; exit 1 ;;
killed) printf half | /usr/bin/dd of="$device" bs=1M seek=2 conv=notrunc status=none; kill -9 -- "-$(cat /pid)" ;;
esac
printf '\x55\xaa' | /usr/bin/dd of="$device" bs=1 seek=510 conv=notrunc status=none # a partition table
cp -r /fixtures/boot "$device"3
"""
# Ends everything at the n-th dd that writes, before or after it: what power loss leaves behind.
_DD = """#!/bin/bash
case " $* " in
*" of=/disks/"*)
    n=$(($(cat /record/writes 2>/dev/null) + 1)); echo "$n" >/record/writes
    [ "$(cat /fixtures/power-loss)" != "before $n" ] || kill -9 -- "-$(cat /pid)"
    /usr/bin/dd "$@" || exit
    [ "$(cat /fixtures/power-loss)" != "after $n" ] || kill -9 -- "-$(cat /pid)" ;;
*) exec /usr/bin/dd "$@" ;;
esac
"""
_SLEEP = """#!/bin/sh
echo "$1" >>/record/sleeps
"""
_BIND = """#!/bin/sh
exec /usr/bin/mount --bind "$3" "$4"
"""


@functools.cache
def loop_devices() -> bool:
    """Whether a file system in a file can be mounted here."""
    if not (_ROOT and shutil.which("mke2fs")):
        return False
    with tempfile.TemporaryDirectory() as folder:
        image = Path(folder, "image")
        _file_system(image, {})
        command = f"mount -o ro {shlex.quote(str(image))} /mnt"
        result = subprocess.run([*_UNSHARE, "sh", "-c", command], capture_output=True, check=False)
        return result.returncode == 0


def namespaces() -> bool:
    """Whether the machine can be made at all."""
    if not all(map(shutil.which, ("unshare", "jq", "wipefs", "curl"))):
        return False
    return subprocess.run([*_UNSHARE, "true"], capture_output=True, check=False).returncode == 0


def _file_system(path: Path, files: Mapping[str, str]) -> None:
    """A boot partition: an ext4 file system in a file, or a folder where loop devices do not work."""
    folder = path.with_name(path.name + ".d")
    folder.mkdir()
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    command = ["mke2fs", "-q", "-t", "ext4", "-L", "boot", "-d", str(folder), str(path), "4M"]
    subprocess.run(command, check=True, capture_output=True)
    shutil.rmtree(folder)


@dataclass(frozen=True, kw_only=True)
class Disk:
    """A disk as lsblk and udev tell of it."""

    name: str
    size: int = 4 * GIB
    links: tuple[str, ...] = ()
    udev: Mapping[str, str] = field(default_factory=dict[str, str])
    lsblk: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def listed(self) -> dict[str, Any]:
        """As `lsblk --json --bytes` prints it."""
        part = {"name": f"{self.name}3", "path": f"/disks/{self.name}3", "type": "part", "label": "boot"}
        return {
            "name": self.name,
            "path": f"/disks/{self.name}",
            "type": "disk",
            "size": self.size,
            "ro": False,
            "rm": False,
            "rota": False,
            "model": None,
            "vendor": None,
            "serial": None,
            "hctl": None,
            "fstype": None,
            "pttype": None,
            "label": None,
            "mountpoints": [None],
            "children": [{**part, "size": 4 << 20, "fstype": "ext4", "mountpoints": [None]}],
            **self.lsblk,
        }


def _lines(disk: Mapping[str, Any]) -> Iterator[str]:
    """What `_LSBLK` reads: a line for the disk, with open end, and one for each of its children."""
    own = {key: value for key, value in disk.items() if key != "children"}
    yield f"disk\t{disk['path']}\t{disk['name']}\t{json.dumps(own)[:-1]}\n"
    for child in disk["children"]:
        yield f"{child['type']}\t{child.get('path', '-')}\t-\t{json.dumps(child)}\n"


class Root:
    """A root file system of a test's own, with this machine's programs."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._mounts: list[str] = []
        for name in _TOOLS:
            own = Path("/", name)
            if own.is_symlink():
                (root / name).symlink_to(own.readlink())
            elif own.is_dir():
                (root / name).mkdir()
                self._mounts.append(name)

    def write(self, path: str, text: str) -> Path:
        """Put a file there."""
        file = self._root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file


class Machine(Root):
    """A machine in its live system."""

    def __init__(self, root: Path, *disks: Disk) -> None:
        super().__init__(root)
        for folder in ("proc", "dev", "run", "tmp", "var/tmp", "disks", "record", "opt/bin", "fixtures/udev"):
            (root / folder).mkdir(parents=True)
        programs = {"lsblk": _LSBLK, "udevadm": _UDEVADM, "coreos-installer": _INSTALLER, "dd": _DD, "sleep": _SLEEP}
        if not loop_devices():
            programs["mount"] = _BIND
        for name, text in programs.items():
            self.write(f"opt/bin/{name}", text).chmod(0o755)
        self._mounts += ["proc", "dev"]
        self.write("fixtures/lsblk", "".join(line for disk in disks for line in _lines(disk.listed())))
        for disk in disks:
            values = {"DEVLINKS": " ".join(disk.links), **disk.udev}
            self.write(f"fixtures/udev/{disk.name}", "".join(f"{name}={value}\n" for name, value in values.items()))
            with self.disk(disk.name).open("wb") as file:
                file.truncate(disk.size)
        self._boot_partition(root / "fixtures/boot", {"ostree/x": "", "ignition.firstboot": ""})
        self.installer("works")
        self.power_loss("never")
        self.late("none", 0)

    def disk(self, name: str) -> Path:
        """The file that a disk is."""
        return self._root / "disks" / name

    def digest(self, name: str) -> str:
        """The hash of a disk's content; where nothing was ever written counts by its place."""
        digest, offset = hashlib.sha256(), 0
        with self.disk(name).open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            while offset < end:
                try:
                    offset = os.lseek(file.fileno(), offset, os.SEEK_DATA)
                except OSError:  # nothing but zeros from here on
                    break
                file.seek(offset)
                data = file.read(1 << 16)
                digest.update(f"{offset} ".encode() + data)
                offset += len(data)
        return digest.hexdigest()

    def fill(self, name: str, offset: int, data: bytes) -> None:
        """Put data onto a disk."""
        with self.disk(name).open("r+b") as file:
            file.seek(offset)
            file.write(data)

    def read(self, name: str, offset: int, length: int) -> bytes:
        """Data of a disk."""
        with self.disk(name).open("rb") as file:
            file.seek(offset)
            return file.read(length)

    def installed(self, name: str, marker: str | None, *, other: Mapping[str, str] | None = None) -> None:
        """Let a disk hold an installed system."""
        self.fill(name, 510, b"\x55\xaa")
        files = {"ostree/x": ""} if other is None else dict(other)
        if marker is not None:
            files["metal-ipi/installation.json"] = marker
        self._boot_partition(self.disk(f"{name}3"), files)

    def marker(self, name: str) -> Any:
        """The marker on a disk's boot partition."""
        path = self.disk(f"{name}3")
        if path.is_dir():
            return json.loads((path / "metal-ipi/installation.json").read_text())
        command = ["debugfs", "-R", "cat metal-ipi/installation.json", str(path)]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    def installer(self, behaviour: str) -> None:
        """What coreos-installer does: `works`, `fail`, or `killed` in the middle."""
        self.write("fixtures/installer", behaviour)

    def power_loss(self, when: str) -> None:
        """`before 2` or `after 2`: power is lost at the second write of install.sh itself."""
        self.write("fixtures/power-loss", when)
        (self._root / "record/writes").unlink(missing_ok=True)

    def late(self, name: str, looks: int) -> None:
        """A disk is there only after so many looks at all disks."""
        self.write("fixtures/late", f"{name} {looks}\n")
        (self._root / "record/looks").unlink(missing_ok=True)

    @property
    def waited(self) -> int:
        """How many seconds install.sh would have slept."""
        file = self._root / "record/sleeps"
        return sum(map(int, file.read_text().split())) if file.is_file() else 0

    @property
    def arguments(self) -> list[str]:
        """What coreos-installer was started with; empty: it was not."""
        file = self._root / "record/arguments"
        return file.read_text().splitlines() if file.is_file() else []

    @property
    def runs(self) -> int:
        """How often coreos-installer was started."""
        file = self._root / "record/runs"
        return len(file.read_text().splitlines()) if file.is_file() else 0

    @property
    def status(self) -> dict[str, str]:
        """The status file."""
        return json.loads((self._root / "run/metal-ipi/install.json").read_text())

    def run(
        self,
        plan: InstallPlan = PLAN,
        *,
        cmdline: str = "",
        uptime: int = 20,
        environment: Mapping[str, str] | None = None,
        **changes: Any,
    ) -> subprocess.CompletedProcess[str]:
        """Start install.sh with a plan, as the unit does."""
        plan = replace(plan, **changes)
        self.write("etc/coreos/installer.d/10-metal-ipi.yaml", installer_options(plan))
        self.write("etc/metal-ipi/install.env", install_values(plan))
        self.write("etc/metal-ipi/install-rules.json", install_rules(plan))
        self.write("cmdline", f"initrd=main {cmdline}\n")
        self.write("uptime", f"{uptime}.25 1.50\n")
        shutil.copy(PROGRAM, self._root / "install.sh")
        root = shlex.quote(str(self._root))
        mounts = [f"mount --rbind /{name} {root}/{name}" for name in self._mounts]
        mounts += [f"mount --bind {root}/{name} {root}/proc/{name}" for name in ("cmdline", "uptime")]
        mounts.append(f"echo $$ >{root}/pid")
        inside = " && ".join([*mounts, f"exec chroot {root} /bin/bash /install.sh"])
        process = subprocess.Popen(
            [*_UNSHARE, "sh", "-c", inside],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={
                "PATH": "/opt/bin:/usr/bin:/bin:/usr/sbin:/sbin",
                "LC_ALL": "C",
                "DISK_WAIT": "0",
                "DISK_STEADY": "600",
                **(environment or {}),
            },
        )
        try:
            output, errors = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)

    def _boot_partition(self, path: Path, files: Mapping[str, str]) -> None:
        if loop_devices():
            _file_system(path, files)
            return
        for name, text in files.items():
            self.write(str((path / name).relative_to(self._root)), text)
