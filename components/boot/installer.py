"""What installs a machine to its disk: the live system's Ignition, coreos-installer's options, and what marks a result.

`live_config()` is all that the live system gets. It holds install.sh, which chooses the disk, runs coreos-installer and
waits; whoever booted the machine reads /run/metal-ipi/install.json over SSH and reboots it.

A machine's generation says what it runs. It is on the boot partition (written by install.sh), in /etc of the running
node (written by Ignition, `marker_file`), and in the state.
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
"""What a disk must be: `stacks.sections.devices.DeviceRule.rules`."""

MARKER_PATH = "/etc/metal-ipi/installation.json"
"""Where a running node says which generation it is."""
PROGRAM = "/usr/local/bin/metal-ipi-install"
SERVICE = "metal-ipi-install.service"
_OPTIONS = "/etc/coreos/installer.d/10-metal-ipi.yaml"
_VALUES = "/etc/metal-ipi/install.env"
_RULES = "/etc/metal-ipi/install-rules.json"
# With options in installer.d this generator would start coreos-installer by itself, without a device, and then end in
# emergency mode (coreos-installer, systemd/coreos-installer-generator).
_GENERATOR = "/etc/systemd/system-generators/coreos-installer-generator"
_POINTER = "/etc/metal-ipi/pointer.ign"
_DISK = "/etc/metal-ipi/disk.ign"
"""The disk's Ignition, part of the live system's own: coreos-installer fetches nothing, whomever the system trusts."""
_PROFILES = "/etc/metal-ipi/network"
_BY_MAC = "/etc/metal-ipi/network-by-mac"
"""Profiles with `@<MAC address>@` for the names of cards; install.sh makes those in `_PROFILES` of them."""
_AUTHORITIES = "/etc/metal-ipi/ca.pem"
"""Whom curl trusts besides those whom the system trusts."""
_INSTALL_TO_DISK = "install-to-disk.service"
# coreos-installer 0.24.0, src/cmdline/console.rs.
_SERIAL = re.compile(r"(ttyS|ttyAMA)([0-9]+)(?:,([0-9]+)(?:([noe])([5-8])?)?)?")
_GRAPHICAL = ("tty0", "hvc0", "ttysclp0")
_SCRIPT = Path(__file__).with_name("install.sh")


@dataclass(frozen=True, kw_only=True)
class Runs:
    """What an installed machine runs, as far as a change of it means a new installation."""

    release: str
    """The CoreOS release."""
    kernel_arguments: tuple[str, ...]
    """What is on its kernel's command line besides consoles."""
    consoles: tuple[str, ...]
    """As the kernel takes them."""
    platform_id: str
    """Ignition's platform id of the installed system."""
    pointer: str
    """Its Ignition pointer, without the marker and without the network's profile."""
    install_device: Rules
    """Which disk it is on."""
    network: StaticNetwork | HostNetwork | None = None
    """Its network, where no DHCP server tells it."""
    authorities: tuple[str, ...] = ()
    """Certificates (PEM) of the boot server's authority. They say how something is fetched, not what: they do not
    count."""
    installation: int = 0
    """Raised to have the same installed once more."""

    @property
    def ignition(self) -> str:
        """The digest of the pointer. Where something with a hash is fetched from does not count, the hash does."""
        tree: Any = _without(json.loads(self.pointer), [data_url(each) for each in self.authorities])
        for source in tree.get("ignition", {}).get("config", {}).get("merge", ()):
            pinned = source.get("verification", {}).get("hash")
            if pinned is not None:
                source["source"] = pinned
        return _digest(tree)

    @property
    def generation(self) -> str:
        """16 hexadecimal digits.

        The network counts as the kernel arguments that once carried it: a machine that was installed with those is not
        installed anew for having the same network by a profile (docs/adr/0030).
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
        """What people see of it in a diff; keys as resource inputs have them."""
        return {
            "release": self.release,
            "kernelArguments": list(self.kernel_arguments),
            "consoles": list(self.consoles),
            "ignition": self.ignition,
            "network": self.network.told if self.network is not None else "",
        }


def _without(tree: Any, sources: Sequence[str]) -> Any:
    """A pointer's tree without these certificate authorities, as it is where nobody ever named them."""
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
    """A single node: its live system bootstraps the cluster, and it is installed then with what that leaves."""

    bootstrap: Source
    """openshift-install's Ignition of that live system, with its hash: `checked_in_place`."""
    pointer: str
    """The Ignition of the disk, to which the live system adds what bootkube leaves."""
    files: tuple[NodeFile, ...] = ()
    """What guards the live system while it serves the cluster: files ..."""
    units: tuple[NodeUnit, ...] = ()
    """... and units."""
    masked: tuple[str, ...] = ()
    """Units of openshift-install's that must not start, besides the one that would install."""


