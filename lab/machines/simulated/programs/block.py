"""Programs that look at disks. Signatures are found by the host's blkid and wipefs, on the files that disks are."""

from __future__ import annotations

import asyncio
import json
import shlex
from dataclasses import dataclass
from typing import Any

from lab.machines.simulated.disk import Disk, FileSystem
from lab.machines.simulated.gpt import Partition
from lab.machines.simulated.programs import Answer, Call, Host, Refused

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
    def size(self) -> int:
        return self.partition.size if self.partition else self.disk.size

    @property
    def filesystem(self) -> FileSystem | None:
        return self.disk.filesystem(self.partition) if self.partition else None


async def lsblk(call: Call, host: Host) -> Answer:
    """`lsblk --json --bytes [--nodeps] --output COLUMNS [DEVICE...]`."""
    flags, values, plain = _parsed(
        call,
        {"-J": "--json", "-b": "--bytes", "-d": "--nodeps", "-p": "--paths", "-n": "--noheadings"},
        {"-o": "--output"},
    )
    columns = values.get("--output", "").lower().split(",")
    unknown = set(columns) - _COLUMNS.keys()
    if unknown or not {"--json", "--bytes"} <= flags:
        raise Refused(f"simulated machines know --json --bytes --output {','.join(_COLUMNS).upper()}")
    devices = [_device(call, host, name) for name in plain] or [_Device(disk=disk) for disk in host.disks.all]

    def shown(device: _Device) -> dict[str, Any]:
        row = {name: _COLUMNS[name](device) for name in columns}
        if "--paths" in flags:
            row |= {name: f"/dev/{row[name]}" for name in ("name", "kname") if name in row}
        parts = [] if device.partition or "--nodeps" in flags else device.disk.partitions()
        if parts:
            row["children"] = [shown(_Device(disk=device.disk, partition=entry)) for entry in parts]
        return row

    return Answer(stdout=json.dumps({"blockdevices": [shown(device) for device in devices]}, indent=3) + "\n")


_COLUMNS = {
    "name": lambda device: device.name,
    "kname": lambda device: device.name,
    "path": lambda device: f"/dev/{device.name}",
    "pkname": lambda device: device.disk.name if device.partition else None,
    "type": lambda device: "part" if device.partition else "disk",
    "size": lambda device: device.size,
    "serial": lambda device: None if device.partition else device.disk.serial,
    "wwn": lambda _: None,
    "model": lambda _: None,
    "vendor": lambda device: None if device.partition else "0x1af4",
    "hctl": lambda _: None,
    "tran": lambda device: None if device.partition else "virtio",
    "rota": lambda device: device.disk.rotational,
    "rm": lambda _: False,
    "ro": lambda _: False,
    "label": lambda device: device.filesystem and device.filesystem.label,
    "uuid": lambda device: device.filesystem and str(device.filesystem.identity),
    "fstype": lambda device: "ext4" if device.filesystem else None,
    "partlabel": lambda device: device.partition and device.partition.name,
    "parttype": lambda device: device.partition and str(device.partition.kind),
    "pttype": lambda device: "gpt" if device.disk.partitions() else None,
    "mountpoint": lambda _: None,
    "mountpoints": lambda _: [None],
}


async def blkid(call: Call, host: Host) -> Answer:
    """Low-level probing of devices, with the host's options; or the device that has a label."""
    if call.arguments[:1] == ("-L",):
        found = host.disks.labelled(call.arguments[1])
        return Answer(stdout=f"/dev/{found.device}\n") if found else Answer(status=2)
    names = [word for word in call.arguments if word.startswith("/dev/")]
    if not names:
        raise Refused("simulated machines know -L LABEL, and options with devices")
    options = [word for word in call.arguments if word not in names]
    if not {"-p", "--probe"} & set(options):
        options.insert(0, "-p")
    return await _probe(call, host, "blkid", options, names)


async def wipefs(call: Call, host: Host) -> Answer:
    """The host's, which must be forced to touch what is a file here."""
    names = [word for word in call.arguments if word.startswith("/dev/")]
    options = [word for word in call.arguments if word not in names]
    disks: list[str] = []
    for name in names:
        device = _device(call, host, name)
        if device.partition is None:
            disks.append(name)
        elif {"-a", "--all"} & set(options):
            device.disk.wipe(device.partition)
        else:
            raise Refused(f"{name}: simulated machines list signatures of whole disks only")
    return await _probe(call, host, "wipefs", ["--force", *options], disks)


