"""What the settings of a rack mean to the program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pulumi

from metal_ipi.components.boot.network import StaticNetwork
from metal_ipi.components.boot.stream import Artifact, PxeArtifacts
from metal_ipi.components.machines.contract import Platform
from metal_ipi.components.machines.node import Node
from metal_ipi.provider.types import LIVE_ISO_FILE, BootFile, ClusterKeys, Plan, Server
from metal_ipi.stacks.model import Settings
from metal_ipi.stacks.names import Nodes
from metal_ipi.stacks.platforms.redfish.component import component
from metal_ipi.stacks.platforms.redfish.conflicts import conflicts
from metal_ipi.stacks.platforms.redfish.settings import Redfish, ServerBmc
from metal_ipi.stacks.problems import Found
from metal_ipi.stacks.sections.base import REHEARSAL, revealed


class RedfishFacility:
    """See `Facility`."""

    ignition_platform = "metal"
    orders = None

    def __init__(self, settings: Settings, section: Redfish) -> None:
        self._settings, self._section = settings, section

    @property
    def in_place(self) -> bool:
        return self._section.in_place

    @property
    def lent(self) -> Node | None:
        return next((node for node in Nodes.of(self._settings).workers if node.name == self._section.lent), None)

    @property
    def machine_networks(self) -> tuple[str, ...]:
        known = self._section.network
        return () if known is None else (str(known),)

    def conflicts(self) -> Found:
        return conflicts(self._settings, self._section)

    def network(self, node: Node) -> StaticNetwork | None:
        section = self._section
        if section.network_boot == "dhcp":
            return None
        address, interface = self._place(node)
        assert section.gateway is not None and section.prefix is not None and interface is not None
        return StaticNetwork(
            address=address,
            gateway=section.gateway,
            prefix=section.prefix,
            hostname=node.fqdn,
            interface=interface,
            nameservers=section.nameservers,
        )

    def _place(self, node: Node) -> tuple[str, str | None]:
        """A machine's address and interface."""
        section = self._section
        if node.role == "bootstrap" and section.local_vm is not None:
            return section.local_vm.address, section.local_vm.interface
        name = section.lent if node.role == "bootstrap" else node.name
        (address,) = (server.address for server in section.servers if server.name == name)
        return address, section.interface

    def provider_sections(self, iso: Artifact | None) -> dict[str, dict[str, Any]]:
        section = self._section
        bmcs = {server.name: self._bmc(section.bmc_of(server), iso) for server in section.servers}
        sections: dict[str, dict[str, Any]] = {"bmcs": bmcs}
        if section.local_vm is not None:
            sections["libvirt"] = {"uri": section.local_vm.uri}
        return sections

    def _bmc(self, bmc: ServerBmc, iso: Artifact | None) -> dict[str, Any]:
        section = {
            "address": bmc.address,
            "username": bmc.username or REHEARSAL,
            "password": revealed(bmc.password),
            "ca": bmc.ca,
            "fingerprint": bmc.fingerprint,
            "systemId": bmc.system_id,
            "bootMethod": bmc.boot_method or "pxe",
            "bootMode": bmc.boot_mode,
            "bootImage": bmc.boot_image,
            "bootUrl": bmc.boot_url,
            "liveIso": {"url": iso.url, "sha256": iso.sha256} if iso and bmc.boot_method == "live-iso" else None,
            "secureBoot": "ignore" if "secure-boot" in self._settings.preflight.excused else None,
        }
        return {name: value for name, value in section.items() if value is not None}

    def checked(self, plan: Plan, boot: PxeArtifacts) -> Plan:
        section = self._section
        servers = [
            Server(name=each.name, role=each.role, live=section.in_place or each.name == section.lent, bmc=each.name)
            for each in section.servers
        ]
        vm = section.local_vm
        if vm is not None:
            servers.append(Server(name="bootstrap", role="bootstrap", live=True, memory_mib=vm.memory, cpus=vm.cpus))
        files = plan.boot
        if section.live_iso_machines and boot.iso is not None:
            files = (*files, BootFile(name=LIVE_ISO_FILE, url=boot.iso.url, sha256=boot.iso.sha256))
        return plan.model_copy(update={"servers": tuple(servers), "boot": files})

    def component(self, keys: ClusterKeys, after: Sequence[pulumi.Resource], opts: pulumi.ResourceOptions) -> Platform:
        return component(self._settings, self._section, after, opts)
