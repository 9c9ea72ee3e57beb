"""Your own servers, listed one by one: the settings that such platforms share."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Generic, Literal, Self, TypeVar

from pydantic import Field, field_validator

from metal_ipi.provider.types import LOCAL_VM_MIB
from metal_ipi.stacks.platforms.listed.forms import Connection, FilePath, Mac, MachineAddress, MachineIpv6
from metal_ipi.stacks.platforms.section import OfMachine, PlatformSection
from metal_ipi.stacks.sections.base import Section, wrong
from metal_ipi.stacks.sections.devices import DeviceRule
from metal_ipi.stacks.sections.forms import Interface
from metal_ipi.stacks.sections.kernel_arguments import KernelArguments
from metal_ipi.stacks.sections.networking import Ipv6Network
from metal_ipi.stacks.sections.node_marks import Labels, Taints

Role = Literal["control-plane", "arbiter", "worker"]
SECTIONS: Mapping[Role, str] = {"control-plane": "controlPlane", "arbiter": "arbiter", "worker": "workers"}
"""The roles of servers, and the section of each role."""
MACHINE_NAME = re.compile(rf"({'|'.join(SECTIONS)})-(0|[1-9]\d{{0,3}})")


class NetworkCard(Section):
    """A network card of a server, as in `hosts[].interfaces` of agent-config.yaml."""

    name: Interface = Field(description="its name in networkConfig; the name in the operating system may differ")
    mac_address: Mac = Field(description="its MAC address, in lower case")


class Server(Section):
    """One server and its role; the platform adds how it is reached."""

    name: str = Field(description="control-plane-<n>, worker-<n> or arbiter-0; the host name is <cluster>-<name>")
    mac: Mac = Field(description="the MAC address of the network card that it boots from")
    address: MachineAddress = Field(description="its IPv4 address, at which the nodes and this program reach it")
    private_address: MachineAddress | None = Field(
        default=None, description="its private IPv4 address; not set: the same as address"
    )
    ipv6_address: MachineIpv6 | None = Field(
        default=None, description="with platform.ipv6: its IPv6 address, which must never change"
    )
    consent: Literal["wipe"] | None = Field(
        default=None, description="wipe: it may be installed even if something unknown runs on it or is on its disk"
    )
    installation: int = Field(
        default=0,
        ge=0,
        le=1_000_000,
        description="raise this number to install the machine again although nothing else has changed",
    )
    kernel_arguments: KernelArguments = Field(
        default=(), description="kernel arguments of this machine, after those of its role"
    )
    install_device: DeviceRule | None = Field(
        default=None, description="the disk to install to; not set: as in boot.install.device"
    )
    wipe_disks: tuple[DeviceRule, ...] | None = Field(
        default=None, strict=False, description="other disks to empty; not set: boot.install.wipeDisks"
    )
    interfaces: tuple[NetworkCard, ...] = Field(
        default=(), strict=False, description="its network cards that networkConfig names"
    )
    labels: Labels = Field(default_factory=dict, description="further labels of its node, key: value")
    taints: Taints = Field(default=(), description="further taints of its node")
    network_config: dict[str, Any] | None = Field(
        default=None,
        description=(
            "its network configuration in NMState's format (bonds, VLANs, addresses, routes, resolvers, MTU); "
            "replaces DHCP and networkBoot, see docs/host-networks.md"
        ),
    )

    @field_validator("name")
    @classmethod
    def _role_and_number(cls, value: str) -> str:
        if not MACHINE_NAME.fullmatch(value):
            raise wrong(
                "it is neither control-plane-<n> nor worker-<n> nor arbiter-<n>",
                "number servers by role, e.g. worker-0",
            )
        return value

    @property
    def role(self) -> Role:
        """Its role: the beginning of its name."""
        return next(role for role in SECTIONS if self.name.startswith(f"{role}-"))

    @property
    def number(self) -> int:
        """Its number among the servers of its role."""
        return int(self.name.rpartition("-")[2])

    @property
    def accept(self) -> Literal["empty", "wipe"]:
        """What may be on its disk when it is installed."""
        return "wipe" if self.consent == "wipe" else "empty"


class Lend(Section):
    """A worker's server is the bootstrap machine during the installation, and then joins as a worker."""

    type: Literal["lend"] = "lend"
    server: str = Field(description="a worker of platform.servers, e.g. worker-0")


class LocalVm(Section):
    """A virtual machine on the host where `up` runs, or on another host whose libvirt virsh can reach."""

    type: Literal["local-vm"] = "local-vm"
    address: MachineAddress = Field(description="its IPv4 address")
    mac: Mac = Field(
        description="its MAC address, which you choose (52:54:00:...); DHCP must give it its IPv4 address by that"
    )
    bridge: Interface = Field(description="the bridge of the host that is connected to the machines' network")
    interface: Interface | None = Field(
        default=None,
        description=(
            "with networkBoot static: its network interface, as `ip link` in the virtual machine shows it, e.g. enp1s0"
        ),
    )
    memory: int = Field(default=LOCAL_VM_MIB, ge=1024, le=64 * 1024 * 1024, description="its memory, MiB")
    cpus: int = Field(default=4, ge=1, le=4096, description="its virtual CPUs")
    boot_image: FilePath | None = Field(
        default=None,
        description=(
            "the path, on the libvirt host, of an iPXE image (ISO) that loads boot.ipxe; not set: it boots by DHCP"
        ),
    )
    uri: Connection = Field(
        default="qemu:///system", description="libvirt's connection URI, as `virsh --connect` takes it"
    )


