"""Servers of your own: reached over their BMCs (Redfish), and listed one by one."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from metal_ipi.provider.types import LOCAL_VM_MIB
from metal_ipi.stacks.platforms.redfish.forms import (
    Account,
    BmcUrl,
    Connection,
    FilePath,
    Fingerprint,
    Mac,
    MachineAddress,
    Password,
    SystemId,
    Url,
)
from metal_ipi.stacks.platforms.section import Needed, OfMachine, PlatformSection, Tree, at, items
from metal_ipi.stacks.sections.base import REHEARSAL, Pem, Section, wrong
from metal_ipi.stacks.sections.devices import DeviceRule
from metal_ipi.stacks.sections.forms import Interface
from metal_ipi.stacks.sections.kernel_arguments import KernelArguments

BootMethod = Literal["pxe", "uefi-http", "virtual-media", "live-iso"]
_BOOT_METHODS = (
    "pxe: the firmware's own, by DHCP; uefi-http: the firmware fetches iPXE from bootUrl;"
    " virtual-media: the BMC attaches bootImage as a CD; live-iso: it attaches CoreOS's live ISO, made for the server"
)
_ROLES: tuple[Literal["control-plane", "worker"], ...] = ("control-plane", "worker")
MACHINE_NAME = re.compile(r"(control-plane|worker)-(0|[1-9]\d{0,3})")


class Bmc(Section):
    """How BMCs are reached: what all servers have in common."""

    username: Account | None = Field(default=None, description="the account, one made for this purpose")
    password: Password | None = Field(default=None, description="its password, as a secret")
    ca: Pem | None = Field(
        default=None, description="the authority (PEM) of the BMC's certificate; not set: the system's authorities"
    )
    fingerprint: Fingerprint | None = Field(
        default=None, description="sha256:<hex> of the BMC's certificate (DER), to pin it instead of ca"
    )
    boot_method: BootMethod | None = Field(default=None, description=f"{_BOOT_METHODS}; not set: pxe")
    boot_mode: Literal["bios", "uefi"] | None = Field(
        default=None, description="bios or uefi; not set: as the server is set"
    )
    boot_image: Url | None = Field(
        default=None, description="with virtual-media: the URL of an iPXE image (ISO) that the BMC can fetch"
    )
    boot_url: Url | None = Field(
        default=None, description="with uefi-http: the URL of iPXE as an EFI program; not set: DHCP names it"
    )

    @model_validator(mode="after")
    def _one_trust(self) -> Bmc:
        if self.ca is not None and self.fingerprint is not None:
            raise wrong("ca and fingerprint are both set", "set ca to trust an authority, fingerprint to pin one key")
        return self


class ServerBmc(Bmc):
    """One server's BMC; what is not set here is as in platform.bmc."""

    address: BmcUrl = Field(description="its https URL, e.g. https://10.0.0.11")
    system_id: SystemId | None = Field(default=None, description="the id of the System, where a BMC serves several")


class Server(Section):
    """One server and what becomes of it."""

    name: str = Field(description="control-plane-<n> or worker-<n>; the host name is <cluster>-<name>")
    bmc: ServerBmc = Field(description="how it is reached")
    mac: Mac = Field(description="the MAC address of the network card that it boots from")
    address: MachineAddress = Field(description="its IPv4 address: where it is reached")
    private_address: MachineAddress | None = Field(
        default=None, description="its IPv4 address within the rack; not set: address"
    )
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

    @property
    def accept(self) -> Literal["empty", "wipe"]:
        """What may be on it when it is installed."""
        return "wipe" if self.consent == "wipe" else "empty"


class Lend(Section):
    """A worker's server is the bootstrap machine for the time of the installation, and joins as a worker then."""

    type: Literal["lend"] = "lend"
    server: str = Field(description="a worker of platform.servers, e.g. worker-0")


