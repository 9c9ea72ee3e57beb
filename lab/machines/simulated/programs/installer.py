"""coreos-installer 0.24, as far as installations of ours go: checks as the real one, writes a simulated disk."""

from __future__ import annotations

import json
import re
import shutil
from argparse import Namespace
from pathlib import Path
from typing import Any, cast

import yaml

from lab.machines.simulated import root as roots
from lab.machines.simulated.disk import IMAGE_MIB, MIB, Disk
from lab.machines.simulated.programs import Answer, Arguments, Call, Host, Refused

_ENTRY = "loader/entries/ostree-1.conf"
_ARGUMENTS = ("$ignition_firstboot", "rw", "root=LABEL=root")
_SERIAL = re.compile(r"(?P<port>tty(?:S|AMA)\d+)(?:,(?P<speed>\d+)(?:(?P<parity>[noe])(?P<bits>[5-8])?)?)?")
_SCREENS = ("tty0", "hvc0", "ttysclp0")


def image_os_release(image: bytes) -> str:
    """What a simulated disk image has for /etc/os-release. Raises ValueError, KeyError or TypeError for any other."""
    document = json.loads(image)
    if document["kind"] != "simulated-disk-image":
        raise ValueError(f"it is of kind {document['kind']!r}")
    return str(document["os_release"])


class _Options(Namespace):
    """Options of the command line and of configuration files; the command line comes first in what takes one value."""

    device: str | None
    config_file: list[str]
    image_file: str | None
    ignition_file: str | None
    network_dir: str | None
    platform: str | None
    append_karg: list[str]
    console: list[str]
    copy_network: bool
    insecure: bool
    offline: bool


def _options(call: Call, host: Host) -> _Options:
    known = Arguments("--insecure", "--offline", "-n/--copy-network")
    known.add_argument("device", nargs="?")
    for name in ("-f/--image-file", "-i/--ignition-file", "-p/--platform", "--network-dir", "--fetch-retries"):
        known.add_argument(*name.split("/"))
    for name in ("-c/--config-file", "--append-karg", "--console"):
        known.add_argument(*name.split("/"), action="append", default=[])
    options = known.parse_args(call.arguments[1:], _Options())
    for file in options.config_file:
        path = host.path(call, file)
        try:
            document: Any = yaml.safe_load(path.read_text())
        except (OSError, yaml.YAMLError) as error:
            raise Refused(f"parsing config file {path.name}: {error}") from error
        if not isinstance(document, dict):
            raise Refused(f"parsing config file {path.name}: not a mapping")
        for key, value in cast("dict[str, Any]", document).items():
            name = {"dest-device": "device"}.get(key, key.replace("-", "_"))
            if name not in vars(options):
                raise Refused(f"simulated machines do not know the option {key}={value!r} of coreos-installer")
            before = getattr(options, name)
            setattr(options, name, [*before, *value] if isinstance(before, list) else before or value)
    return options


async def coreos_installer(call: Call, host: Host) -> Answer:
    """`coreos-installer install`: an image, kernel arguments and a first boot's configuration on a disk."""
    if call.arguments[:1] != ("install",):
        raise Refused("simulated machines know coreos-installer install")
    options = _options(call, host)
    disk = _destination(call, host, options)
    os_release = _image(call, host, options)
    ignition = host.path(call, options.ignition_file).read_bytes() if options.ignition_file else None

    def fill(label: str, directory: Path) -> None:
        if label == "root":
            roots.make(directory, host.around.lab_openshift, os_release)
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
    name = options.image_file
    if name is None:
        return (host.root / "etc/os-release").read_text()
    if not options.insecure:
        raise Refused(f"opening signature file {name}.sig: No such file or directory")
    try:
        return image_os_release(host.path(call, name).read_bytes())
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Refused(f"{name}: no disk image for simulated machines: {error!r}") from error


def _boot_of_image(boot: Path) -> None:
    """What the image has on its boot partition: it boots without a configuration as well."""
    (boot / "ostree").mkdir()
    (boot / "ignition.firstboot").touch()
    (boot / _ENTRY).parent.mkdir(parents=True)
    (boot / _ENTRY).write_text(_entry(["ignition.platform.id=metal", *_ARGUMENTS]))


def _configure(boot: Path, options: _Options, ignition: bytes | None) -> None:
    """Make coreos-installer's changes on the boot partition."""
    if ignition is not None:
        (boot / "ignition").mkdir(mode=0o700)
        (boot / "ignition/config.ign").write_bytes(ignition)
    arguments = [f"ignition.platform.id={options.platform or 'metal'}", *_ARGUMENTS]
    arguments += [f"console={_console(console)}" for console in options.console]
    (boot / _ENTRY).write_text(_entry([*arguments, *options.append_karg]))


def _copy_network(call: Call, host: Host, boot: Path, options: _Options) -> None:
    """Profiles for the first boot's initramfs (coreos-installer, src/install.rs, copy_network_config)."""
    if not options.copy_network:
        return
    source = host.path(call, options.network_dir or "/etc/NetworkManager/system-connections/")
    if not source.is_dir():
        raise Refused(f"reading directory {source.name}: No such file or directory")
    (boot / "coreos-firstboot-network").mkdir()
    for path in sorted(source.iterdir()):
        if path.is_file():
            shutil.copy(path, boot / "coreos-firstboot-network")


def _console(given: str) -> str:
    """A console argument in its complete form, with all settings of a serial line."""
    if given in _SCREENS:
        return given
    serial = _SERIAL.fullmatch(given)
    if serial is None:
        raise Refused(f"invalid or unsupported console argument: {given}")
    return f"{serial['port']},{serial['speed'] or 9600}{serial['parity'] or 'n'}{serial['bits'] or 8}"


def _entry(arguments: list[str]) -> str:
    return f"title CoreOS (simulated)\nversion 1\noptions {' '.join(arguments)}\n"
