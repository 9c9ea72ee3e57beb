"""Servers of your own: reached over their BMCs (Redfish), and listed one by one."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Literal
from urllib.parse import urlsplit

from cryptography import x509
from pydantic import AfterValidator, Field, SecretStr, field_validator, model_validator

from stacks.sections.base import IPv4, KernelArguments, Section, wrong
from stacks.sections.devices import DeviceRule

BootMethod = Literal["pxe", "uefi-http", "virtual-media"]
_BOOT_METHODS = (
    "pxe: the firmware's own, by DHCP; uefi-http: the firmware fetches iPXE from bootUrl;"
    " virtual-media: the BMC attaches bootImage as a CD"
)
MACHINE_NAME = re.compile(r"(control-plane|worker)-(0|[1-9]\d{0,3})")


def _pem(value: str) -> str:
    try:
        x509.load_pem_x509_certificates(value.encode())
    except ValueError:
        raise wrong(
            "it holds no certificate", "give the PEM text of the authority's certificate(s), BEGIN CERTIFICATE and all"
        ) from None
    return value


def _fingerprint(value: str) -> str:
    if not re.fullmatch(r"sha256:[0-9a-f]{64}", value):
        raise wrong(
            "it is not 'sha256:' and 64 hexadecimal digits",
            "take it from `openssl s_client -connect <bmc>:443 </dev/null | openssl x509 -outform der | sha256sum`,"
            " over a network that you trust",
        )
    return value


def _mac(value: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}", value):
        raise wrong("it is no MAC address in lower case", "write it as 52:54:00:12:34:56")
    if int(value[:2], 16) & 1:
        raise wrong("it is a group's address: no network card has it", "copy it from the server's inventory")
    return value


def _bmc_url(value: str) -> str:
    if not re.fullmatch(r"https://([A-Za-z0-9.-]+|\[[0-9a-fA-F:]+\])(:\d{1,5})?/?", value):
        raise wrong(
            "it is no https URL of a BMC: credentials are sent to it, so it must prove who it is",
            "give scheme, host and no path, e.g. https://10.0.0.11",
        )
    return value.rstrip("/")


def _url(value: str) -> str:
    if not re.fullmatch(r"https?://[^/\s]+/\S+", value):
        raise wrong("it is no http(s) URL", "give the URL under which the BMC or the firmware fetches it")
    if urlsplit(value).username is not None:
        raise wrong(
            "it holds a user name: who fetches it would show it",
            "have it served to whoever is in the machines' network, and take everything up to the @ out",
        )
    return value


def _interface(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,15}", value):
        raise wrong("it is no name of an interface", "give it as `ip link` on the machines shows it, e.g. eno1")
    return value


def _path(value: str) -> str:
    if not value.startswith("/") or value.endswith("/"):
        raise wrong("it is no absolute path of a file", "give the path on the system where libvirt runs")
    return value


def _connection(value: str) -> str:
    if not re.fullmatch(r"qemu(\+[a-z0-9]+)?://[^\s/]*/(system|session)(\?\S+)?", value):
        raise wrong("it is no connection URI of QEMU's", "give it as `virsh uri` prints it, e.g. qemu:///system")
    return value


Mac = Annotated[str, AfterValidator(_mac)]
_Ca = Annotated[str, AfterValidator(_pem)]
_Fingerprint = Annotated[str, AfterValidator(_fingerprint)]
_Url = Annotated[str, AfterValidator(_url)]


class Bmc(Section):
    """How BMCs are reached: what all servers have in common."""

    username: str | None = Field(default=None, min_length=1, description="the account, one made for this purpose")
    password: SecretStr | None = Field(default=None, description="its password, as a secret")
    ca: _Ca | None = Field(
        default=None, description="the authority (PEM) of the BMC's certificate; not set: the system's authorities"
    )
    fingerprint: _Fingerprint | None = Field(
        default=None, description="sha256:<hex> of the BMC's certificate (DER), to pin it instead of ca"
    )
    boot_method: BootMethod | None = Field(default=None, description=f"{_BOOT_METHODS}; not set: pxe")
    boot_mode: Literal["bios", "uefi"] | None = Field(
        default=None, description="bios or uefi; not set: as the server is set"
    )
    boot_image: _Url | None = Field(
        default=None, description="with virtual-media: the URL of an iPXE image (ISO) that the BMC can fetch"
    )
    boot_url: _Url | None = Field(
        default=None, description="with uefi-http: the URL of iPXE as an EFI program; not set: DHCP names it"
    )

    @model_validator(mode="after")
    def _one_trust(self) -> Bmc:
        if self.ca is not None and self.fingerprint is not None:
            raise wrong("ca and fingerprint are both set", "set ca to trust an authority, fingerprint to pin one key")
        return self


class ServerBmc(Bmc):
    """One server's BMC; what is not set here is as in platform.bmc."""

    address: Annotated[str, AfterValidator(_bmc_url)] = Field(description="its https URL, e.g. https://10.0.0.11")
    system_id: str | None = Field(
        default=None, min_length=1, description="the id of the System, where a BMC serves several"
    )


