"""What installs a machine to its disk: the live system's Ignition, coreos-installer's options, and the generation
marker.

`live_config()` is the complete configuration of the live system. It contains install.sh, which chooses the disk, runs
coreos-installer and waits. Then `Installation` (in provider/installation) reads /run/metal-ipi/install.json over SSH
and reboots the machine.

A machine's generation is a hash of what it runs. It is stored on the boot partition (written by install.sh), in /etc of
the running node (written by Ignition, `marker_file`), and in the state.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from metal_ipi.components.boot.host_keys import HostKey
from metal_ipi.components.boot.host_network import HostNetwork, Keyfiles
from metal_ipi.components.boot.ignition import IgnitionError, NodeFile, NodeLink, NodeUnit, Source, config, data_url
from metal_ipi.components.boot.network import StaticNetwork
from metal_ipi.components.boot.stream import Artifact

Rules = Mapping[str, str | int | bool]
"""The conditions that a disk must meet: `stacks.sections.devices.DeviceRule.rules`."""

MARKER_PATH = "/etc/metal-ipi/installation.json"
"""The file in which a running node says its generation."""
PROGRAM = "/usr/local/bin/metal-ipi-install"
SERVICE = "metal-ipi-install.service"
_OPTIONS = "/etc/coreos/installer.d/10-metal-ipi.yaml"
_VALUES = "/etc/metal-ipi/install.env"
_RULES = "/etc/metal-ipi/install-rules.json"
# If there are options in installer.d, this generator starts coreos-installer without a device, which ends in emergency
# mode (coreos-installer, systemd/coreos-installer-generator). So the generator is masked.
_GENERATOR = "/etc/systemd/system-generators/coreos-installer-generator"
_POINTER = "/etc/metal-ipi/pointer.ign"
_DISK = "/etc/metal-ipi/disk.ign"
"""The disk's Ignition, part of the live system's own config: coreos-installer does not have to fetch anything."""
_PROFILES = "/etc/metal-ipi/network"
_BY_MAC = "/etc/metal-ipi/network-by-mac"
"""Profiles with `@<MAC address>@` in place of names of cards; install.sh writes the final ones to `_PROFILES`."""
_AUTHORITIES = "/etc/metal-ipi/ca.pem"
"""Authorities that curl trusts besides those of the system."""
_INSTALL_TO_DISK = "install-to-disk.service"
# coreos-installer 0.24.0, src/cmdline/console.rs.
_SERIAL = re.compile(r"(ttyS|ttyAMA)([0-9]+)(?:,([0-9]+)(?:([noe])([5-8])?)?)?")
_GRAPHICAL = ("tty0", "hvc0", "ttysclp0")
_SCRIPT = Path(__file__).with_name("install.sh")


@dataclass(frozen=True, kw_only=True)
class Runs:
    """What an installed machine runs, as far as a change of it requires a new installation."""

    release: str
    """The CoreOS release."""
    kernel_arguments: tuple[str, ...]
    """Its kernel arguments, without consoles."""
    consoles: tuple[str, ...]
    """Consoles in the kernel's syntax."""
    platform_id: str
    """Ignition's platform id of the installed system."""
    pointer: str
    """Its Ignition pointer, without the marker and without the network's profile."""
    install_device: Rules
    """The conditions for the disk that it is installed on."""
    network: StaticNetwork | HostNetwork | None = None
    """Its network, if it does not use DHCP."""
    authorities: tuple[str, ...] = ()
    """Certificates (PEM) of the boot server's authority. They are not part of the generation: they change how something
    is fetched, not what is installed."""
    installation: int = 0
    """A counter that users raise to install the same once more."""

    @property
    def ignition(self) -> str:
        """The digest of the pointer. Where a merged config is pinned by hash, the hash counts and the URL does not."""
        tree: Any = _without(json.loads(self.pointer), [data_url(each) for each in self.authorities])
        for source in tree.get("ignition", {}).get("config", {}).get("merge", ()):
            pinned = source.get("verification", {}).get("hash")
            if pinned is not None:
                source["source"] = pinned
        return _digest(tree)

    @property
    def generation(self) -> str:
        """16 hexadecimal digits.

        A static network counts in the form of the kernel arguments that earlier versions used for it. So a machine that
        was installed with these arguments is not installed again only because a profile replaced them (docs/adr/0030).
        """
        network = self.network.counted if self.network is not None else ()
        parts = {
            "release": self.release,
            "kernelArguments": [*self.kernel_arguments, *network],
            "consoles": list(self.consoles),
            "ignition": self.ignition,
            "platformId": self.platform_id,
            "installDevice": dict(self.install_device),
        }
        return _digest({**parts, "installation": self.installation} if self.installation else parts)

    @property
    def shown(self) -> dict[str, Any]:
        """What a diff shows to people; keys as in resource inputs."""
        return {
            "release": self.release,
            "kernelArguments": list(self.kernel_arguments),
            "consoles": list(self.consoles),
            "ignition": self.ignition,
            "network": self.network.told if self.network is not None else "",
        }


