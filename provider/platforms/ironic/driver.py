"""See `MachineDriver`, for servers that Ironic lends; and what `installation.remote` needs of all servers."""

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
"""Seconds that a call may be repeated: a lock that outlived the database goes when its conductor starts again."""


def _machine(machine_id: MachineId, node: Node) -> Machine:
    """A lent server: active while it is on. Its addresses are not Ironic's to tell."""
    state = "active" if node.provision_state == ACTIVE and node.power_state == "power on" else "provisioning"
    return Machine(id=str(machine_id), hostname=machine_id.server, state=state, console="")


class Ironic(MachineDriver[LentNodeArgs]):
    """All servers of the section `ironic`; connects when it is first asked something."""

    def __init__(self, settings: Settings, say: Say | None = None, *, timeout: float = 1800) -> None:
        """`say` takes what it is waiting for; `timeout` is how long one step of a node may take, in seconds."""
        self._settings = settings
        self._ironic = settings.need_ironic()
        self._connection = Connection(self._ironic, timeout=min(timeout, _PATIENCE))
        self._say = say or silent
        self.nodes = Nodes(self._connection, self._ironic, self._say, timeout=timeout)

    async def __aexit__(self, *_: object) -> None:
        await self._connection.close()

    # --- servers that are lent ---------------------------------------------------------------------------------------

    async def find(self, spec: LentNodeArgs) -> list[Machine]:
        return []  # what an earlier run left undone is done again: nothing comes into being twice

    async def create(self, spec: LentNodeArgs) -> Machine:
        node = await self.nodes.claimed(spec.server)
        if node is None:
            raise InvalidInputs(
                f"server {spec.server} is not claimed: declare its IronicMachine, and have this machine depend on it"
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
        # At last: as long as what it boots is there, a run that was killed is known to have more to do.
        machine = MachineId.parse(machine_id)
        await disc.withdraw(self._settings, machine.lent_mac)

    # --- all servers -------------------------------------------------------------------------------------------------

    async def claim(self, server: str, *, accept: str = "empty") -> Node:
        """Has a node for a server; with `empty`, one that is enrolled and not claimed yet must be switched off."""
        return await self.nodes.claim(server, self._settings.need_ironic_server(server), accept=accept)

    async def seen(self, server: str) -> Hardware:
        """What can be told of a server before it is claimed; changes nothing. Raises ProviderError for what a claim
        would be refused with."""
        node = await self.nodes.seen(server, self._settings.need_ironic_server(server))
        if node is None:
            return Hardware()
        runs = node.provision_state == ACTIVE and node.power_state == "power on"
        found = inspected.hardware(await self.inventory(node), node.properties or {})
        return replace(found, where=self.nodes.where(node), power="On" if runs else "Off")

    async def held(self, machine: MachineId) -> Node | None:
        """The node of a server; None where it is gone, or not claimed for it any more."""
        node = await self.nodes.claimed(machine.server)
        return node if node is not None and node.id == machine.identity else None

    async def inventory(self, node: Node) -> dict[str, Any]:
        """What Ironic knows of its hardware from an inspection; nothing where it was not inspected."""
        found = await self._connection.find(
            f"for the inventory of {node.id}", lambda ironic: ironic.get_node_inventory(node.id)
        )
        return dict((found or {}).get("inventory") or {})

    async def power_state(self, machine_id: str) -> str:
        """`On`, `Off` or `Unknown`, as Ironic saw it last."""
        node = await self.nodes.need(MachineId.parse(machine_id).identity)
        return _POWER.get(node.power_state or "", "Unknown")

    async def boot_installer(self, machine_id: str, mac: str) -> None:
        """Boots it into its installer, whatever it does just now: from its disc, once, or from the network.

        The first time it is deployed, with the deploy interface `ramdisk` for this instance only. Afterwards one that
        boots from the network is rebuilt: its conductor makes its boot files anew, which may be gone. A disc is
        attached: Ironic 39 rebuilds no instance that has a disc for its image (see `published`). It does not heed
        either that the BMC is to fetch the disc itself (ironic/conductor/rpcapi.py, attach_virtual_media): its
        conductor fetches it, and hands it on.
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
        """Has it deployed, or rebuilt. What failed is done again, a few times: a conductor that dies leaves what it was
        at as failed, and what boots is our installer, which looks before it writes. Not so with steps: firmware is not
        written again unasked. A rebuild has none."""
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
            await self._say(f"{failure}; it is done again")

    async def boot_disk(self, machine_id: str) -> None:
        """Has its following boots come from the disk, also after a conductor took it over; resets nothing."""
        node = await self._ready(machine_id)
        if node.provision_state != ACTIVE:
            return
        # With `ramdisk`, a conductor that takes the node over would have it boot its installer again, every time.
        left = {key: value for key, value in node.instance_info.items() if key not in published.OF_DEPLOYMENT}
        await self._connection.call(
            f"to have {node.name} boot from its disk", lambda ironic: ironic.update_node(node.id, instance_info=left)
        )
        await self._boot_device(node, "disk", persistent=True)
        if node.boot_interface not in FROM_NETWORK:
            await self._detach(node)

    async def restart(self, machine_id: str) -> None:
        """Resets it, or switches it on; what runs on it is not asked."""
        await self.nodes.power(await self._ready(machine_id), "rebooting")

    async def power_off(self, machine_id: str) -> None:
        """Switches it off; returns once it is off."""
        await self.nodes.power(await self._ready(machine_id), "power off")

    async def give_back(self, machine_id: str) -> None:
        """Ends the claim."""
        machine = MachineId.parse(machine_id)
        server = self._settings.ironic_servers.get(machine.server)
        await self.nodes.give_back(machine.server, machine.identity, server)

    async def abandon(self, server: str) -> None:
        """Ends a claim that was killed before anybody knew of which node."""
        await self.nodes.abandon(server, self._settings.ironic_servers.get(server))

    async def _ready(self, machine_id: str) -> Node:
        """A server's node, that nothing is being done with; of an enrolled one, Ironic knows how to reach its BMC."""
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