class Server(Section):
    """One server and what becomes of it."""

    name: str = Field(description="control-plane-<n> or worker-<n>; the host name is <cluster>-<name>")
    bmc: ServerBmc = Field(description="how it is reached")
    mac: Mac = Field(description="the MAC address of the network card that it boots from")
    address: IPv4 = Field(description="its IPv4 address: where it is reached")
    private_address: IPv4 | None = Field(default=None, description="its IPv4 address within the rack; not set: address")
    consent: Literal["wipe"] | None = Field(
        default=None, description="wipe: it may be installed although it runs, or its disk holds, something unknown"
    )
    installation: int = Field(
        default=0,
        ge=0,
        le=1_000_000,
        description="raise it to have this machine installed anew although nothing else has changed",
    )
    kernel_arguments: KernelArguments = Field(
        default=(), description="kernel arguments of this machine, after those of its role"
    )
    install_device: DeviceRule | None = Field(
        default=None, description="which disk to install to; not set: boot.install.device"
    )
    wipe_disks: tuple[DeviceRule, ...] | None = Field(
        default=None, strict=False, description="other disks to empty; not set: boot.install.wipeDisks"
    )

    @field_validator("name")
    @classmethod
    def _role_and_number(cls, value: str) -> str:
        if not MACHINE_NAME.fullmatch(value):
            raise wrong("it is neither control-plane-<n> nor worker-<n>", "number servers by role, e.g. worker-0")
        return value

    @property
    def role(self) -> Literal["control-plane", "worker"]:
        """Its role, which its name begins with."""
        return "worker" if self.name.startswith("worker-") else "control-plane"

    @property
    def number(self) -> int:
        """Its number among the servers of its role."""
        return int(self.name.rpartition("-")[2])


class Lend(Section):
    """A worker's server is the bootstrap machine for the time of the installation, and joins as a worker then."""

    type: Literal["lend"] = "lend"
    server: str = Field(description="a worker of platform.servers, e.g. worker-0")


class LocalVm(Section):
    """A virtual machine where `up` runs, or wherever else a libvirt is that virsh there reaches."""

    type: Literal["local-vm"] = "local-vm"
    address: IPv4 = Field(description="its IPv4 address")
    mac: Mac = Field(description="its MAC address, 52:54:00:... of your choice; DHCP gives it its address by that")
    bridge: Annotated[str, AfterValidator(_interface)] = Field(description="the bridge into the machines' network")
    interface: Annotated[str, AfterValidator(_interface)] | None = Field(
        default=None, description="with networkBoot static: its interface, as `ip link` there shows it, e.g. enp1s0"
    )
    memory: int = Field(default=16384, ge=1024, le=64 * 1024 * 1024, description="its memory, MiB")
    cpus: int = Field(default=4, ge=1, le=4096, description="its virtual CPUs")
    boot_image: Annotated[str, AfterValidator(_path)] | None = Field(
        default=None,
        description="the path, where libvirt runs, of an iPXE image (ISO) that leads to boot.ipxe; not set: by DHCP",
    )
    uri: Annotated[str, AfterValidator(_connection)] = Field(
        default="qemu:///system", description="libvirt's connection URI, as `virsh --connect` takes it"
    )


class NoBootstrap(Section):
    """Bootstrap in place: a single node that is its own bootstrap machine."""

    type: Literal["none"] = "none"


class Redfish(Section):
    """Servers of your own, each with a BMC that speaks Redfish."""

    type: Literal["redfish"] = "redfish"
    gateway: IPv4 | None = Field(default=None, description="the machines' default gateway")
    prefix: int | None = Field(default=None, ge=1, le=31, description="the prefix length of the machines' network")
    nameservers: tuple[IPv4, ...] = Field(default=(), strict=False, description="the machines' DNS resolvers")
    interface: Annotated[str, AfterValidator(_interface)] | None = Field(
        default=None, description="with networkBoot static: the machines' interface, as `ip link` shows it"
    )
    network_boot: Literal["dhcp", "static"] = Field(
        default="dhcp", description="dhcp, or static: kernel arguments carry address, gateway and resolvers"
    )
    bmc: Bmc = Field(default_factory=Bmc, description="what all BMCs have in common")
    bootstrap: Annotated[Lend | LocalVm | NoBootstrap, Field(discriminator="type")] = Field(
        description="where the bootstrap machine comes from"
    )
    servers: tuple[Server, ...] = Field(strict=False, description="the servers, each with its role")

    @field_validator("servers")
    @classmethod
    def _some(cls, value: tuple[Server, ...]) -> tuple[Server, ...]:
        if not value:
            raise wrong("it lists no server", "list one control plane machine at least, with its BMC and its MAC")
        return value

    def of_role(self, role: Literal["control-plane", "worker"]) -> tuple[Server, ...]:
        """The servers of a role, by number."""
        found = [server for server in self.servers if server.role == role]
        return tuple(sorted(found, key=lambda server: server.number))

    def bmc_of(self, server: Server) -> ServerBmc:
        """A server's BMC, with what all have in common. Its own ca or fingerprint takes the place of both."""
        own, common = (bmc.model_dump(by_alias=True, exclude_none=True) for bmc in (server.bmc, self.bmc))
        if "ca" in own or "fingerprint" in own:
            common = {name: value for name, value in common.items() if name not in ("ca", "fingerprint")}
        return ServerBmc.model_validate({**common, **own})

    @property
    def network(self) -> ipaddress.IPv4Network | None:
        """The machines' network, where gateway and prefix say which it is."""
        if self.gateway is None or self.prefix is None:
            return None
        return ipaddress.IPv4Network(f"{self.gateway}/{self.prefix}", strict=False)
