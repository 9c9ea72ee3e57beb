"""What preflight has to check, as plain data: the inputs of the resource Preflight."""

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
"""Name of the boot file that this program downloads itself to make boot discs of it."""


class BootFile(Inputs):
    """A file that machines boot."""

    name: str
    """`kernel`, `initramfs`, `rootfs`, `disk` or `live ISO`."""
    url: Url
    sha256: Sha256
    mirrored: Url | None = None
    """URL on the artifact host after the file was copied there; None: machines fetch it from `url`."""


class MirrorSet(Inputs):
    """Mirrors of one image repository."""

    source: str
    """The repository, without tag or digest."""
    mirrors: ListOf[str]
    """Repositories with the same images, in the order in which they are tried."""


class Server(Inputs):
    """A machine that is not ordered: a server with a BMC or from Ironic, or the virtual bootstrap machine."""

    name: str
    """The machine's name in the stack: `control-plane-0`, `worker-0`, `bootstrap`."""
    role: Annotated[str, one_of("bootstrap", "control-plane", "arbiter", "worker")]
    """`bootstrap`, `control-plane`, `arbiter` or `worker`."""
    live: bool = False
    """Whether it forms the cluster in its live system: as the bootstrap machine, as the server lent for that, or as a
    single node."""
    bmc: str | None = None
    """Its name in the provider's section `bmcs`; None: this program does not use its BMC."""
    ironic: str | None = None
    """Its name in the provider's section `ironic`; None: it does not come from Ironic. Without `bmc` and `ironic`,
    `memory_mib` and `cpus` tell what it has."""
    macs: Annotated[ListOf[str], LEFT_OUT] = default(())
    """MAC addresses of its network cards that the stack names."""
    device: Annotated[MapOf[Any], LEFT_OUT] = default({})
    """Rules for its installation disk, as in `boot.install.device`; empty: it is not installed to a disk."""
    tpm2: LateFlag = False
    """Whether its disk encryption needs a TPM 2.0."""
    memory_mib: Annotated[Whole, between(1)] | None = None
    """Memory of a virtual machine, in MiB."""
    cpus: Annotated[Whole, between(1)] | None = None
    """Number of CPUs of a virtual machine."""

    @classmethod
    def conflicts(cls, given: Mapping[str, Any]) -> Iterator[Conflict]:
        if all(given.get(key) is None for key in ("bmc", "ironic", "memoryMib")):
            yield ("bmc",), "or `ironic` or `memoryMib` must be given: otherwise its memory is not known"


class Plan(Inputs):
    """Everything about a stack that can be checked before anything is ordered."""

    stack: str
    run: str | None = None
    """The installation (run), as its tags name it; None: nothing was ordered yet."""
    domain: Domain
    """The cluster's domain."""
    architecture: Annotated[str, one_of("x86_64", "aarch64")]
    """`x86_64` or `aarch64`."""
    project_id: str | None = None
    project_name: str | None = None
    """Name of a project that is to be created."""
    organization_id: str | None = None
    """The organization in which the project is to be created."""
    lifetime_hours: Annotated[Whole, between(1)] | None = None
    """Hours after which the platform deletes all machines; None: never."""
    orders: Orders | None = None
    """What is to be ordered; None: all machines exist already."""
    servers: Annotated[ListOf[Server], LEFT_OUT] = default(())
    """The machines that exist already, and the virtual bootstrap machine."""
    networks: Annotated[MapOf[str], LEFT_OUT] = default({})
    """Networks that the cluster uses or that were given to it: a name for people to the CIDR."""
    api_address: Ipv4 | None = None
    """The API's address, if the settings name it; it is announced over BGP."""
    zones: Annotated[ListOf[Domain], LEFT_OUT] = default(())
    """DNS zones in which records are written, the cluster's first."""
    release: str | None = None
    """The release of the stream that the boot files belong to; None: unknown."""
    stream: str | None = None
    """The stream's name in its own metadata, e.g. `rhcos-4.21`; None: unknown."""
    boot: Annotated[ListOf[BootFile], LEFT_OUT] = default(())
    hashed_mib: Annotated[float, between(0)] = DEFAULT_HASHED_MIB
    """Files up to this size (MiB) are downloaded to check their hash; for larger ones only the size is requested."""
    installer: str | None = None
    """The installer program: a path, or a name on PATH."""
    version: str | None = None
    """The OpenShift release that the installer must be for."""
    fips: bool = False
    """Whether the cluster is to be in FIPS mode. The installer then must run on a host in FIPS mode."""
    images: LateFlag = False
    """Whether to ask the registries for all images of the release."""
    release_image: str | None = None
    """The release image to install, by digest; None: the one that the installer names."""
    mirrors: Annotated[ListOf[MirrorSet], LEFT_OUT] = default(())
    """Mirrors of image repositories."""
    excused: Annotated[ListOf[str], LEFT_OUT] = default(())
    """Names of checks whose errors become warnings, without a reason."""
    overrides: Annotated[MapOf[str], LEFT_OUT] = default({})
    """Check name to reason: their errors become warnings. The warnings show the reason, and the state keeps it."""

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
