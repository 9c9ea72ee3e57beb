"""The arguments of the service: plain data, validated by the caller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import pulumi

from metal_ipi.provider.types import Secret

API_PORT = 6385
"""The port of Ironic's API."""
RPC_PORT = 8089
"""The port on which conductors call each other."""
FILES_PORT = 6183
"""The port from which servers and BMCs fetch boot files."""
DATABASE_PORT = 3306
IMAGES_PORT = 6184
"""The port of the image cache."""
METRICS_PORT = 9608
"""The port of each conductor's metrics."""


@dataclass(frozen=True, kw_only=True)
class Images:
    """References of container images."""

    ironic: str
    """Must have `ironic` and `ironic-dbsync` on its PATH, Python and, for the driver ipmi, ipmitool."""
    database: str
    """Must have `mariadbd`, `mariadb-install-db`, `mariadb` and `mariadb-admin` on its PATH."""
    files: str
    """Must have `nginx`."""
    dhcp: str | None = None
    """Must have `dnsmasq`, and iPXE as /usr/lib/ipxe/snponly.efi and undionly.kpxe. Needed with `Dhcp` only."""


@dataclass(frozen=True, kw_only=True)
class NodePorts:
    """The service is reached at ports of the hub's nodes."""

    address: str
    """An IPv4 address or a name of a node."""
    api: int
    """The node port of the API."""
    files: int
    """The node port of the first conductor's boot files; the other conductors use the following ports."""
    images: int
    """The node port of the image cache."""


@dataclass(frozen=True, kw_only=True)
class LoadBalancer:
    """The service is reached through the hub's load balancer; each Service has its own address."""

    address: str
    """The address of the API and the image cache."""
    files: Sequence[str]
    """The addresses of the conductors' boot files, one for each conductor."""
    annotations: Mapping[str, str] = field(default_factory=dict[str, str])
    """Annotations on these Services, for the load balancer."""


@dataclass(frozen=True, kw_only=True)
class GivenTls:
    """Certificates that the user issues and renews."""

    ca: str
    """The certificate authority, PEM."""
    certificate: pulumi.Input[str]
    """PEM, valid for `certificate_names`."""
    private_key: pulumi.Input[Secret[str]]
    """PEM."""


@dataclass(frozen=True, kw_only=True)
class MadeTls:
    """Certificates of a certificate authority of the stack; the hub renews them before they expire."""

    valid_days: int = 397
    renew_before_days: int = 60


@dataclass(frozen=True, kw_only=True)
class OwnDatabase:
    """MariaDB on the hub, beside Ironic."""

    storage: str = "1Gi"
    """The size of its volume as a Kubernetes quantity."""
    storage_class: str | None = None
    """None: the hub's default storage class."""


@dataclass(frozen=True, kw_only=True)
class GivenDatabase:
    """An existing MariaDB or MySQL, reached over TLS."""

    host: str
    port: int
    name: str
    username: str
    password: pulumi.Input[Secret[str]]
    ca: str
    """The certificate authority of its certificate, PEM."""


@dataclass(frozen=True, kw_only=True)
class Dhcp:
    """dnsmasq on the provisioning network: DHCP, TFTP, and iPXE. The only part that runs in the nodes' own network."""

    interface: str
    """The interface of the hub's nodes in the provisioning network."""
    ranges: Sequence[str]
    """`<first>,<last>[,<netmask>]`, in dnsmasq's syntax."""
    gateway: str | None = None
    nameservers: Sequence[str] = ()
    lease_seconds: int = 3600


@dataclass(frozen=True, kw_only=True)
class CachedImage:
    """A file that is fetched once, and served from the cache."""

    name: str
    """The file's name in the cache."""
    url: str
    sha256: str
    """64 hexadecimal digits."""


@dataclass(frozen=True, kw_only=True)
class ImageCache:
    """A cache of ramdisks and images of operating systems."""

    images: Sequence[CachedImage]
    storage: str = "20Gi"
    storage_class: str | None = None
    ca: str = ""
    """Certificate authorities of the hosts that images come from, PEM. Empty: the container image's own."""


@dataclass(frozen=True, kw_only=True)
class Ramdisk:
    """The ramdisk with which Ironic cleans, inspects and deploys. CoreOS does not use it."""

    kernel: str | None = None
    """A URL, or `cache:<name>` of a cached image."""
    initramfs: str | None = None
    kernel_arguments: Sequence[str] = ()
    ssh_key: str | None = None
    """A public SSH key for logins to it."""


@dataclass(frozen=True, kw_only=True)
class Metrics:
    """Metrics for Prometheus."""

    interval_seconds: int = 60
    """Seconds between two measurements of a BMC."""
    all_servers: bool = False
    """Whether servers that are not in use are measured too."""
    monitor: bool = False
    """Whether to create a PodMonitor for prometheus-operator."""


@dataclass(frozen=True, kw_only=True)
class Operator:
    """The ironic-standalone-operator, which is installed on the hub already. It runs Ironic in the nodes' own
    network."""

    version: str | None = None
    """The release of Ironic to run, `latest` or `<major>.<minor>`. None: the operator's default."""
    interface: str | None = None
    """The nodes' interface on which Ironic listens; an alternative to `address`."""
    address: str | None = None
    network: str | None = None
    """The provisioning network (CIDR); needed with DHCP."""


@dataclass(frozen=True, kw_only=True)
class IronicArgs:
    """Arguments of `IronicService`."""

    kubeconfig: pulumi.Input[Secret[str]]
    """The hub's kubeconfig, with the rights to create the namespace and objects in it. Secret."""
    namespace: str
    images: Images
    access: NodePorts | LoadBalancer
    tls: MadeTls | GivenTls = field(default_factory=MadeTls)
    rotation: int = 1
    """A counter: raising it replaces all passwords."""
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
    """Certificate authorities of BMCs, and of hosts from which discs and images are fetched, PEM. Empty: the image's
    own."""
    plain_boot_files: bool = False
    """Whether boot files are served over plain HTTP, for BMCs and firmware that cannot be given a certificate
    authority."""
    pin_release: str | None = None
    """The older release, while conductors of two releases run. The first `up` without it migrates the data."""
    metrics: Metrics | None = None
    """None: no metrics."""
    operator: Operator | None = None
    """The operator to use. None: conductors and all other objects are declared directly."""
    extra: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, "Mapping[str, str]"])
    """Further options of Ironic, by section and name. The caller refuses those that the service sets itself."""
    log_level: Literal["debug", "info"] = "info"
