"""The settings of a hub's stack: one validated tree, like `stacks.model` for a cluster."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Literal

from pydantic import Field, SecretStr, field_validator, model_validator

from metal_ipi.stacks.sections import forms
from metal_ipi.stacks.sections.api_address import HostIPv4
from metal_ipi.stacks.sections.base import Pem, Section, is_public_key, matching, wrong
from metal_ipi.stacks.sections.cluster_api import Hub, Namespace
from metal_ipi.stacks.sections.forms import Interface
from metal_ipi.stacks.sections.install import Lab

ImageReference = Annotated[
    str,
    matching(
        r"[a-z0-9][A-Za-z0-9._:/-]{0,250}(@sha256:[0-9a-f]{64})?",
        "it is not a reference of a container image",
        "write it as registry/name:tag, or better registry/name@sha256:<digest>",
    ),
]
Host = Annotated[
    forms.Host, matching(r"[^:]+[^:.]", "it is neither a host name nor an IPv4 address", "give one, e.g. 192.0.2.15")
]
Size = Annotated[
    str, matching(r"[1-9][0-9]{0,6}(Mi|Gi|Ti)", "it is not a size", "write it as Kubernetes does, e.g. 20Gi")
]
NodePort = Annotated[int, Field(ge=30000, le=32767)]
DownloadUrl = Annotated[
    str, matching(r"https?://[^/\s\"'`\\<>]+/[^\s\"'`\\<>]*", "it is not an http(s) URL", "give the URL of a file")
]
KernelWord = Annotated[
    str, matching(r"[A-Za-z0-9_.,:=/@+-]{1,256}", "it is not one kernel argument", "write one per item, no spaces")
]
OptionName = Annotated[
    str,
    matching(r"[A-Za-z][A-Za-z0-9_.-]{0,63}", "it is not a name of an option", "copy it from Ironic's documentation"),
]
OptionValue = Annotated[
    str,
    matching(r"[^\x00-\x1f\x7f]{1,1024}", "it is not a value of one line", "give printable characters, at most 1024"),
]


class Images(Section):
    """The container images of the service. Each description lists the programs that must be on the image's PATH."""

    ironic: ImageReference | None = Field(
        default=None,
        description=(
            "an image that contains ironic, ironic-dbsync, python3 with PyMySQL and cryptography 42 or newer "
            "(and ipmitool)"
        ),
    )
    database: ImageReference | None = Field(
        default=None,
        description=(
            "an image that contains mariadbd, mariadb-install-db, mariadb, mariadb-admin; only with database mariadb"
        ),
    )
    files: ImageReference | None = Field(default=None, description="an image that contains nginx 1.15.9 or newer")
    dhcp: ImageReference | None = Field(
        default=None,
        description=(
            "an image that contains dnsmasq, and iPXE in /usr/lib/ipxe: snponly.efi, undionly.kpxe; only with "
            "provisioning.dhcp"
        ),
    )


class AtNodePorts(Section):
    """At an address of the hub's nodes."""

    type: Literal["node-port"] = "node-port"
    address: Host | None = Field(default=None, description="an address or name that leads to a node of the hub")
    api: NodePort = Field(default=31385, description="the node port of the API")
    images: NodePort = Field(default=31384, description="the node port of the image cache")
    files: NodePort = Field(
        default=31400, description="the node port of the first conductor's boot files; the others' follow"
    )


class AtLoadBalancer(Section):
    """At addresses of the hub's load balancer."""

    type: Literal["load-balancer"] = "load-balancer"
    address: Host = Field(description="the address of the API and the image cache")
    files: tuple[Host, ...] = Field(strict=False, description="the address of each conductor's boot files")
    annotations: dict[str, str] = Field(
        default_factory=dict, description="annotations of these Services, for the load balancer"
    )


class MadeTls(Section):
    """Certificates of a certificate authority that the stack creates."""

    type: Literal["made"] = "made"
    valid_days: int = Field(default=397, ge=2, le=3650, description="how long they are valid, days")
    renew_before_days: int = Field(
        default=60, ge=1, le=3649, description="how many days before their end the hub renews them"
    )

    @model_validator(mode="after")
    def _in_time(self) -> MadeTls:
        if self.renew_before_days >= self.valid_days:
            raise wrong("they would be renewed every day", "make it less than validDays", at="renewBeforeDays")
        return self