class LocalVm(Section):
    """A virtual machine where `up` runs, or wherever else a libvirt is that virsh there reaches."""

    type: Literal["local-vm"] = "local-vm"
    address: MachineAddress = Field(description="its IPv4 address")
    mac: Mac = Field(description="its MAC address, 52:54:00:... of your choice; DHCP gives it its address by that")
    bridge: Interface = Field(description="the bridge into the machines' network")
    interface: Interface | None = Field(
        default=None, description="with networkBoot static: its interface, as `ip link` there shows it, e.g. enp1s0"
    )
    memory: int = Field(default=LOCAL_VM_MIB, ge=1024, le=64 * 1024 * 1024, description="its memory, MiB")
    cpus: int = Field(default=4, ge=1, le=4096, description="its virtual CPUs")
    boot_image: FilePath | None = Field(
        default=None,
        description="the path, where libvirt runs, of an iPXE image (ISO) that leads to boot.ipxe; not set: by DHCP",
    )
    uri: Connection = Field(
        default="qemu:///system", description="libvirt's connection URI, as `virsh --connect` takes it"
    )


class NoBootstrap(Section):
    """Bootstrap in place: a single node that is its own bootstrap machine."""

    type: Literal["none"] = "none"


def _lacks(key: str) -> Callable[[Tree], bool]:
    """Whether a server has no such setting of its own, so that all must have one in common."""
    return lambda tree: any(
        at(server, f"bmc.{key}") in (None, "", REHEARSAL) for server in items(at(tree, "platform.servers"))
    )


class Redfish(PlatformSection):
    """Servers of your own, each with a BMC that speaks Redfish."""

    needed: ClassVar[tuple[Needed, ...]] = tuple(
        Needed(path=f"platform.bmc.{key}", when=_lacks(key)) for key in ("username", "password")
    )
    type: Literal["redfish"] = "redfish"
    gateway: MachineAddress | None = Field(default=None, description="the machines' default gateway")
    prefix: int | None = Field(default=None, ge=1, le=31, description="the prefix length of the machines' network")
    nameservers: tuple[MachineAddress, ...] = Field(default=(), strict=False, description="the machines' DNS resolvers")
    interface: Interface | None = Field(
        default=None, description="with networkBoot static: the machines' interface, as `ip link` shows it"
    )
    network_boot: Literal["dhcp", "static"] = Field(
        default="dhcp",
        description="dhcp, or static: live systems are told address, gateway and resolvers by kernel arguments,"
        " installed ones by a profile of NetworkManager",
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

    def machines(self, counts: Mapping[str, int]) -> tuple[str, ...]:
        """The servers, by role and number: the list says how many there are, whatever `counts` says."""
        return tuple(server.name for role in _ROLES for server in self.of_role(role))

    def of_machine(self, name: str) -> OfMachine:
        """What the list says of a server."""
        (server,) = (server for server in self.servers if server.name == name)
        return OfMachine(
            accept=server.accept,
            mac=server.mac,
            installation=server.installation,
            kernel_arguments=server.kernel_arguments,
            install_device=server.install_device,
            wipe_disks=server.wipe_disks,
        )

    def given_kernel_arguments(self) -> Iterator[tuple[str, Sequence[str]]]:
        """Those of single servers."""
        for index, server in enumerate(self.servers):
            yield f"servers[{index}].kernelArguments", server.kernel_arguments

    @property
    def live_iso_machines(self) -> tuple[str, ...]:
        """The servers whose boot method is the live ISO."""
        return tuple(server.name for server in self.servers if self.bmc_of(server).boot_method == "live-iso")

    @property
    def lent(self) -> str | None:
        """The worker whose server is lent; None where none is."""
        return self.bootstrap.server if isinstance(self.bootstrap, Lend) else None

    @property
    def local_vm(self) -> LocalVm | None:
        """The virtual bootstrap machine; None where the bootstrap machine is none."""
        return self.bootstrap if isinstance(self.bootstrap, LocalVm) else None

    @property
    def in_place(self) -> bool:
        """Whether there is no bootstrap machine."""
        return isinstance(self.bootstrap, NoBootstrap)

    @property
    def network(self) -> ipaddress.IPv4Network | None:
        """The machines' network, where gateway and prefix say which it is."""
        if self.gateway is None or self.prefix is None:
            return None
        return ipaddress.IPv4Network(f"{self.gateway}/{self.prefix}", strict=False)