async def blockdev(call: Call, host: Host) -> Answer:
    """Sizes; what makes the kernel look again needs nothing."""
    *verbs, name = call.arguments
    device = _device(call, host, name)
    known = {"--getsize64": device.size, "--getsz": device.size // 512, "--getss": 512, "--getpbsz": 512, "--getro": 0}
    lines: list[str] = []
    for verb in verbs:
        if verb in known:
            lines.append(f"{known[verb]}\n")
        elif verb not in ("--rereadpt", "--flushbufs"):
            raise Refused(f"simulated machines do not know {verb}")
    return Answer(stdout="".join(lines))


async def udevadm(call: Call, host: Host) -> Answer:
    """What is known of a device; after every call /dev is as udev would have it."""
    verb, *options = call.arguments
    if verb in ("settle", "trigger"):
        return Answer()
    names = [option.removeprefix("--name=") for option in options if option.startswith("--name=")]
    if verb != "info" or len(names) != 1 or "--query=property" not in options:
        raise Refused("simulated machines know settle, trigger and info --query=property --name=DEVICE")
    device = _device(call, host, names[0])
    links = sorted(
        f"/dev/disk/{path.parent.name}/{path.name}"
        for path in (host.root / "dev/disk").glob("*/*")
        if path.readlink().name == device.name
    )
    serial = device.disk.serial
    properties = {"DEVNAME": f"/dev/{device.name}", "DEVLINKS": " ".join(links), "ID_SERIAL": serial}
    return Answer(stdout="".join(f"{name}={value}\n" for name, value in properties.items()))


async def partprobe(_call: Call, _host: Host) -> Answer:
    """After every call /dev is as udev would have it."""
    return Answer()


async def dd(call: Call, _host: Host) -> Answer:
    """A disk is not truncated where the writing ends; a file is."""
    return Answer(then=shlex.join(["dd", *call.arguments, "conv=notrunc"]))


async def mount(call: Call, host: Host) -> Answer:
    """A file system of a disk is a directory that is bound in place; all else is the host's mount's business."""
    sources = [word for word in call.arguments if word.startswith(("/dev/", "LABEL=", "UUID="))]
    if not sources:
        return Answer(then=shlex.join(["mount", *call.arguments]))
    name = sources[0]
    for prefix, link in (("LABEL=", "by-label"), ("UUID=", "by-uuid")):
        if name.startswith(prefix):
            name = f"/dev/disk/{link}/{name.removeprefix(prefix)}"
    found = _device(call, host, name).filesystem
    if found is None:
        raise Refused(f"{name}: wrong fs type, bad option, bad superblock")
    rest = [word for word in call.arguments if word not in (sources[0], "-t", "ext4")]
    return Answer(
        then=shlex.join(["mount", "--bind", *rest[:-1], f"/run/simulated/filesystems/{found.identity}", rest[-1]])
    )


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


async def _probe(call: Call, host: Host, program: str, options: list[str], names: list[str]) -> Answer:
    """Run a program of the host on the file behind each device."""
    status, said, complaints = 0, "", ""
    for name in names:
        device = _device(call, host, name)
        place = ["-O", str(device.partition.start), "-S", str(device.size)] if device.partition else []
        file = str(device.disk.path)
        process = await asyncio.create_subprocess_exec(
            program, *options, *place, file,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env={"PATH": _PATH, "LANG": "C.UTF-8"},
        )  # fmt: skip
        out, err = await process.communicate()
        status = status or process.returncode or 0
        said += out.decode(errors="replace").replace(file, name).replace(device.disk.path.name, device.name)
        complaints += err.decode(errors="replace").replace(file, name)
    return Answer(status=status, stdout=said, stderr=complaints)


def _parsed(call: Call, flags: dict[str, str], valued: dict[str, str]) -> tuple[set[str], dict[str, str], list[str]]:
    """Options by their long names; clusters of short ones are taken apart."""
    seen: set[str] = set()
    values: dict[str, str] = {}
    plain: list[str] = []
    words = list(call.arguments)
    while words:
        word = words.pop(0)
        if not word.startswith("-"):
            plain.append(word)
            continue
        if not word.startswith("--") and len(word) > 2:
            words[:0] = [f"-{letter}" for letter in word[1:]]
            continue
        name, equals, value = word.partition("=")
        name = {**flags, **valued}.get(name, name)
        if name in valued.values():
            values[name] = value if equals else words.pop(0)
        elif name in flags.values():
            seen.add(name)
        else:
            raise Refused(f"simulated machines do not know {word}")
    return seen, values, plain
