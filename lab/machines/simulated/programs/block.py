"""Programs that look at disks. Signatures are found by the host's wipefs, on the files that disks are."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lab.gpt import Partition
from lab.machines.simulated.disk import Disk, FileSystem
from lab.machines.simulated.programs import Answer, Arguments, Call, Host, Refused

_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, kw_only=True)
class _Device:
    """A disk, or a partition of one."""

    disk: Disk
    partition: Partition | None = None

    @property
    def name(self) -> str:
        return self.disk.device(self.partition) if self.partition else self.disk.name

    @property
    def filesystem(self) -> FileSystem | None:
        return self.disk.filesystem(self.partition) if self.partition else None


async def lsblk(call: Call, host: Host) -> Answer:
    """`lsblk --json --bytes --output COLUMNS [DEVICE...]`."""
    options = Arguments("-J/--json", "-b/--bytes")
    options.add_argument("-o", "--output", default="")
    options.add_argument("devices", nargs="*")
    given = options.parse_args(call.arguments)
    columns = given.output.lower().split(",")
    if set(columns) - _COLUMNS.keys() or not (given.json and given.bytes):
        raise Refused(f"simulated machines know --json --bytes --output {','.join(_COLUMNS).upper()}")
    devices = [_device(call, host, name) for name in given.devices] or [_Device(disk=disk) for disk in host.disks.all]

    def shown(device: _Device) -> dict[str, Any]:
        row = {name: _COLUMNS[name](device) for name in columns}
        parts = [] if device.partition else device.disk.partitions()
        if parts:
            row["children"] = [shown(_Device(disk=device.disk, partition=entry)) for entry in parts]
        return row

    return Answer(stdout=json.dumps({"blockdevices": [shown(device) for device in devices]}, indent=3) + "\n")


_COLUMNS: dict[str, Callable[[_Device], Any]] = {
    "name": lambda device: device.name,
    "path": lambda device: f"/dev/{device.name}",
    "type": lambda device: "part" if device.partition else "disk",
    "size": lambda device: (device.partition or device.disk).size,
    "serial": lambda device: None if device.partition else device.disk.serial,
    "model": lambda _: None,
    "vendor": lambda device: None if device.partition else "0x1af4",
    "hctl": lambda _: None,
    "rota": lambda device: device.disk.rotational,
    "rm": lambda _: False,
    "ro": lambda _: False,
    "label": lambda device: device.filesystem and device.filesystem.label,
    "fstype": lambda device: "ext4" if device.filesystem else None,
    "pttype": lambda device: "gpt" if device.disk.partitions() else None,
    "mountpoints": lambda _: [None],
}


async def wipefs(call: Call, host: Host) -> Answer:
    """The host's, which must be forced to touch what is a file here."""
    names = [word for word in call.arguments if word.startswith("/dev/")]
    options = [word for word in call.arguments if word not in names]
    status, said, complaints = 0, "", ""
    for name in names:
        device = _device(call, host, name)
        if device.partition is None:
            file = str(device.disk.path)
            process = await asyncio.create_subprocess_exec(
                "wipefs", "--force", *options, file,
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env={"PATH": _PATH, "LANG": "C.UTF-8"},
            )  # fmt: skip
            out, err = await process.communicate()
            status = status or process.returncode or 0
            said += out.decode(errors="replace").replace(file, name).replace(device.disk.path.name, device.name)
            complaints += err.decode(errors="replace").replace(file, name)
        elif {"-a", "--all"} & set(options):
            device.disk.wipe(device.partition)
        else:
            raise Refused(f"{name}: simulated machines list signatures of whole disks only")
    return Answer(status=status, stdout=said, stderr=complaints)


async def udevadm(call: Call, host: Host) -> Answer:
    """What is known of a device; after every call /dev is as udev would have it."""
    if call.arguments == ("settle",):
        return Answer()
    options = Arguments()
    options.add_argument("verb", choices=["info"])
    options.add_argument("--query", choices=["property"], required=True)
    options.add_argument("--name", required=True)
    device = _device(call, host, options.parse_args(call.arguments).name)
    links = sorted(
        f"/dev/disk/{path.parent.name}/{path.name}"
        for path in (host.root / "dev/disk").glob("*/*")
        if path.readlink().name == device.name
    )
    properties = {"DEVNAME": f"/dev/{device.name}", "DEVLINKS": " ".join(links), "ID_SERIAL": device.disk.serial}
    return Answer(stdout="".join(f"{name}={value}\n" for name, value in properties.items()))


async def dd(call: Call, _host: Host) -> Answer:
    """A disk is not truncated where the writing ends; a file is."""
    return Answer(then=shlex.join(["dd", *call.arguments, "conv=notrunc"]))


async def mount(call: Call, host: Host) -> Answer:
    """A file system of a disk is a directory that is bound in place; all else is the host's mount's business."""
    name = next((word for word in call.arguments if word.startswith("/dev/")), None)
    if name is None:
        return Answer(then=shlex.join(["mount", *call.arguments]))
    found = _device(call, host, name).filesystem
    if found is None:
        raise Refused(f"{name}: wrong fs type, bad option, bad superblock")
    *options, target = [word for word in call.arguments if word != name]
    source = f"/run/simulated/filesystems/{found.identity}"
    return Answer(then=shlex.join(["mount", "--bind", *options, source, target]))


def _device(call: Call, host: Host, name: str) -> _Device:
    """A device by any of its names below /dev."""
    path = host.path(call, name)
    for disk in host.disks.all:
        if path.name == disk.name:
            return _Device(disk=disk)
        for partition in disk.partitions():
            if path.name == disk.device(partition):
                return _Device(disk=disk, partition=partition)
    raise Refused(f"{name}: not a block device")
