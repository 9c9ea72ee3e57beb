"""See `MachineDriver`, for servers from Ironic that are lent; and what `installation.remote` needs for all servers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from metal_ipi.provider import boot_tree
from metal_ipi.provider.configuration import Settings
from metal_ipi.provider.errors import InvalidInputs
from metal_ipi.provider.inventory.facts import Hardware
from metal_ipi.provider.live_iso import disc
from metal_ipi.provider.platforms.contract import Machine, MachineDriver
from metal_ipi.provider.platforms.ids import MachineId
from metal_ipi.provider.platforms.ironic import inspected, published
from metal_ipi.provider.platforms.ironic.connection import Connection
from metal_ipi.provider.platforms.ironic.nodes import ACTIVE, AVAILABLE, DEPLOY_FAILED, FROM_NETWORK, Node, Nodes
from metal_ipi.provider.resources.ephemeral_machine import LentNodeArgs
from metal_ipi.provider.status import Say, silent

_POWER = {"power on": "On", "power off": "Off"}
_MEDIA = "cdrom"
_PATIENCE = 300
"""Seconds for repeating a call. A node's lock that was left in the database disappears when its conductor restarts."""


def _machine(machine_id: MachineId, node: Node) -> Machine:
    """A lent server: active while it is on. Ironic does not know its addresses."""
    state = "active" if node.provision_state == ACTIVE and node.power_state == "power on" else "provisioning"
    return Machine(id=str(machine_id), hostname=machine_id.server, state=state, console="")