class NoBootstrap(Section):
    """Bootstrap in place: a single node without a bootstrap machine."""

    type: Literal["none"] = "none"


class MachinesIpv6(Section):
    """The machines' IPv6 network, besides the IPv4 one."""

    network: Ipv6Network = Field(description="the network, e.g. 2001:db8:64::/64")
    gateway: MachineIpv6 | None = Field(
        default=None,
        description="with networkBoot static: the machines' IPv6 gateway; else router advertisements tell them",
    )


AServer = TypeVar("AServer", bound=Server)


class ListedServers(PlatformSection, Generic[AServer]):
    """A platform's section that lists its servers."""

    gateway: MachineAddress | None = Field(default=None, description="the machines' default gateway")
    prefix: int | None = Field(default=None, ge=1, le=31, description="the prefix length of the machines' network")
    nameservers: tuple[MachineAddress, ...] = Field(default=(), strict=False, description="the machines' DNS resolvers")
    ipv6: MachinesIpv6 | None = Field(
        default=None, description="the machines' IPv6 network, for clusters with dual stack; not set: IPv4 alone"
    )
    interface: Interface | None = Field(
        default=None, description="with networkBoot static: the machines' interface, as `ip link` shows it"
    )
    network_boot: Literal["dhcp", "static"] = Field(
        default="dhcp",
        description=(
            "dhcp; or static: live systems get address, gateway and resolvers by kernel arguments, installed "
            "systems by a NetworkManager profile"
        ),
    )
    bootstrap: Annotated[Lend | LocalVm | NoBootstrap, Field(discriminator="type")] = Field(
        description="where the bootstrap machine comes from"
    )
    servers: tuple[AServer, ...] = Field(strict=False, description="the servers, each with its role")

    @field_validator("servers")
    @classmethod
    def _some(cls, value: tuple[AServer, ...]) -> tuple[AServer, ...]:
        if not value:
            raise wrong(
                "it lists no server", "list at least one control plane machine, with its BMC and its MAC address"
            )
        return value

    def reached(self) -> list[tuple[str, str]]:
        """What identifies each server's BMC or node, with the setting's path: no two may be the same."""
        return []

    def of_role(self, role: Role) -> tuple[AServer, ...]:
        """The servers of a role, by number."""
        found = [server for server in self.servers if server.role == role]
        return tuple(sorted(found, key=lambda server: server.number))

    def machines(self, counts: Mapping[str, int]) -> tuple[str, ...]:
        """The machines' names, by role and number. The list determines their number, so `counts` is not used."""
        return tuple(server.name for role in SECTIONS for server in self.of_role(role))

    def machines_of(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of these names that are listed."""
        listed = {server.name for server in self.servers}
        return tuple(name for name in names if name in listed)

    def narrowed(self, machines: frozenset[str], pool: str | None) -> Self:
        """The section with the servers of these machines only. `bootstrap` stays, although a lent server is the
        cluster's own."""
        return self.model_copy(update={"servers": tuple(each for each in self.servers if each.name in machines)})

    def of_machine(self, name: str) -> OfMachine:
        """The settings of a server."""
        (server,) = (server for server in self.servers if server.name == name)
        return OfMachine(
            accept=server.accept,
            mac=server.mac,
            installation=server.installation,
            kernel_arguments=server.kernel_arguments,
            labels=server.labels,
            taints=server.taints,
            install_device=server.install_device,
            wipe_disks=server.wipe_disks,
        )

    def given_kernel_arguments(self) -> Iterator[tuple[str, Sequence[str]]]:
        """The kernel arguments of single servers: (path, arguments)."""
        for index, server in enumerate(self.servers):
            yield f"servers[{index}].kernelArguments", server.kernel_arguments

    @property
    def lent(self) -> str | None:
        """The worker whose server is lent; None if no server is lent."""
        return self.bootstrap.server if isinstance(self.bootstrap, Lend) else None

    @property
    def local_vm(self) -> LocalVm | None:
        """The virtual bootstrap machine; None if it is not virtual."""
        return self.bootstrap if isinstance(self.bootstrap, LocalVm) else None

    @property
    def in_place(self) -> bool:
        """Whether there is no bootstrap machine."""
        return isinstance(self.bootstrap, NoBootstrap)

    @property
    def host_networks(self) -> bool:
        """Whether a server has a networkConfig."""
        return any(server.network_config is not None for server in self.servers)

    @property
    def network(self) -> ipaddress.IPv4Network | None:
        """The machines' network, if gateway and prefix are set."""
        if self.gateway is None or self.prefix is None:
            return None
        return ipaddress.IPv4Network(f"{self.gateway}/{self.prefix}", strict=False)