@dataclass(frozen=True, kw_only=True)
class InstallPlan:
    """One machine's installation."""

    cluster: str
    """The cluster's domain."""
    machine: str
    """The machine's full name."""
    generation: str
    """Of what is installed (`Runs.generation`)."""
    platform_id: str
    """Ignition's platform id of the installed system."""
    device: Rules
    """Which disk to install to; exactly one must match."""
    pointer: str | None
    """The Ignition to embed; None where the platform's metadata gives it (userdata), or `in_place`."""
    in_place: InPlace | None = None
    """The cluster that the live system bootstraps first."""
    wipe_disks: tuple[Rules, ...] = ()
    """Which other disks are emptied, unless the machine was installed before; no others are ever written."""
    accept: Literal["empty", "new", "wipe"] = "empty"
    """`wipe`: whatever is on the disk and on `wipe_disks` may go. `new`: likewise, until it was installed once.
    `empty`: only nothing, or this machine's own earlier installation."""
    image: Artifact | None = None
    """The disk image; None installs the one that the live system carries."""
    consoles: tuple[str, ...] = ()
    """Consoles of the installed system, as the kernel takes them."""
    kernel_arguments: tuple[str, ...] = ()
    """Further kernel arguments of the installed system."""
    network: StaticNetwork | None = None
    """The installed system's network, where no DHCP server tells it."""
    keyfiles: Keyfiles | None = None
    """The same of a machine with networks of its own; not both."""
    authorities: tuple[str, ...] = ()
    """Certificates (PEM) of the boot server's authority, where that is none that every system trusts."""
    held: bool = False
    """Whether nothing is written before whoever booted the machine has looked at it."""


def live_config(plan: InstallPlan, *, authorized_keys: Sequence[str], host_key: HostKey) -> str:
    """The live system's Ignition: secret, for it has a host key and says where the pointer is.

    Args:
        authorized_keys: SSH public keys for user `core`.
        host_key: the live system's own, `host_key(seed, live_name(node))`; another than the installed system's.
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
    """openshift-install's Ignition of a single node's live system, if what we mask is there: it would install as well.

    Raises IgnitionError: under another name it might write to a disk that we did not choose.
    """
    units = json.loads(bootstrap).get("systemd", {}).get("units", ())
    if _INSTALL_TO_DISK not in [unit.get("name") for unit in units]:
        raise IgnitionError(
            f"openshift-install's Ignition of a single node has no {_INSTALL_TO_DISK}: this release installs to disk"
            " in a way that is not known here. Use a release that has it, or a bootstrap machine (platform.bootstrap)"
        )
    return bootstrap


def takes_console(console: str) -> bool:
    """Whether coreos-installer knows a console; it ends at one that it does not, after the disk was chosen."""
    found = _SERIAL.fullmatch(console)
    return console in _GRAPHICAL or (found is not None and int(found[2]) < 1 << 8 and int(found[3] or 0) < 1 << 32)


def persisted_console(console: str) -> str:
    """A console as coreos-installer writes it down for the installed system: it spells serial ones out."""
    found = _SERIAL.fullmatch(console)
    if found is None:
        return console
    kind, port, speed, parity, bits = found.groups()
    return f"{kind}{int(port)},{int(speed or 9600)}{parity or 'n'}{bits or 8}"


def live_name(node: str) -> str:
    """The name that the live system's host key is derived from; `node` is the machine's full name."""
    return f"live.{node}"


def marker_file(*, cluster: str, machine: str, generation: str) -> NodeFile:
    """What tells a running node which generation it is: part of its pointer."""
    return NodeFile(path=MARKER_PATH, text=marker(cluster=cluster, machine=machine, generation=generation), mode=0o644)


def marker(*, cluster: str, machine: str, generation: str) -> str:
    """The marker's text: JSON, one line."""
    return json.dumps({"cluster": cluster, "machine": machine, "generation": generation}) + "\n"


def installer_options(plan: InstallPlan) -> str:
    """coreos-installer's options (YAML, of which JSON is a part), all but the device, which is chosen at run time.

    Keys are those of `coreos-installer install --config-file` (docs/cmd/install.md of 0.24.0).
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
    """The rules of disks that install.sh goes by: JSON, one line."""
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