class Ironic(MachineDriver[LentNodeArgs]):
    """All servers of the section `ironic`; connects on first use."""

    def __init__(self, settings: Settings, say: Say | None = None, *, timeout: float = 1800) -> None:
        """`say` reports what is waited for; `timeout` is how long one step of a node may take, in seconds."""
        self._settings = settings
        self._ironic = settings.need_ironic()
        self._connection = Connection(self._ironic, timeout=min(timeout, _PATIENCE))
        self._say = say or silent
        self.nodes = Nodes(self._connection, self._ironic, self._say, timeout=timeout)

    async def __aexit__(self, *_: object) -> None:
        await self._connection.close()

    # --- lent servers -------------------------------------------------------------------------------------------------

    async def find(self, spec: LentNodeArgs) -> list[Machine]:
        return []  # unfinished steps of an earlier run are repeated instead, which makes nothing twice

    async def create(self, spec: LentNodeArgs) -> Machine:
        node = await self.nodes.claimed(spec.server)
        if node is None:
            raise InvalidInputs(
                f"server {spec.server} is not claimed: declare its IronicMachine, and let this machine depend on it"
            )
        machine_id = MachineId(server=spec.server, identity=node.id, mac=spec.mac, script=boot_tree.digest(spec.script))
        await published.publish(
            self._settings, spec.server, spec.mac, script=spec.script, chain=spec.chain, say=self._say
        )
        return _machine(machine_id, node)

    async def start(self, machine_id: str) -> None:
        await self.boot_installer(machine_id, MachineId.parse(machine_id).lent_mac)

    async def get(self, machine_id: str) -> Machine | None:
        machine = MachineId.parse(machine_id)
        if machine.lent and not await disc.is_published(self._settings, machine.lent_mac, machine.script or ""):
            return None
        node = await self.held(machine)
        return None if node is None else _machine(machine, node)

    async def delete(self, machine_id: str) -> None:
        if await self.get(machine_id) is None:
            return
        await self.boot_disk(machine_id)
        await self.power_off(machine_id)
        # Last: as long as the published script or disc exists, a run after a killed one knows that it is not finished.
        machine = MachineId.parse(machine_id)
        await disc.withdraw(self._settings, machine.lent_mac)

    # --- all servers --------------------------------------------------------------------------------------------------

    async def claim(self, server: str, *, accept: str = "empty") -> Node:
        """Claim a node for a server. With `empty`, an enrolled server without a claim must be off."""
        return await self.nodes.claim(server, self._settings.need_ironic_server(server), accept=accept)

    async def seen(self, server: str) -> Hardware:
        """What is known about a server before it is claimed; changes nothing. Raises ProviderError if a claim would be
        refused."""
        node = await self.nodes.seen(server, self._settings.need_ironic_server(server))
        if node is None:
            return Hardware()
        runs = node.provision_state == ACTIVE and node.power_state == "power on"
        found = inspected.hardware(await self.inventory(node), node.properties or {})
        return replace(found, where=self.nodes.where(node), power="On" if runs else "Off")

    async def held(self, machine: MachineId) -> Node | None:
        """The node of a server; None if it is gone, or no longer claimed for it."""
        node = await self.nodes.claimed(machine.server)
        return node if node is not None and node.id == machine.identity else None

    async def inventory(self, node: Node) -> dict[str, Any]:
        """Ironic's inventory from an inspection; empty if the node was not inspected."""
        found = await self._connection.find(
            f"for the inventory of {node.id}", lambda ironic: ironic.get_node_inventory(node.id)
        )
        return dict((found or {}).get("inventory") or {})

    async def power_state(self, machine_id: str) -> str:
        """`On`, `Off` or `Unknown`, as last seen by Ironic."""
        node = await self.nodes.need(MachineId.parse(machine_id).identity)
        return _POWER.get(node.power_state or "", "Unknown")

    async def boot_installer(self, machine_id: str, mac: str) -> None:
        """Boot it once into its installer, whatever runs on it: from its disc, or from the network.

        The first time the node is deployed, with the deploy interface `ramdisk` for this instance only. Later, a node
        that boots from the network is rebuilt, because its boot files may be gone and its conductor must make them
        again. For the others a disc is attached, because Ironic 39 cannot rebuild an instance whose image is a disc
        (see `published`). Ironic ignores the option to let the BMC fetch the disc itself (ironic/conductor/rpcapi.py,
        attach_virtual_media): the conductor fetches it and serves it.
        """
        name = MachineId.parse(machine_id).server
        wanted = await published.instance(self._settings, name, mac)
        node, network = await self._ready(machine_id), published.by_network(self._settings, name)
        if node.provision_state in (AVAILABLE, DEPLOY_FAILED) or (network and node.provision_state == ACTIVE):
            if network:
                await self.nodes.have_port(node, mac)
            instance: dict[str, Any] = {**node.instance_info, **wanted}
            server = self._settings.need_ironic_server(name)
            if server.boot_mode is not None:
                instance["capabilities"] = {"boot_mode": server.boot_mode}
            await self._connection.call(
                f"to have {node.name} boot its installer",
                lambda ironic: ironic.update_node(node.id, instance_info=instance),
            )
            await self._deploy(node, [step.to_ironic() for step in server.deploy_steps])
            return
        if node.provision_state != ACTIVE:
            raise await self.nodes.stuck(node)
        image = wanted["boot_iso"]
        await self._detach(node)
        await self.nodes.act(
            node,
            f"to attach the disc of {node.name}",
            lambda ironic: ironic.attach_vmedia_to_node(node.id, _MEDIA, image, image_download_source="http"),
        )
        await self._boot_device(node, _MEDIA, persistent=False)
        await self.nodes.power(node, "rebooting")

    async def _deploy(self, node: Node, steps: list[dict[str, Any]]) -> None:
        """Deploy or rebuild it.

        A failure is retried a few times: a conductor that dies marks its nodes as failed, and what boots is our
        installer, which checks before it writes. With deploy steps there is no retry, so that firmware is not written
        again unasked. A rebuild has no steps.
        """
        rebuilt = node.provision_state == ACTIVE
        # Before Ironic's own step, which boots the server and has priority 100 (ironic/drivers/modules/ramdisk.py).
        ordered = [{"args": {}, **step, "priority": 100 + len(steps) - index} for index, step in enumerate(steps)]
        more: dict[str, Any] = {"deploy_steps": ordered} if ordered and not rebuilt else {}
        for last in (True,) if more else (False, False, True):
            node = await self.nodes.provision(node, "rebuild" if node.provision_state == ACTIVE else ACTIVE, **more)
            if node.provision_state == ACTIVE:
                return
            failure = await self.nodes.stuck(node)
            if last or node.provision_state != DEPLOY_FAILED:
                raise failure
            await self._say(f"{failure}; it is repeated")

    async def boot_disk(self, machine_id: str) -> None:
        """Make later boots come from the disk, also after another conductor took the node over; does not reset it."""
        node = await self._ready(machine_id)
        if node.provision_state != ACTIVE:
            return
        # With the deploy interface `ramdisk`, a conductor that takes the node over would boot the installer again each
        # time.
        left = {key: value for key, value in node.instance_info.items() if key not in published.OF_DEPLOYMENT}
        await self._connection.call(
            f"to have {node.name} boot from its disk", lambda ironic: ironic.update_node(node.id, instance_info=left)
        )
        await self._boot_device(node, "disk", persistent=True)
        if node.boot_interface not in FROM_NETWORK:
            await self._detach(node)

    async def restart(self, machine_id: str) -> None:
        """Reset it, or switch it on, without a shutdown of its system."""
        await self.nodes.power(await self._ready(machine_id), "rebooting")

    async def power_off(self, machine_id: str) -> None:
        """Switch it off; returns once it is off."""
        await self.nodes.power(await self._ready(machine_id), "power off")

    async def give_back(self, machine_id: str) -> None:
        """End the claim."""
        machine = MachineId.parse(machine_id)
        server = self._settings.ironic_servers.get(machine.server)
        await self.nodes.give_back(machine.server, machine.identity, server)

    async def abandon(self, server: str) -> None:
        """End a claim that was killed before its node was known."""
        await self.nodes.abandon(server, self._settings.ironic_servers.get(server))

    async def _ready(self, machine_id: str) -> Node:
        """A server's node in a stable state. Ironic first gets the current BMC settings of an enrolled server."""
        machine = MachineId.parse(machine_id)
        node = await self.nodes.settled(machine.identity)
        server = self._settings.ironic_servers.get(machine.server)
        if server is not None and server.driver is not None:
            await self.nodes.tell(machine.server, server, node.id)
        return node

    async def _detach(self, node: Node) -> None:
        await self.nodes.act(
            node,
            f"to detach the disc of {node.name}",
            lambda ironic: ironic.detach_vmedia_from_node(node.id, device_types=[_MEDIA]),
        )

    async def _boot_device(self, node: Node, device: str, *, persistent: bool) -> None:
        await self._connection.call(
            f"to have {node.name} boot from {device}",
            lambda ironic: ironic.set_node_boot_device(node.id, device, persistent=persistent),
        )