def _without(tree: Any, sources: Sequence[str]) -> Any:
    """Remove these certificate authorities from a pointer's tree, as if they had never been in it."""
    section = tree.get("ignition", {})
    listed = section.get("security", {}).get("tls", {}).get("certificateAuthorities", ())
    others = [each for each in listed if each["source"] not in sources]
    if len(others) < len(listed):
        section["security"]["tls"]["certificateAuthorities"] = others
        if not others:
            del section["security"]
    return tree


@dataclass(frozen=True, kw_only=True)
class InPlace:
    """A single node whose live system bootstraps the cluster and is then installed (bootstrap-in-place)."""

    bootstrap: Source
    """openshift-install's Ignition of that live system, pinned by hash; checked by `checked_in_place`."""
    pointer: str
    """The Ignition of the disk; the live system adds what bootkube writes."""
    files: tuple[NodeFile, ...] = ()
    """Files that protect the live system while it serves the cluster."""
    units: tuple[NodeUnit, ...] = ()
    """Units that do the same."""
    masked: tuple[str, ...] = ()
    """Further units of openshift-install's Ignition that must not start; the one that installs is always masked."""


@dataclass(frozen=True, kw_only=True)
class InstallPlan:
    """The installation of one machine."""

    cluster: str
    """The cluster's domain."""
    machine: str
    """The machine's full name."""
    generation: str
    """The generation of what is installed (`Runs.generation`)."""
    platform_id: str
    """Ignition's platform id of the installed system."""
    device: Rules
    """The conditions for the disk to install to; exactly one disk must meet them."""
    pointer: str | None
    """The Ignition to write to the disk. None if it comes from the platform's metadata (userdata), or from
    `in_place`."""
    in_place: InPlace | None = None
    """Set for a single node whose live system bootstraps the cluster before it is installed."""
    wipe_disks: tuple[Rules, ...] = ()
    """Conditions for other disks to empty, unless the machine was installed before. No further disk is ever written."""
    accept: Literal["empty", "new", "wipe"] = "empty"
    """What may be overwritten. `wipe`: anything on the disk and on `wipe_disks`. `new`: the same, until the first
    installation. `empty`: only an empty disk, or this machine's own earlier installation."""
    image: Artifact | None = None
    """The disk image. None: the image that the live system contains."""
    consoles: tuple[str, ...] = ()
    """Consoles of the installed system in the kernel's syntax."""
    kernel_arguments: tuple[str, ...] = ()
    """Further kernel arguments of the installed system."""
    network: StaticNetwork | None = None
    """The installed system's network, if it has one interface and no DHCP."""
    keyfiles: Keyfiles | None = None
    """Profiles of a machine with networks of its own (`hosts[].networkConfig`). Not together with `network`."""
    authorities: tuple[str, ...] = ()
    """Certificates (PEM) of the boot server's authority, if systems do not trust it already."""
    held: bool = False
    """Whether install.sh waits for permission before it writes, until the machine has been inspected over SSH."""


def live_config(plan: InstallPlan, *, authorized_keys: Sequence[str], host_key: HostKey) -> str:
    """The live system's Ignition. It is secret: it contains a host key and the URL of the pointer.

    Args:
        authorized_keys: SSH public keys for user `core`.
        host_key: the live system's host key, `host_key(seed, live_name(node))`; not that of the installed system.
    """
    files, units, merge, masked = list[NodeFile](), list[NodeUnit](), list[Source](), list[str]()
    if plan.in_place is not None:
        files = [
            NodeFile(path="/etc/hostname", text=f"{plan.machine}\n", mode=0o644),
            NodeFile(path=_POINTER, text=plan.in_place.pointer, mode=0o600),
            *plan.in_place.files,
        ]
        units, merge = list(plan.in_place.units), [plan.in_place.bootstrap]
        masked = [_INSTALL_TO_DISK, *plan.in_place.masked]
    elif plan.pointer is not None:
        files.append(NodeFile(path=_DISK, text=plan.pointer, mode=0o600))
    if plan.network is not None:
        name = plan.network.profile.path.rpartition("/")[2]
        files.append(NodeFile(path=f"{_PROFILES}/{name}", text=plan.network.profile.text, mode=0o600))
    if plan.keyfiles is not None:
        files += plan.keyfiles.files(_BY_MAC)
    if plan.authorities:
        files.append(NodeFile(path=_AUTHORITIES, text="".join(plan.authorities), mode=0o644))
    return config(
        authorized_keys=authorized_keys,
        host_key=host_key,
        merge=merge,
        certificate_authorities=[data_url(each) for each in plan.authorities] if merge else [],
        masked=masked,
        files=[
            *files,
            NodeFile(path=_OPTIONS, text=installer_options(plan), mode=0o600),
            NodeFile(path=_VALUES, text=install_values(plan), mode=0o600),
            NodeFile(path=_RULES, text=install_rules(plan), mode=0o600),
            NodeFile(path=PROGRAM, text=_SCRIPT.read_text(), mode=0o755),
        ],
        links=[NodeLink(path=_GENERATOR, target="/dev/null")],
        units=[*units, NodeUnit(name=SERVICE, text=_UNIT)],
    )


