"""coreos-installer 0.24, as far as installations of ours go: checks as the real one, writes a simulated disk."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import Any, cast

import yaml

from lab.machines.simulated import root as roots
from lab.machines.simulated.disk import IMAGE_MIB, MIB, Disk
from lab.machines.simulated.ignition import IgnitionError
from lab.machines.simulated.ignition.resource import Fetcher
from lab.machines.simulated.programs import Answer, Call, Host, Refused

_FLAGS = ("copy-network", "insecure", "insecure-ignition", "offline", "preserve-on-error")
_LISTS = ("append-karg", "delete-karg", "console")
_VALUES = (
    "image-file",
    "ignition-url",
    "ignition-file",
    "ignition-hash",
    "platform",
    "firstboot-args",
    "fetch-retries",
    "network-dir",
)
_ENTRY = "loader/entries/ostree-1.conf"
_ARGUMENTS = ("$ignition_firstboot", "rw", "root=LABEL=root")
_SERIAL = re.compile(r"(?P<port>tty(?:S|AMA)\d+)(?:,(?P<speed>\d+)(?:(?P<parity>[noe])(?P<bits>[5-8])?)?)?")
_SCREENS = ("tty0", "hvc0", "ttysclp0")
_HASHES = {"sha256": hashlib.sha256, "sha512": hashlib.sha512}


def image_os_release(image: bytes) -> str:
    """What a simulated disk image has for /etc/os-release. Raises ValueError, KeyError or TypeError for any other."""
    document = json.loads(image)
    if document["kind"] != "simulated-disk-image":
        raise ValueError(f"it is of kind {document['kind']!r}")
    return str(document["os_release"])


class _Options:
    """Options of the command line and of configuration files; the command line comes first in what takes one value."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.lists: dict[str, list[str]] = {name: [] for name in _LISTS}
        self.flags: set[str] = set()
        self.device = ""

    def add(self, name: str, value: Any) -> None:
        """One option, from either."""
        if name in _LISTS:
            self.lists[name] += (
                [str(entry) for entry in cast("list[Any]", value)] if isinstance(value, list) else [value]
            )
        elif name in _VALUES:
            self.values.setdefault(name, str(value))
        elif name in _FLAGS and value is True:
            self.flags.add(name)
        elif name == "dest-device":
            self.device = self.device or str(value)
        elif value is not False:
            raise Refused(f"simulated machines do not know the option {name}={value!r} of coreos-installer")


async def coreos_installer(call: Call, host: Host) -> Answer:
    """`coreos-installer install`: an image, kernel arguments and a first boot's configuration on a disk."""
    if call.arguments[:1] != ("install",):
        raise Refused("simulated machines know coreos-installer install")
    options = _read(call, host)
    disk = _destination(call, host, options)
    os_release = _image(call, host, options)
    ignition = await _ignition(call, host, options)

    def fill(label: str, directory: Path) -> None:
        if label == "root":
            roots.make(directory, host.around.tools, os_release)
        else:
            _boot_of_image(directory)

    for step in disk.write_image(fill):
        host.line(f"coreos-installer[901]: {disk.serial}: {step}")
        await host.around.progress(host.spec.id, step)
    boot = disk.labelled("boot")
    assert boot is not None
    _configure(boot.directory, options, ignition)
    _copy_network(call, host, boot.directory, options)
    host.line(f"coreos-installer[901]: {disk.serial}: Install complete.")
    await host.around.progress(host.spec.id, "installed")
    return Answer(stderr="Install complete.\n")


def _read(call: Call, host: Host) -> _Options:
    options = _Options()
    files: list[str] = []
    short = {
        "-c": "--config-file",
        "-f": "--image-file",
        "-i": "--ignition-file",
        "-I": "--ignition-url",
        "-n": "--copy-network",
        "-p": "--platform",
    }
    words = list(call.arguments[1:])
    while words:
        word = words.pop(0)
        if not word.startswith("-"):
            options.add("dest-device", word)
            continue
        name, equals, value = short.get(word, word).removeprefix("--").partition("=")
        if name in _FLAGS:
            options.add(name, True)
            continue
        if not equals and not words:
            raise Refused(f"a value is required for {word}")
        value = value if equals else words.pop(0)
        if name == "config-file":
            files.append(value)
        else:
            options.add(name, value)
    for file in files:
        _read_file(host.path(call, file), options)
    return options


def _read_file(path: Path, options: _Options) -> None:
    try:
        document: Any = yaml.safe_load(path.read_text())
    except (OSError, yaml.YAMLError) as error:
        raise Refused(f"parsing config file {path.name}: {error}") from error
    if not isinstance(document, dict):
        raise Refused(f"parsing config file {path.name}: not a mapping")
    for name, value in cast("dict[str, Any]", document).items():
        options.add(name, value)


