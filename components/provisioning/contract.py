"""What the service is told: plain data, validated before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import pulumi

from metal_ipi.provider.types import Secret

API_PORT = 6385
"""Ironic's API."""
RPC_PORT = 8089
"""What conductors ask each other by."""
FILES_PORT = 6183
"""What servers and BMCs fetch boot files from."""
DATABASE_PORT = 3306
IMAGES_PORT = 6184
"""The image cache."""
METRICS_PORT = 9608
"""Each conductor's metrics."""


@dataclass(frozen=True, kw_only=True)
class Images:
    """References of container images."""

    ironic: str
    """Has `ironic` and `ironic-dbsync` on its PATH, Python and, for the driver ipmi, ipmitool."""
    database: str
    """Has `mariadbd`, `mariadb-install-db`, `mariadb` and `mariadb-admin` on its PATH."""
    files: str
    """Has `nginx`."""
    dhcp: str | None = None
    """Has `dnsmasq`, and iPXE as /usr/lib/ipxe/snponly.efi and undionly.kpxe; needed with `Dhcp` only."""


@dataclass(frozen=True, kw_only=True)
class NodePorts:
    """Reached at an address of the hub's nodes."""

    address: str
    """IPv4 address or name that leads to a node."""
    api: int
    """Node port of the API."""
    files: int
    """Node port of the first conductor's boot files; those of the others follow."""
    images: int
    """Node port of the image cache."""


@dataclass(frozen=True, kw_only=True)
class LoadBalancer:
    """Reached at addresses of the hub's load balancer, each Service with its own."""

    address: str
    """Of the API and the image cache."""
    files: Sequence[str]
    """Of each conductor's boot files."""
    annotations: Mapping[str, str] = field(default_factory=dict[str, str])
    """On these Services, for the load balancer."""


@dataclass(frozen=True, kw_only=True)
class GivenTls:
    """Certificates that somebody else makes and renews."""

    ca: str
    """The authority that signed them, PEM."""
    certificate: pulumi.Input[str]
    """PEM, good for `certificate_names`."""
    private_key: pulumi.Input[Secret[str]]
    """PEM."""


@dataclass(frozen=True, kw_only=True)
class MadeTls:
    """Certificates of an authority of the stack's own; the hub renews them near their end."""

    valid_days: int = 397
    renew_before_days: int = 60


@dataclass(frozen=True, kw_only=True)
class OwnDatabase:
    """MariaDB beside Ironic."""

    storage: str = "1Gi"
    """Size of its volume, as Kubernetes writes it."""
    storage_class: str | None = None
    """None: the hub's default."""


@dataclass(frozen=True, kw_only=True)
class GivenDatabase:
    """A MariaDB or MySQL that is there, reached over TLS."""

    host: str
    port: int
    name: str
    username: str
    password: pulumi.Input[Secret[str]]
    ca: str
    """The authority of its certificate, PEM."""


@dataclass(frozen=True, kw_only=True)
class Dhcp:
    """dnsmasq on the provisioning network, the only part in the nodes' own network: DHCP, TFTP, and a way to iPXE."""

    interface: str
    """Of the hub's nodes, in the provisioning network."""
    ranges: Sequence[str]
    """`<first>,<last>[,<netmask>]`, as dnsmasq writes them."""
    gateway: str | None = None
    nameservers: Sequence[str] = ()
    lease_seconds: int = 3600


@dataclass(frozen=True, kw_only=True)
class CachedImage:
    """A file that is fetched once, and served from the cache."""

    name: str
    """The file's name there."""
    url: str
    sha256: str
    """64 hexadecimal digits."""


@dataclass(frozen=True, kw_only=True)
class ImageCache:
    """Ramdisks and images of operating systems."""

    images: Sequence[CachedImage]
    storage: str = "20Gi"
    storage_class: str | None = None
    ca: str = ""
    """Authorities of the hosts that images come from, PEM; empty: the image's own."""


@dataclass(frozen=True, kw_only=True)
class Ramdisk:
    """What the ramdisk that Ironic cleans, inspects and deploys with is told. None of it concerns CoreOS."""

    kernel: str | None = None
    """URL, or `cache:<name>` of a cached image."""
    initramfs: str | None = None
    kernel_arguments: Sequence[str] = ()
    ssh_key: str | None = None
    """A public key that may log in to it."""


@dataclass(frozen=True, kw_only=True)
class Metrics:
    """What is measured for Prometheus."""

    interval_seconds: int = 60
    """How often BMCs are asked."""
    all_servers: bool = False
    """Also those that nobody has."""
    monitor: bool = False
    """With an object that tells prometheus-operator of it."""


@dataclass(frozen=True, kw_only=True)
class Operator:
    """The ironic-standalone-operator, which the hub has: it runs Ironic, in the nodes' own network."""

    version: str | None = None
    """The release of Ironic that it is told to run, `latest` or `<major>.<minor>`; None: the operator's default."""
    interface: str | None = None
    """Of the nodes, where Ironic listens; or `address`."""
    address: str | None = None
    network: str | None = None
    """The provisioning network (CIDR); needed with DHCP."""


@dataclass(frozen=True, kw_only=True)
class IronicArgs:
    """Arguments of `IronicService`."""

    kubeconfig: pulumi.Input[Secret[str]]
    """The hub's, with rights for the namespace and to make it."""
    namespace: str
    images: Images
    access: NodePorts | LoadBalancer
    tls: MadeTls | GivenTls = field(default_factory=MadeTls)
    rotation: int = 1
    """Raise it to have all passwords made anew."""
    conductors: int = 1
    conductor_group: str = ""
    drivers: Sequence[str] = ("redfish",)
    """Ironic's hardware types: redfish, idrac, ipmi."""
    automated_cleaning: bool = False
    database: OwnDatabase | GivenDatabase = field(default_factory=OwnDatabase)
    image_cache: ImageCache | None = None
    dhcp: Dhcp | None = None
    ramdisk: Ramdisk = field(default_factory=Ramdisk)
    ca: str = ""
    """Authorities of BMCs and of hosts that discs and images are fetched from, PEM; empty: the image's own."""
    plain_boot_files: bool = False
    """Boot files over HTTP: for BMCs and firmware that cannot be told which authority to trust."""
    pin_release: str | None = None
    """While conductors of two releases run: the older one. Data are migrated by the first `up` without it."""
    metrics: Metrics | None = None
    """None: nothing is measured."""
    operator: Operator | None = None
    """None: conductors and all else are declared one by one."""
    extra: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, "Mapping[str, str]"])
    """More of Ironic's options, by section and name. Those that the service sets itself are refused before."""
    log_level: Literal["debug", "info"] = "info"
