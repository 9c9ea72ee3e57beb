"""What is to be looked at before anything is ordered, as plain data: the inputs of Preflight."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from metal_ipi.provider.forms import Domain, Ipv4, Sha256, Url, Whole, between, one_of
from metal_ipi.provider.given import LEFT_OUT, LateFlag, ListOf, MapOf, default
from metal_ipi.provider.inputs import Conflict, Inputs
from metal_ipi.provider.orders import Orders

DEFAULT_HASHED_MIB = 64


LIVE_ISO = "live ISO"
"""The name of the boot file that this program fetches itself, to make servers' discs of it."""


class BootFile(Inputs):
    """A file that machines boot from."""

    name: str
    """`kernel`, `initramfs`, `rootfs`, `disk` or `live ISO`."""
    url: Url
    sha256: Sha256
    mirrored: Url | None = None
    """Where the artifact host serves it once it was copied there; None: machines fetch it from `url`."""


class MirrorSet(Inputs):
    """Where else the images of a repository are."""

    source: str
    """The repository, without tag and digest."""
    mirrors: ListOf[str]
    """Repositories that have the same images, in the order in which they are asked."""


class Server(Inputs):
    """A machine that is not ordered: a server with a BMC, or the virtual machine that bootstraps the cluster."""

    name: str
    """What the stack calls it: `control-plane-0`, `worker-0`, `bootstrap`."""
    role: Annotated[str, one_of("bootstrap", "control-plane", "arbiter", "worker")]
    """`bootstrap`, `control-plane`, `arbiter` or `worker`."""
    live: bool = False
    """Whether it forms the cluster in its live system: as bootstrap machine, as the server that is lent for it, or as a
    single node."""
    bmc: str | None = None
    """Its name in the provider's section `bmcs`; None: it has none of ours."""
    ironic: str | None = None
    """Its name in the provider's section `ironic`; None: it is not had from Ironic. With neither, `memory_mib` and
    `cpus` tell what it has."""
    macs: Annotated[ListOf[str], LEFT_OUT] = default(())
    """MAC addresses of the cards that the stack names."""
    device: Annotated[MapOf[Any], LEFT_OUT] = default({})
    """Rules for the disk that it is installed to, as `boot.install.device` has them; none: it is not installed."""
    tpm2: LateFlag = False
    """Whether its disk cannot be opened without a TPM 2.0."""
    memory_mib: Annotated[Whole, between(1)] | None = None
    """The memory of a virtual machine."""
    cpus: Annotated[Whole, between(1)] | None = None
    """The CPUs of a virtual machine."""

    @classmethod
    def conflicts(cls, given: Mapping[str, Any]) -> Iterator[Conflict]:
        if all(given.get(key) is None for key in ("bmc", "ironic", "memoryMib")):
            yield ("bmc",), "or `ironic` or `memoryMib` must be given: what else tells how much memory it has?"


class Plan(Inputs):
    """A stack, as far as it can be checked before anything is ordered."""

    stack: str
    run: str | None = None
    """The installation that it is, as its tags say; None: nothing of it was ever ordered."""
    domain: Domain
    """The cluster's."""
    architecture: Annotated[str, one_of("x86_64", "aarch64")]
    """`x86_64` or `aarch64`."""
    project_id: str | None = None
    project_name: str | None = None
    """Of a project that is to be created."""
    organization_id: str | None = None
    """Whose it is to be."""
    lifetime_hours: Annotated[Whole, between(1)] | None = None
    """Hours after which the platform deletes all machines; None: never."""
    orders: Orders | None = None
    """None where the machines are there already."""
    servers: Annotated[ListOf[Server], LEFT_OUT] = default(())
    """The machines that are there already, and the virtual one."""
    networks: Annotated[MapOf[str], LEFT_OUT] = default({})
    """What the cluster uses inside, or was told to use: a word for people to CIDR."""
    api_address: Ipv4 | None = None
    """The API's address, where a stack names it; it is announced over BGP."""
    zones: Annotated[ListOf[Domain], LEFT_OUT] = default(())
    """DNS zones that are written, the cluster's first."""
    release: str | None = None
    """The release of the stream that the boot files are of; None: not known."""
    stream: str | None = None
    """The stream's own name for itself, e.g. `rhcos-4.21`; None: not known."""
    boot: Annotated[ListOf[BootFile], LEFT_OUT] = default(())
    hashed_mib: Annotated[float, between(0)] = DEFAULT_HASHED_MIB
    """Of files up to this size the hash is computed; of larger ones only the size is asked for."""
    installer: str | None = None
    """The installer program, by path or by name on PATH."""
    version: str | None = None
    """The release it must be for."""
    fips: bool = False
    """Whether the cluster is to be in FIPS mode, which the installer ties to the host that it runs on."""
    images: LateFlag = False
    """Whether registries are asked for all images of the release."""
    release_image: str | None = None
    """The release image that is installed, by digest; None: the one that the installer tells."""
    mirrors: Annotated[ListOf[MirrorSet], LEFT_OUT] = default(())
    """Mirrors of repositories."""
    excused: Annotated[ListOf[str], LEFT_OUT] = default(())
    """Names of checks whose errors are taken for warnings, without a reason."""
    overrides: Annotated[MapOf[str], LEFT_OUT] = default({})
    """Checks whose errors are taken for warnings: name → reason, which the warnings tell and the state keeps."""

    @classmethod
    def conflicts(cls, given: Mapping[str, Any]) -> Iterator[Conflict]:
        networks = given.get("networks")
        for name, cidr in networks.items() if isinstance(networks, Mapping) else ():
            if isinstance(cidr, str) and not _is_network(cidr):
                yield ("networks", name), "must be a CIDR such as 10.128.0.0/14"
        project = given.get("projectId"), given.get("projectName")
        if given.get("orders") is not None and (project[0] is None) == (project[1] is None):
            yield ("projectId",), "or `projectName` must be given, and not both"
        if project[1] is not None and given.get("organizationId") is None:
            yield ("organizationId",), "is required with `projectName`"


def _is_network(value: str) -> bool:
    try:
        ipaddress.ip_network(value)
    except ValueError:
        return False
    return "/" in value