def _destination(call: Call, host: Host, options: _Options) -> Disk:
    if not options.device:
        raise Refused("destination device must be specified")
    path = host.path(call, options.device)
    disk = next((entry for entry in host.disks.all if entry.name == path.name), None)
    if disk is None:
        raise Refused(f"checking if {options.device} is a block device: it is none")
    if disk.size < IMAGE_MIB * MIB:
        raise Refused(f"{options.device}: the image does not fit: it needs {IMAGE_MIB} MiB")
    return disk


def _image(call: Call, host: Host, options: _Options) -> str:
    """What the system to be installed has for /etc/os-release: the image file's, else the live system's own."""
    name = options.values.get("image-file")
    if name is None:
        return (host.root / "etc/os-release").read_text()
    if "insecure" not in options.flags:
        raise Refused(f"opening signature file {name}.sig: No such file or directory")
    try:
        return image_os_release(host.path(call, name).read_bytes())
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Refused(f"{name}: no disk image for simulated machines: {error!r}") from error


async def _ignition(call: Call, host: Host, options: _Options) -> bytes | None:
    """The configuration to embed, verified."""
    url, file = options.values.get("ignition-url"), options.values.get("ignition-file")
    wanted = options.values.get("ignition-hash")
    if url is not None and file is not None:
        raise Refused("the argument '--ignition-file' cannot be used with '--ignition-url'")
    if file is not None:
        data = host.path(call, file).read_bytes()
    elif url is not None:
        if url.startswith("http:") and wanted is None and "insecure-ignition" not in options.flags:
            raise Refused("refusing to fetch Ignition config over HTTP without --ignition-hash or --insecure-ignition")
        fetcher = Fetcher(host.spec.addresses[0].address, host.around.ca, host.line, host.around.sleep)
        try:
            data = await fetcher.get(url)
        except IgnitionError as error:
            raise Refused(f"downloading source Ignition config {url}: {error}") from error
        finally:
            await fetcher.close()
    else:
        return None
    if wanted is not None:
        kind, _, digest = wanted.partition("-")
        if kind not in _HASHES or _HASHES[kind](data).hexdigest() != digest:
            raise Refused(f"Ignition config digest mismatch; expected {wanted}")
    return data


def _boot_of_image(boot: Path) -> None:
    """What the image has on its boot partition: it boots without a configuration as well."""
    (boot / "ostree").mkdir()
    (boot / "ignition.firstboot").touch()
    (boot / _ENTRY).parent.mkdir(parents=True)
    (boot / _ENTRY).write_text(_entry(["ignition.platform.id=metal", *_ARGUMENTS]))


def _configure(boot: Path, options: _Options, ignition: bytes | None) -> None:
    """What coreos-installer changes on the boot partition."""
    if ignition is not None:
        (boot / "ignition").mkdir(mode=0o700)
        (boot / "ignition/config.ign").write_bytes(ignition)
    firstboot = options.values.get("firstboot-args")
    if firstboot:
        (boot / "ignition.firstboot").write_text(f'set ignition_network_kcmdline="{firstboot}"\n')
    arguments = [f"ignition.platform.id={options.values.get('platform', 'metal')}", *_ARGUMENTS]
    arguments += [f"console={_console(console)}" for console in options.lists["console"]]
    arguments = [entry for entry in arguments if entry not in options.lists["delete-karg"]]
    (boot / _ENTRY).write_text(_entry([*arguments, *options.lists["append-karg"]]))


def _copy_network(call: Call, host: Host, boot: Path, options: _Options) -> None:
    """Profiles for the first boot's initramfs (coreos-installer, src/install.rs, copy_network_config)."""
    if "copy-network" not in options.flags:
        return
    source = host.path(call, options.values.get("network-dir", "/etc/NetworkManager/system-connections/"))
    if not source.is_dir():
        raise Refused(f"reading directory {source.name}: No such file or directory")
    (boot / "coreos-firstboot-network").mkdir()
    for path in sorted(source.iterdir()):
        if path.is_file():
            shutil.copy(path, boot / "coreos-firstboot-network")


def _console(given: str) -> str:
    """As it is written down: all about a serial line is said."""
    if given in _SCREENS:
        return given
    serial = _SERIAL.fullmatch(given)
    if serial is None:
        raise Refused(f"invalid or unsupported console argument: {given}")
    return f"{serial['port']},{serial['speed'] or 9600}{serial['parity'] or 'n'}{serial['bits'] or 8}"


def _entry(arguments: list[str]) -> str:
    return f"title CoreOS (simulated)\nversion 1\noptions {' '.join(arguments)}\n"