class GivenTls(Section):
    """Certificates that you issue and renew yourself."""

    type: Literal["given"] = "given"
    ca: Pem = Field(description="the authority that signed it (PEM)")
    certificate: Pem = Field(description="the API's certificate (PEM)")
    private_key: SecretStr | None = Field(default=None, description="its key (PEM), as a secret")


class OwnDatabase(Section):
    """MariaDB on the hub, beside Ironic."""

    type: Literal["mariadb"] = "mariadb"
    storage: Size = Field(default="1Gi", description="the size of its volume")
    storage_class: str | None = Field(default=None, description="its storage class; not set: the hub's default")


class GivenDatabase(Section):
    """An existing MariaDB or MySQL; it must support TLS."""

    type: Literal["external"] = "external"
    host: Host = Field(description="its name or address, as its certificate has it")
    port: int = Field(default=3306, ge=1, le=65535, description="its port")
    name: OptionName = Field(default="ironic", description="the database's name")
    username: OptionName = Field(description="the account, which must be allowed to create and change tables")
    password: SecretStr | None = Field(default=None, description="its password, as a secret")
    ca: Pem = Field(description="the authority of its certificate (PEM)")


class Dhcp(Section):
    """dnsmasq on the provisioning network: addresses, and iPXE over TFTP. Not needed for virtual media."""

    interface: Interface = Field(description="the interface of the hub's nodes in the provisioning network")
    ranges: tuple[str, ...] = Field(strict=False, description="ranges of addresses, first-last", min_length=1)
    gateway: str | None = Field(default=None, description="the default gateway for servers; not set: none")
    nameservers: tuple[str, ...] = Field(default=(), strict=False, description="the DNS resolvers for servers")
    lease_seconds: int = Field(default=3600, ge=120, le=604800, description="how long a DHCP lease is valid, seconds")

    @field_validator("ranges")
    @classmethod
    def _in_order(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for each in value:
            first, _, last = each.partition("-")
            try:
                right = ipaddress.IPv4Address(first) <= ipaddress.IPv4Address(last)
            except ValueError:
                right = False
            if not right:
                raise wrong(f"'{each}' is not a range", "write the first and the last address: 192.0.2.50-192.0.2.99")
        return value


class CachedImage(Section):
    """A file that is fetched once, checked, and served from the cache."""

    name: Annotated[
        str, matching(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}", "it is not a plain file name", "use letters, digits, . _ -")
    ] = Field(description="the file's name in the cache")
    url: DownloadUrl = Field(description="the URL from which it is downloaded")
    sha256: Annotated[
        str, matching(r"[0-9a-f]{64}", "it is not a SHA-256", "give 64 hexadecimal digits, as sha256sum prints them")
    ] = Field(description="its SHA-256")


class ImageCache(Section):
    """Ramdisks and images of operating systems, fetched once and shared by all that can reach the cache."""

    images: tuple[CachedImage, ...] = Field(strict=False, description="the cached files", min_length=1)
    storage: Size = Field(default="20Gi", description="the size of its volume")
    storage_class: str | None = Field(default=None, description="its storage class; not set: the hub's default")
    ca: Pem | None = Field(default=None, description="authorities (PEM) of the hosts; not set: the image's own")

    @field_validator("images")
    @classmethod
    def _named_once(cls, value: tuple[CachedImage, ...]) -> tuple[CachedImage, ...]:
        names = [each.name for each in value]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise wrong(f"{', '.join(twice)} is named twice", "give each image its own name")
        return value


class Ramdisk(Section):
    """The ramdisk with which Ironic cleans, and on request inspects and deploys. CoreOS does not need it."""

    kernel: str | None = Field(default=None, description="its kernel's URL, or cache:<name> of a cached image")
    initramfs: str | None = Field(default=None, description="its URL, or cache:<name> of a cached image")
    kernel_arguments: tuple[KernelWord, ...] = Field(
        default=(), strict=False, description="more kernel arguments for it"
    )
    ssh_key: str | None = Field(default=None, description="a public key that may log in to it")

    @field_validator("ssh_key")
    @classmethod
    def _public(cls, value: str | None) -> str | None:
        if value is not None and not is_public_key(value):
            raise wrong("it is not an SSH public key", "give the content of a .pub file: 'ssh-ed25519 AAAA... name'")
        return value


class Metrics(Section):
    """Measurements of BMCs and statistics of conductors, for Prometheus."""

    interval_seconds: int = Field(default=60, ge=60, le=86400, description="how often BMCs are asked, seconds")
    all_servers: bool = Field(default=False, description="also ask the BMCs of servers that are not in use")
    monitor: bool = Field(
        default=False, description="create a PodMonitor for prometheus-operator, which the hub must have"
    )


class Operator(Section):
    """The ironic-standalone-operator, if the hub has it: it runs Ironic, in the network of the hub's nodes."""

    version: (
        Annotated[
            str, matching(r"latest|[0-9]{1,3}\.[0-9]{1,3}", "it is not a release", "write latest, or e.g. '34.0'")
        ]
        | None
    ) = Field(default=None, description="the release of Ironic; not set: the operator's default")
    interface: Interface | None = Field(
        default=None, description="the interface of the hub's nodes on which it listens; give this or address"
    )
    address: HostIPv4 | None = Field(
        default=None, description="the address on which it listens; only with one conductor"
    )
    network: str | None = Field(
        default=None, description="the provisioning network, e.g. 192.0.2.0/24; needed with provisioning.dhcp"
    )

    @field_validator("network")
    @classmethod
    def _a_network(cls, value: str | None) -> str | None:
        try:
            return None if value is None else str(ipaddress.IPv4Network(value))
        except ValueError as error:
            raise wrong(f"it is not an IPv4 network: {error}", "write it as 192.0.2.0/24") from None


class Provisioning(Section):
    """Ironic as a service."""

    namespace: Namespace = Field(default="metal-ipi-provisioning", description="the namespace for it, and only for it")
    images: Images = Field(default_factory=Images, description="its container images")
    access: Annotated[AtNodePorts | AtLoadBalancer, Field(discriminator="type")] = Field(
        default_factory=AtNodePorts, description="how it is reached from outside the hub"
    )
    tls: Annotated[MadeTls | GivenTls, Field(discriminator="type")] = Field(
        default_factory=MadeTls, description="the certificate of the API, which the conductors use as well"
    )
    rotation: int = Field(
        default=1,
        ge=1,
        le=1_000_000,
        description="raise this number to create new passwords; the previous ones stay valid until the next rotation",
    )
    conductors: int = Field(
        default=1, ge=1, le=9, description="the number of conductors, which share the nodes; each has an API of its own"
    )
    conductor_group: Annotated[
        str, matching(r"[A-Za-z0-9_.-]{0,255}", "it is not a name of a group", "use letters, digits, _ . -")
    ] = Field(default="", description="the conductors manage only nodes of this group; not set: nodes without a group")
    drivers: tuple[Literal["redfish", "idrac", "ipmi"], ...] = Field(
        default=("redfish",), strict=False, min_length=1, description="Ironic's hardware types"
    )
    automated_cleaning: bool = Field(
        default=False, description="true: the ramdisk erases the disks before and after each use"
    )
    database: Annotated[OwnDatabase | GivenDatabase, Field(discriminator="type")] = Field(
        default_factory=OwnDatabase, description="Ironic's database"
    )
    image_cache: ImageCache | None = Field(
        default=None, description="files that are downloaded once and served to all servers"
    )
    dhcp: Dhcp | None = Field(default=None, description="addresses for servers that boot from the network")
    ramdisk: Ramdisk = Field(default_factory=Ramdisk, description="the ramdisk of Ironic's agent")
    ca: Pem | None = Field(
        default=None,
        description="authorities (PEM) of BMCs, and of hosts that conductors fetch discs and images from; not set:"
        " those of the image `ironic`",
    )
    plain_boot_files: bool = Field(
        default=False,
        description=(
            "true: serve boot files over HTTP, for BMCs and iPXE that cannot be configured to trust an authority"
        ),
    )
    pin_release: (
        Annotated[
            str, matching(r"[0-9]{1,3}\.[0-9]{1,3}", "it is not a release of Ironic", "write two numbers, e.g. '38.0'")
        ]
        | None
    ) = Field(
        default=None,
        description="the older release, while conductors of two releases run; without it, the data are migrated",
    )
    metrics: Metrics | None = Field(default=None, description="metrics for Prometheus; not set: none")
    operator: Operator | None = Field(
        default=None,
        description=(
            "let the ironic-standalone-operator run Ironic; not set: this stack creates Ironic's objects itself"
        ),
    )
    extra_config: dict[OptionName, dict[OptionName, OptionValue]] = Field(
        default_factory=dict, description="more of Ironic's options, by section and name"
    )
    log_level: Literal["debug", "info"] = Field(default="info", description="debug or info")

    @property
    def remarks(self) -> tuple[str, ...]:
        """Hints about settings that are valid but may be incomplete."""
        if "ipmi" not in self.drivers or self.dhcp is not None or self.operator is not None:
            return ()
        return (
            "provisioning.drivers has ipmi, and there is no provisioning.dhcp: servers with that driver boot from the "
            "network, and need DHCP of the site's own that leads iPXE to boot/boot.ipxe of the artifact host",
        )

    @model_validator(mode="after")
    def _fits(self) -> Provisioning:
        ports = self.access
        if isinstance(ports, AtNodePorts):
            files = range(ports.files, ports.files + self.conductors)
            if ports.api == ports.images or ports.api in files or ports.images in files or files[-1] > 32767:
                raise wrong(
                    f"node ports overlap: api {ports.api}, images {ports.images}, files {files[0]} to {files[-1]}",
                    "give each its own, at most 32767",
                    at="access",
                )
        elif len(ports.files) != self.conductors:
            raise wrong(
                f"there are {self.conductors} conductors and {len(ports.files)} addresses",
                "give each conductor an address for its boot files",
                at="access.files",
            )
        if self.operator is not None:
            self._fits_operator(self.operator)
        elif self.dhcp is not None and not self.plain_boot_files and isinstance(self.tls, MadeTls):
            raise wrong(
                "with dhcp servers boot by iPXE, which does not trust the authority that `up` makes",
                "set plainBootFiles to true, or give a certificate that the iPXE of images.dhcp trusts (type given)",
                at="plainBootFiles",
            )
        cached = {f"cache:{image.name}" for image in self.image_cache.images} if self.image_cache else set[str]()
        for name, url in (("kernel", self.ramdisk.kernel), ("initramfs", self.ramdisk.initramfs)):
            if url is not None and url not in cached and not url.startswith(("http://", "https://")):
                raise wrong(
                    "it is not a URL, and imageCache has no such image",
                    "write cache:<name>, or a URL",
                    at=f"ramdisk.{name}",
                )
        if self.automated_cleaning and not (self.ramdisk.kernel and self.ramdisk.initramfs):
            raise wrong(
                "Ironic cleans with a ramdisk, and none is set",
                "set ramdisk.kernel and ramdisk.initramfs, or this to false",
                at="automatedCleaning",
            )
        return self

    def _fits_operator(self, operator: Operator) -> None:
        """Check the limits of the operator, from its api module."""
        access, dhcp = self.access, self.dhcp
        if not isinstance(access, AtNodePorts):
            raise wrong("the operator has no load balancers", "set access.type to node-port", at="access.type")
        if self.pin_release is not None:
            raise wrong("the operator pins releases itself", "set operator.version instead", at="pinRelease")
        if (operator.interface is None) == (operator.address is None):
            raise wrong("exactly one of interface and address is needed", "set one of them", at="operator.interface")
        if self.conductors > 1 and (operator.address is not None or dhcp is not None):
            raise wrong(
                "with several conductors the operator supports neither an address nor DHCP",
                "set operator.interface, and no dhcp",
                at="conductors",
            )
        if self.conductors > 1 and self.metrics is not None and self.metrics.monitor:
            raise wrong(
                "with several conductors the operator does not configure prometheus-operator",
                "set it to false, and write a PodMonitor of your own",
                at="metrics.monitor",
            )
        if dhcp is not None and operator.network is None:
            raise wrong("it is needed with dhcp", "give the provisioning network", at="operator.network")
        if dhcp is not None and (len(dhcp.ranges) > 1 or len(dhcp.nameservers) > 1 or dhcp.lease_seconds != 3600):
            raise wrong(
                "the operator's DHCP has one range, one nameserver and leases of its own",
                "give one of each, and leave leaseSeconds out",
                at="dhcp",
            )


class HubSettings(Section):
    """All settings of a hub's stack."""

    hub: Hub = Field(default_factory=Hub, description="how the hub is reached")
    provisioning: Provisioning = Field(description="Ironic as a service on it")
    lab: Lab | None = Field(
        default=None,
        description="set only for stacks that run in the lab; read by the command line, not by the program",
    )
    rehearsal: bool = Field(
        default=False, description="true: an offline preview, with placeholders for missing secrets"
    )
