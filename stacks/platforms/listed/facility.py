"""What the settings of listed servers mean for the program."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import pulumi

from metal_ipi.components.boot.host_network import HostNetwork
from metal_ipi.components.boot.network import StaticIpv6, StaticNetwork
from metal_ipi.components.boot.stream import PxeArtifacts
from metal_ipi.components.machines.contract import Platform
from metal_ipi.components.machines.node import POOLS, Node
from metal_ipi.provider.types import LIVE_ISO_FILE, BootFile, Plan, Server
from metal_ipi.stacks.model import Settings
from metal_ipi.stacks.names import Nodes
from metal_ipi.stacks.platforms.contract import Keys
from metal_ipi.stacks.platforms.listed import settings as listed
from metal_ipi.stacks.platforms.listed.settings import ListedServers
from metal_ipi.stacks.sections import nmstate

Section = TypeVar("Section", bound=ListedServers[Any])


class ListedFacility(Generic[Section]):
    """What all facilities with listed servers share; see `Facility`."""

    ignition_platform = "metal"
    orders = None

    def __init__(self, settings: Settings, section: Section) -> None:
        self._settings, self._section = settings, section

    @property
    def in_place(self) -> bool:
        return self._section.in_place

    @property
    def lent(self) -> Node | None:
        return next((node for node in Nodes.of(self._settings).workers if node.name == self._section.lent), None)

    @property
    def machine_networks(self) -> tuple[str, ...]:
        known, ipv6 = self._section.network, self._section.ipv6
        return () if known is None else (str(known), *((ipv6.network,) if ipv6 is not None else ()))

    @property
    def hosts(self) -> tuple[Mapping[str, str], ...]:
        return tuple(
            {"name": server.name, "role": POOLS[server.role], "bootMACAddress": server.mac}
            for server in self._section.servers
        )

    def network(self, node: Node) -> StaticNetwork | None:
        section = self._section
        if section.network_boot == "dhcp" or self.host_network(node) is not None:
            return None
        address, ipv6_address, interface = self._place(node)
        assert section.gateway is not None and section.prefix is not None and interface is not None
        return StaticNetwork(
            address=address,
            gateway=section.gateway,
            prefix=section.prefix,
            hostname=node.fqdn,
            interface=interface,
            nameservers=section.nameservers,
            ipv6=self._static_ipv6(ipv6_address),
        )

    def _static_ipv6(self, address: str | None) -> StaticIpv6 | None:
        section = self._section.ipv6
        if section is None or address is None:
            return None
        assert section.gateway is not None, "settings are checked"
        prefix = ipaddress.IPv6Network(section.network).prefixlen
        return StaticIpv6(address=address, gateway=section.gateway, prefix=prefix)

    def host_network(self, node: Node) -> HostNetwork | None:
        name = self._section.lent if node.role == "bootstrap" else node.name
        for index, server in enumerate(self._section.servers):
            if server.name == name and server.network_config is not None:
                state, _ = nmstate.read(server.network_config, "")
                assert state is not None, "settings are checked"
                cards = {card.name: card.mac_address for card in server.interfaces}
                return HostNetwork(
                    cards=cards,
                    state=server.network_config,
                    told=state.told,
                    path=f"platform.servers[{index}]",
                    links=state.links(cards),
                )
        return None

    def _place(self, node: Node) -> tuple[str, str | None, str | None]:
        """The IPv4 address, IPv6 address and interface of a machine. A virtual bootstrap machine has no IPv6
        address."""
        section = self._section
        if node.role == "bootstrap" and section.local_vm is not None:
            return section.local_vm.address, None, section.local_vm.interface
        name = section.lent if node.role == "bootstrap" else node.name
        (server,) = (server for server in section.servers if server.name == name)
        return server.address, server.ipv6_address, section.interface

    def libvirt(self) -> dict[str, dict[str, Any]]:
        """The provider's section for the libvirt of the virtual bootstrap machine; empty if there is none."""
        vm = self._section.local_vm
        return {} if vm is None else {"libvirt": {"uri": vm.uri}}

    def planned_server(self, server: listed.Server) -> Server:
        """A server in the preflight plan; the platform adds how it is reached."""
        settings, section = self._settings, self._section
        encryption = settings.machine_config.disk_encryption
        return Server(
            name=server.name,
            role=server.role,
            live=section.in_place or server.name == section.lent,
            macs=tuple(dict.fromkeys([server.mac, *(card.mac_address for card in server.interfaces)])),
            device=settings.install_device(server.name).rules if settings.boot.install is not None else {},
            tpm2=encryption is not None
            and encryption.needs_tpm2
            and (encryption.roles is None or server.role in encryption.roles),
        )

    def planned(self, plan: Plan, boot: PxeArtifacts, servers: Iterable[Server] = ()) -> Plan:
        """The preflight plan with the servers, the virtual bootstrap machine, and the live ISO."""
        vm, files = self._section.local_vm, plan.boot
        if self._section.live_iso_machines and boot.iso is not None:
            files = (*files, BootFile(name=LIVE_ISO_FILE, url=boot.iso.url, sha256=boot.iso.sha256))
        asked = list(servers)
        if vm is not None and self._settings.pool is None:
            asked.append(Server(name="bootstrap", role="bootstrap", live=True, memory_mib=vm.memory, cpus=vm.cpus))
        return plan.model_copy(update={"servers": tuple(asked), "boot": files})

    def component(
        self,
        keys: Keys,
        after: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions,
        shared: pulumi.Output[Mapping[str, Any]] | None = None,
    ) -> Platform:
        # Nothing is ordered, so `keys` and `shared` are not needed.
        return self._declare(after, opts)

    def _declare(self, after: Sequence[pulumi.Resource], opts: pulumi.ResourceOptions) -> Platform:
        """Declare the platform; arguments as for `component`."""
        raise NotImplementedError