def checked_in_place(bootstrap: str) -> str:
    """Return openshift-install's Ignition of a single node's live system, if it has the unit that we mask.

    That unit would install to a disk too. Raises IgnitionError if it is missing: under another name it might write to a
    disk that we did not choose.
    """
    units = json.loads(bootstrap).get("systemd", {}).get("units", ())
    if _INSTALL_TO_DISK not in [unit.get("name") for unit in units]:
        raise IgnitionError(
            f"openshift-install's Ignition of a single node has no {_INSTALL_TO_DISK}: this release installs to disk "
            "in a way that this program does not know. Use a release that has it, or a bootstrap machine "
            "(platform.bootstrap)"
        )
    return bootstrap


def takes_console(console: str) -> bool:
    """Whether coreos-installer accepts a console. It fails at an unknown one, after the disk was chosen."""
    found = _SERIAL.fullmatch(console)
    return console in _GRAPHICAL or (found is not None and int(found[2]) < 1 << 8 and int(found[3] or 0) < 1 << 32)


def persisted_console(console: str) -> str:
    """A console in the form that coreos-installer writes for the installed system: serial ones with all parameters."""
    found = _SERIAL.fullmatch(console)
    if found is None:
        return console
    kind, port, speed, parity, bits = found.groups()
    return f"{kind}{int(port)},{int(speed or 9600)}{parity or 'n'}{bits or 8}"


def live_name(node: str) -> str:
    """The name from which the live system's host key is derived; `node` is the machine's full name."""
    return f"live.{node}"


def marker_file(*, cluster: str, machine: str, generation: str) -> NodeFile:
    """The file that tells a running node its generation; part of its pointer."""
    return NodeFile(path=MARKER_PATH, text=marker(cluster=cluster, machine=machine, generation=generation), mode=0o644)


def marker(*, cluster: str, machine: str, generation: str) -> str:
    """The marker's text: one line of JSON."""
    return json.dumps({"cluster": cluster, "machine": machine, "generation": generation}) + "\n"


def installer_options(plan: InstallPlan) -> str:
    """coreos-installer's options as YAML, except the device, which install.sh chooses at run time.

    Keys are those of `coreos-installer install --config-file` (docs/cmd/install.md of 0.24.0). Values are written as
    JSON.
    """
    options: dict[str, Any] = {"platform": plan.platform_id, "fetch-retries": 10}
    if plan.pointer is not None:
        options["ignition-file"] = _DISK
    if plan.network is not None or plan.keyfiles is not None:
        options |= {"copy-network": True, "network-dir": _PROFILES}
    if plan.consoles:
        options["console"] = list(plan.consoles)
    if plan.kernel_arguments:
        options["append-karg"] = list(plan.kernel_arguments)
    return "".join(f"{name}: {json.dumps(value)}\n" for name, value in options.items())


def install_values(plan: InstallPlan) -> str:
    """The values that install.sh reads as shell variables."""
    image = plan.image
    values = {
        "CLUSTER": plan.cluster,
        "MACHINE": plan.machine,
        "GENERATION": plan.generation,
        "ACCEPT": plan.accept,
        "IMAGE_URL": image.url if image else "",
        "IMAGE_SHA256": image.sha256 if image else "",
        "HOLD": "yes" if plan.held else "",
    }
    return "".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items())


def install_rules(plan: InstallPlan) -> str:
    """The conditions for disks that install.sh applies: one line of JSON."""
    return json.dumps({"device": dict(plan.device), "wipe": [dict(rules) for rules in plan.wipe_disks]}) + "\n"


_UNIT = f"""\
[Unit]
Description=Install this machine to its disk
Wants=network-online.target
After=network-online.target
[Service]
Type=oneshot
RemainAfterExit=yes
PrivateMounts=yes
ExecStart=/bin/bash {PROGRAM}
StandardOutput=journal+console
StandardError=journal+console
[Install]
WantedBy=multi-user.target
"""


def _digest(tree: Any) -> str:
    canonical = json.dumps(tree, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]
