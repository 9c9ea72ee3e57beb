"""What is to be looked at before anything is ordered, as plain data: the inputs of Preflight."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from provider.orders import Orders, wire

DEFAULT_HASHED_MIB = 64


LIVE_ISO = "live ISO"
"""The name of the boot file that this program fetches itself, to make servers' discs of it."""


@dataclass(frozen=True, kw_only=True)
class BootFile:
    """A file that machines boot from."""

    name: str
    """`kernel`, `initramfs`, `rootfs`, `disk` or `live ISO`."""
    url: str
    sha256: str
    mirrored: str | None = None
    """Where the artifact host serves it once it was copied there; None: machines fetch it from `url`."""


@dataclass(frozen=True, kw_only=True)
class Server:
    """A machine that is not ordered: a server with a BMC, or the virtual machine that bootstraps the cluster."""

    name: str
    """What the stack calls it: `control-plane-0`, `worker-0`, `bootstrap`."""
    role: str
    """`bootstrap`, `control-plane` or `worker`."""
    live: bool = False
    """Whether it forms the cluster in its live system: as bootstrap machine, as the server that is lent for it, or as a
    single node."""
    bmc: str | None = None
    """Its name in the provider's section `bmcs`; None: it has none, and `memory_mib` and `cpus` tell what it has."""
    memory_mib: int | None = None
    """The memory of a virtual machine."""
    cpus: int | None = None
    """The CPUs of a virtual machine."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A stack, as far as it can be checked before anything is ordered."""

    stack: str
    run: str | None = None
    """The installation that it is, as its tags say; None: nothing of it was ever ordered."""
    domain: str
    """The cluster's."""
    architecture: str
    """`x86_64` or `aarch64`."""
    project_id: str | None = None
    project_name: str | None = None
    """Of a project that is to be created."""
    organization_id: str | None = None
    """Whose it is to be."""
    lifetime_hours: int | None = None
    """Hours after which the platform deletes all machines; None: never."""
    orders: Orders | None = None
    """None where the machines are there already."""
    servers: tuple[Server, ...] = ()
    """The machines that are there already, and the virtual one."""
    networks: Mapping[str, str] = field(default_factory=dict[str, str])
    """What the cluster uses inside, or was told to use: a word for people to CIDR."""
    api_address: str | None = None
    """The API's address, where a stack names it; it is announced over BGP."""
    zones: tuple[str, ...] = ()
    """DNS zones that are written, the cluster's first."""
    release: str | None = None
    """The release of the stream that the boot files are of; None: not known."""
    stream: str | None = None
    """The stream's own name for itself, e.g. `rhcos-4.21`; None: not known."""
    boot: tuple[BootFile, ...] = ()
    hashed_mib: float = DEFAULT_HASHED_MIB
    """Of files up to this size the hash is computed; of larger ones only the size is asked for."""
    installer: str | None = None
    """The installer program, by path or by name on PATH."""
    version: str | None = None
    """The release it must be for."""
    fips: bool = False
    """Whether the cluster is to be in FIPS mode, which the installer ties to the host that it runs on."""
    excused: tuple[str, ...] = ()
    """Checks whose errors are taken for warnings."""

    def to_wire(self) -> dict[str, Any]:
        """As inputs of a resource."""
        named = {"networks": dict(self.networks)} if self.networks else {}
        return {**wire(dataclasses.asdict(self)), **named}
