"""Operations on Ironic's nodes: enrol, claim by an allocation, deploy, give back.

An allocation (https://docs.openstack.org/ironic/latest/admin/allocation.html) is Ironic's own claim: it is atomic, a
node has at most one, and it has a name. So a run after a killed one finds its claims, and a node of another owner is
never taken.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from metal_ipi.provider.backoff import Backoff
from metal_ipi.provider.errors import InvalidInputs, ProviderError, RemoteError
from metal_ipi.provider.ironic_settings import IPMI, WIPING, IronicServer, IronicSettings
from metal_ipi.provider.platforms.ironic.connection import Connection, Refused
from metal_ipi.provider.status import Say

Node = Any
"""A node of openstacksdk."""
ACTIVE, AVAILABLE, ENROLLED, MANAGEABLE, DEPLOY_FAILED = "active", "available", "enroll", "manageable", "deploy failed"
_STABLE = frozenset(
    {
        *(ACTIVE, AVAILABLE, ENROLLED, MANAGEABLE, DEPLOY_FAILED),
        *("clean failed", "inspect failed", "error", "adopt failed", "rescue failed", "rescue", "service failed"),
    }
)
"""Provision states that do not change on their own (ironic/common/states.py)."""
_UNFINISHED = frozenset({ENROLLED, "clean failed", "inspect failed"})
"""States from which a node becomes manageable again."""
_ENDS = {"active": ACTIVE, "deleted": AVAILABLE, "manage": MANAGEABLE, "provide": AVAILABLE}
"""Where these verbs lead."""
_CLEANING_FAILED = "clean failure"
_MINE = "metal_ipi_claimant"
"""The key in a node's `extra` with the claimant that enrolled it."""
_CLEANED, _BEGUN = "metal_ipi_clean_steps", "begun"
"""The key in a node's `extra` with the digest of the completed clean steps, or with _BEGUN while they run."""
_CLASS = "baremetal"
_UNEXPECTED, _AGAIN = "Unexpected exception during allocation", 3
"""The beginning of Ironic's message when an allocation failed through no fault of the node (ironic/conductor/
allocations.py: the database was locked or unreachable), and how often Ironic is asked again after such a failure."""
_UNRESUMED = "can't be resumed by conductor"
"""Part of Ironic's message for a node whose conductor died while it worked on it (ironic/conductor/base_manager.py,
_correct_stuck_states)."""
_BOOT = {"redfish": "redfish-virtual-media", "idrac": "idrac-redfish-virtual-media", IPMI: "ipxe"}
"""The boot interfaces of enrolled servers."""
FROM_NETWORK = frozenset({"pxe", "http", "ipxe", "http-ipxe"})
"""Boot interfaces without virtual media (ironic/drivers/generic.py)."""
_IPXE = frozenset({"ipxe", "http-ipxe"})
"""Boot interfaces that boot an iPXE script (see `published`)."""
_DEPLOY = "direct"
"""The deploy interface of enrolled servers. An instance has `ramdisk` as long as it boots its disc."""
_LONGEST_PAUSE = 3.0
_BAD_REQUEST = 400
"""HTTP's, for a verb that a node's state does not allow."""
_HEARTBEATS = 60
"""Seconds to wait for a conductor's heartbeat; Ironic considers it dead after the same time."""
_IPMI_PORT = 623
_HISTORY = "1.78"
"""The API version that introduced the history of nodes."""
_OF_CONDUCTOR = ["hostname", "conductor_group", "drivers"]


def _reached(server: IronicServer) -> dict[str, Any]:
    """Driver info: how the conductors reach a server's BMC (ironic/drivers/modules/{redfish/utils,ipmitool}.py)."""
    if server.driver == IPMI:
        parts = urlsplit(str(server.address))
        info: dict[str, Any] = {"ipmi_address": parts.hostname, "ipmi_port": parts.port or _IPMI_PORT}
        return info | {"ipmi_username": server.username, "ipmi_password": server.password}
    info = {
        "redfish_address": server.address,
        "redfish_username": server.username,
        "redfish_password": server.password,
        "redfish_verify_ca": {"true": True, "false": False}.get(server.verify_ca, server.verify_ca),
    }
    return info if server.system_id is None else {**info, "redfish_system_id": server.system_id}


def _digest(steps: list[dict[str, Any]]) -> str | None:
    """A digest of clean steps; None if there are none."""
    return hashlib.sha256(json.dumps(steps, sort_keys=True).encode()).hexdigest() if steps else None


class Nodes:
    """The nodes of one Ironic, for one claimant."""

    def __init__(self, connection: Connection, settings: IronicSettings, say: Say, *, timeout: float) -> None:
        """`timeout` is how long a node may take for one step, in seconds."""
        self._connection, self._settings, self._say, self._timeout = connection, settings, say, timeout

    async def get(self, node_id: str) -> Node | None:
        """A node by UUID or name; None if there is none."""
        return await self._connection.find(f"for node {node_id}", lambda ironic: ironic.get_node(node_id))

    async def need(self, node_id: str) -> Node:
        """A node by UUID or name. Raises RemoteError if there is none."""
        node = await self.get(node_id)
        if node is None:
            raise RemoteError(
                f"{self._connection.where} has no node {node_id} any more: run `pulumi refresh`; or, if the "
                "settings name it, correct that"
            )
        return node

    def where(self, node: Node) -> str:
        """The node's name in messages."""
        return f"node {node.name or node.id} of {self._connection.where}"

    # --- claims -------------------------------------------------------------------------------------------------------

    def claim_of(self, server: str) -> str:
        """The name of a server's allocation."""
        return f"{self._settings.claimant}-{server}"

    async def claimed(self, server: str) -> Node | None:
        """The node that is claimed for a server; None if there is none."""
        found = await self._allocation(server)
        return None if found is None or found.state != "active" else await self.need(found.node_id)

    async def claim(self, name: str, server: IronicServer, *, accept: str) -> Node:
        """Claim a node for a server; continues what an earlier, killed run began."""
        found = await self._allocation(name)
        if found is not None and found.state == "error":
            await self._drop(name)
            found = None
        if found is not None:
            return await self._granted(name, server, accept)
        await self._request(name, server, accept)
        try:
            return await self._granted(name, server, accept)
        except InvalidInputs:
            await self._drop(name)
            raise

    async def seen(self, name: str, server: IronicServer) -> Node | None:
        """The node that a server would get, without changing anything; None if it must be enrolled, or is chosen by
        Ironic.

        Raises ProviderError if a claim would be refused, as far as that is known before.
        """
        claimed = await self.claimed(name)
        if claimed is not None:
            await self._usable(claimed)
            return claimed
        if server.driver is not None:
            await self._served(name, server)
            node = await self.get(name)
            if node is not None:
                self._refuse_others(node, name)
        elif server.node is not None:
            node = await self.need(server.node)
        else:
            return None
        if node is not None:
            await self._usable(node)
            await self._refuse_boots(node, server)
            if node.instance_id or (server.driver is None and node.provision_state != AVAILABLE):
                raise InvalidInputs(await self._not_granted(name, server, "it must be available, and have no owner"))
        return node

    async def _hosts(self, driver: str) -> frozenset[str]:
        """The active conductors with a driver. The field `alive` of conductors is not used: with an SQLite database,
        which gets no heartbeats, it is False after a minute (ironic/api/controllers/v1/conductor.py)."""
        found = await self._connection.call("for its drivers", lambda ironic: list(ironic.drivers()))
        return frozenset(host for each in found if each.name == driver for host in each.hosts or ())

    async def conductors(self) -> list[Any]:
        """All known conductors, active or not."""
        return await self._connection.call(
            "for its conductors", lambda ironic: list(ironic.conductors(fields=_OF_CONDUCTOR))
        )

    async def free(self, resource_class: str, traits: frozenset[str]) -> int:
        """The number of nodes that an allocation could choose from."""
        found = await self._connection.call(
            f"for nodes of the resource class {resource_class}",
            lambda ironic: list(
                ironic.nodes(
                    fields=["uuid", "traits"],
                    resource_class=resource_class,
                    provision_state=AVAILABLE,
                    associated=False,
                    is_maintenance=False,
                )
            ),
        )
        return sum(traits <= set(node.traits or ()) for node in found)

    async def _served(self, name: str, server: IronicServer) -> None:
        """Raise ProviderError if no conductor would manage the server. If one is known, wait for its heartbeat: a busy
        conductor may be late."""
        backoff = Backoff(timeout=min(self._timeout, _HEARTBEATS), longest=_LONGEST_PAUSE)
        what = f"the group {server.conductor_group}" if server.conductor_group else "no group"
        while True:
            known = [
                each
                for each in await self.conductors()
                if each.conductor_group == server.conductor_group and server.driver in (each.drivers or [server.driver])
            ]
            active = await self._hosts(str(server.driver))
            if any(each.hostname in active for each in known):
                return
            if not known:
                raise InvalidInputs(
                    f"{self._connection.where} has no conductor of {what} with the driver {server.driver} for {name}: "
                    "enable the driver, or correct `driver` and `conductorGroup`"
                )
            if backoff.over:
                names = ", ".join(sorted(str(each.hostname) for each in known))
                raise RemoteError(
                    f"{self._connection.where} has had no recent sign of a conductor for {name} ({names}): check that "
                    "they run"
                )
            await backoff.pause()

    async def _request(self, name: str, server: IronicServer, accept: str) -> None:
        self._refuse_wiping(name, "deploy", [step.to_ironic() for step in server.deploy_steps], accept)
        wanted: dict[str, Any] = {"name": self.claim_of(name), "resource_class": server.resource_class}
        if server.driver is not None:
            node = await self.enrolled(name, server, accept)
            self._refuse_running(node, accept)
        elif server.node is not None:
            node = await self.need(server.node)
            await self._usable(node)
        else:
            node = None
            wanted["traits"] = list(server.traits)
        if node is not None:
            if node.resource_class is None:
                raise InvalidInputs(
                    f"{self.where(node)} has no resource class, and is not allocated without one: set it, e.g. "
                    f"`baremetal node set --resource-class {_CLASS} {node.name or node.id}`"
                )
            wanted |= {"resource_class": node.resource_class, "candidate_nodes": [node.id]}
        # Not repeated after an unclear answer: the next look shows whether the allocation exists.
        await self._connection.call(
            f"to allocate {name}", lambda ironic: ironic.create_allocation(**wanted), again=False
        )

    async def _granted(self, name: str, server: IronicServer, accept: str) -> Node:
        backoff, again = Backoff(timeout=self._timeout, longest=_LONGEST_PAUSE), _AGAIN
        while True:
            found = await self._allocation(name)
            if found is None:
                raise RemoteError(
                    f"{self._connection.where} has removed the allocation of {name}; run the same command again"
                )
            if found.state == "active":
                node = await self.need(found.node_id)
                await self._refuse_boots(node, server)
                return node
            if found.state == "error":
                await self._drop(name)
                why = str(found.last_error)
                if _UNEXPECTED not in why or not again:
                    raise RemoteError(await self._not_granted(name, server, why))
                again -= 1
                await backoff.pause()
                await self._request(name, server, accept)
                continue
            if backoff.over:
                raise RemoteError(
                    f"{self._connection.where} does not say which node {name} gets; run the same command again"
                )
            await backoff.pause()

    async def _not_granted(self, name: str, server: IronicServer, why: str) -> str:
        """The error message; it names the current owner if only one node was possible."""
        wanted = name if server.driver is not None else server.node
        node = None if wanted is None else await self.get(wanted)
        if node is None:
            what = f"of the resource class {server.resource_class}"
            if server.traits:
                what += f" with the traits {', '.join(server.traits)}"
            return f"{self._connection.where} has no free node {what} for {name}: {why}"
        if node.instance_id:
            return (
                f"{self.where(node)} is taken, by the instance {node.instance_id}"
                f"{f' (allocation {node.allocation_id})' if node.allocation_id else ''}: give {name} another node, or "
                "release that one"
            )
        return f"{self.where(node)} is {node.provision_state} and is not given to {name}: {why}"

    def _refuse_running(self, node: Node, accept: str) -> None:
        """Raise InvalidInputs for an enrolled server that may be in use by others: one that is on without a claim. A
        server whose clean steps have begun was switched on by them."""
        cleaning = (node.extra or {}).get(_CLEANED) == _BEGUN
        if node.power_state != "power off" and not node.instance_id and accept != "wipe" and not cleaning:
            raise InvalidInputs(
                f"{self.where(node)} is {node.power_state or 'perhaps on'}, and it may run something that is not of "
                "this cluster: switch it off, or, if all its disks may be wiped, set `consent: wipe` for this server"
            )

    def _is_ours(self, node: Node) -> bool:
        """Whether this stack created the node or port."""
        return (node.extra or {}).get(_MINE) == self._settings.claimant

    def _refuse_others(self, node: Node, name: str) -> None:
        if not self._is_ours(node):
            raise InvalidInputs(
                f"{self.where(node)} was not enrolled by this stack: use it as it is, with `node: {name}` and without "
                "`driver`, or give the server another name"
            )

    async def _refuse_boots(self, node: Node, server: IronicServer) -> None:
        """Raise InvalidInputs for a node that would not boot its installer, or would boot it again and again."""
        if server.driver not in (None, node.driver):
            raise InvalidInputs(
                f"{self.where(node)} was enrolled with the driver {node.driver}, but the settings have "
                f"{server.driver}: remove it (`baremetal node delete {node.name}`), or restore `driver`"
            )
        if node.boot_interface in FROM_NETWORK and not server.by_network:
            raise InvalidInputs(
                f"{self.where(node)} boots from the network (boot interface {node.boot_interface}), but should boot a "
                "disc: set `boot: network` for this server, or give the node a boot interface for virtual media"
            )
        if server.driver is None and server.by_network:
            await self._refuse_no_network_boot(node, str(server.mac))
        if node.deploy_interface == "ramdisk":
            raise InvalidInputs(
                f"{self.where(node)} has the deploy interface ramdisk permanently: a conductor that takes the node "
                "over would boot its installer again. Set it to direct; `up` sets ramdisk for the installation only"
            )

    async def _refuse_no_network_boot(self, node: Node, mac: str) -> None:
        """Raise InvalidInputs for a node of others that would not boot iPXE from this interface."""
        if node.boot_interface not in _IPXE:
            raise InvalidInputs(
                f"{self.where(node)} has the boot interface {node.boot_interface}, but should boot from the network: "
                f"give it one of {', '.join(sorted(_IPXE))}, or remove `boot: network`, so that it boots a disc"
            )
        ports = await self._connection.call(
            f"for the ports of {node.name or node.id}", lambda ironic: list(ironic.ports(details=True, node=node.id))
        )
        if not any(port.address.lower() == mac and port.is_pxe_enabled for port in ports):
            addresses = ", ".join(sorted(port.address for port in ports if port.is_pxe_enabled)) or "none"
            raise InvalidInputs(
                f"{self.where(node)} has no port that boots from the network with the MAC address {mac}, but "
                f"{addresses}: correct `mac` of this server, or add the port to the node"
            )

    async def _allocation(self, server: str) -> Any | None:
        name = self.claim_of(server)
        return await self._connection.find(f"for the allocation {name}", lambda ironic: ironic.get_allocation(name))

    async def _drop(self, server: str) -> None:
        name = self.claim_of(server)
        await self._connection.find(
            f"to drop the allocation {name}", lambda ironic: ironic.delete_allocation(name, ignore_missing=True)
        )

    # --- enrolment ----------------------------------------------------------------------------------------------------

    async def enrolled(self, name: str, server: IronicServer, accept: str) -> Node:
        """A server's own node, available; enrolled if it does not exist."""
        node = await self.get(name)
        if node is None:
            await self._say(f"enrolling {name}")
            await self._connection.call(
                f"to enrol {name}", lambda ironic: ironic.create_node(**self._as_node(name, server)), again=False
            )
            node = await self.need(name)
        self._refuse_others(node, name)
        await self._refuse_boots(node, server)
        await self.tell(name, server, node.id)
        if server.by_network:
            await self.have_port(node, str(server.mac))
        node = await self._make_available(node.id, server, accept)
        if node.is_automated_clean_enabled is False:
            change = [{"op": "replace", "path": "/automated_clean", "value": None}]
            await self._connection.call(
                f"to have {name} cleaned when it is given back", lambda ironic: ironic.patch_node(node.id, change)
            )
        return node

    async def tell(self, name: str, server: IronicServer, node_id: str) -> None:
        """Update Ironic's BMC settings of an enrolled server."""
        info = self._as_node(name, server)["driver_info"]
        await self._connection.call(f"to update {name}", lambda ironic: ironic.update_node(node_id, driver_info=info))

    async def have_port(self, node: Node, mac: str) -> None:
        """Create a port for the interface that a server boots from: the server finds its boot files by its MAC address.

        A port that we created for an earlier setting is deleted; ports from an inspection stay.
        """
        ports = await self._connection.call(
            f"for the ports of {node.name}", lambda ironic: list(ironic.ports(details=True, address=mac))
        )
        others = [port for port in ports if port.node_id != node.id]
        if others:
            other = await self.need(others[0].node_id)
            raise InvalidInputs(
                f"{self.where(node)}: the MAC address {mac} is that of {self.where(other)}: correct `mac` of this "
                "server, or remove that node"
            )
        if not ports:
            await self._connection.call(
                f"to have the port {mac} of {node.name}",
                lambda ironic: ironic.create_port(
                    node_uuid=node.id, address=mac, is_pxe_enabled=True, extra={_MINE: self._settings.claimant}
                ),
                again=False,
            )
        for port in await self._connection.call(
            f"for the ports of {node.name}", lambda ironic: list(ironic.ports(details=True, node=node.id))
        ):
            if port.address.lower() != mac and self._is_ours(port):
                await self._connection.find(
                    f"to take the port {port.address} of {node.name} out",
                    lambda ironic, gone=port.id: ironic.delete_port(gone, ignore_missing=True),
                )

    def _as_node(self, name: str, server: IronicServer) -> dict[str, Any]:
        return {
            "name": name,
            "driver": server.driver,
            "driver_info": _reached(server),
            "boot_interface": _BOOT[str(server.driver)],
            "deploy_interface": _DEPLOY,
            "resource_class": server.resource_class or _CLASS,
            "conductor_group": server.conductor_group,
            "extra": {_MINE: self._settings.claimant},
            # Its disks may have data of others: our installer checks that before it wipes, but cleaning does not.
            "automated_clean": False,
        }

    async def _make_available(self, node_id: str, server: IronicServer, accept: str) -> Node:
        """Move the node through Ironic's states to `available`; a claimed node keeps its state.

        What a conductor that died has not finished is repeated a few times, except clean steps of the settings.
        """
        tried, again = set[tuple[str, str]](), _AGAIN
        while True:
            node = await self.settled(node_id)
            state, steps = node.provision_state, self._clean_steps_of(node, server)
            if state in _UNFINISHED and _UNRESUMED in str(node.last_error) and again:
                again -= 1
                tried.clear()
            if state in (AVAILABLE, ACTIVE, DEPLOY_FAILED):
                await self._usable(node)
                if state != AVAILABLE or not steps:
                    return node
            verbs = {
                **dict.fromkeys((AVAILABLE, *_UNFINISHED), "manage"),
                MANAGEABLE: "clean" if steps else "provide",
            }
            verb = verbs.get(state, "")
            if not verb or (state, verb) in tried:
                raise await self.stuck(node)
            if state == MANAGEABLE:
                self._refuse_running(node, accept)
            tried.add((state, verb))
            if node.is_maintenance and node.fault == _CLEANING_FAILED:
                await self._connection.call(
                    f"to end the maintenance of {node_id}", lambda ironic: ironic.unset_node_maintenance(node_id)
                )
            if verb == "clean":
                await self._clean(node, steps, accept)
                continue
            if verb == "provide" and (node.extra or {}).get(_CLEANED) == _BEGUN:
                await self._end_cleaning(node, None)
            await self.provision(node, verb)

    def _clean_steps_of(self, node: Node, server: IronicServer) -> list[dict[str, Any]]:
        """The clean steps that the node still needs; none if it is claimed."""
        steps = [step.to_ironic() for step in server.clean_steps]
        done = (node.extra or {}).get(_CLEANED) == _digest(steps)
        return [] if done or node.instance_id else steps

    async def _clean(self, node: Node, steps: list[dict[str, Any]], accept: str) -> None:
        """Run the clean steps, and switch the server off afterwards. The progress is stored in the node: a killed run's
        steps are repeated."""
        self._refuse_wiping(self.where(node), "clean", steps, accept)
        await self._note_cleaning(node, _BEGUN)
        cleaned = await self.provision(node, "clean", clean_steps=steps)
        if cleaned.provision_state != MANAGEABLE:
            raise await self.stuck(cleaned)
        await self._end_cleaning(cleaned, _digest(steps))

    def _refuse_wiping(self, whose: str, kind: str, steps: list[dict[str, Any]], accept: str) -> None:
        wiping = sorted({f"{step['interface']}.{step['step']}" for step in steps if step["interface"] in WIPING})
        if wiping and accept != "wipe":
            raise InvalidInputs(
                f"{whose}: the {kind} steps {', '.join(wiping)} destroy the data on its disks: if they may be wiped, "
                "set `consent: wipe` for this server; otherwise remove these steps"
            )

    async def _end_cleaning(self, node: Node, done: str | None) -> None:
        """Switch the node off, and store `done`: the digest of the completed steps; None if the settings no longer have
        steps."""
        if node.power_state != "power off":
            await self.power(node, "power off")
        await self._note_cleaning(node, done)

    async def _note_cleaning(self, node: Node, how_far: str | None) -> None:
        extra = {**(node.extra or {}), _CLEANED: how_far}
        await self._connection.call(
            f"to note the clean steps of {node.name}", lambda ironic: ironic.update_node(node.id, extra=extra)
        )

    # --- work ---------------------------------------------------------------------------------------------------------

    async def provision(self, node: Node, verb: str, **more: Any) -> Node:
        """Change a node's provision state; returns the node once that has ended, successfully or not."""
        await self._say(f"{self.where(node)}: {verb}")
        try:
            await self._connection.call(
                f"for `{verb}` of {node.name or node.id}",
                lambda ironic: ironic.set_node_provision_state(node.id, verb, **more),
            )
        except Refused as refused:
            # The answer to an earlier attempt may have been lost: then Ironic does what was asked, or has done it.
            state = (await self.need(node.id)).provision_state
            if refused.status != _BAD_REQUEST or (state in _STABLE and state != _ENDS.get(verb)):
                raise
        return await self.settled(node.id)

    async def settled(self, node_id: str) -> Node:
        """Wait until nothing is in progress on a node; returns it."""
        backoff = Backoff(timeout=self._timeout, longest=_LONGEST_PAUSE)
        while True:
            node = await self.need(node_id)
            if node.provision_state in _STABLE and not node.reservation and not node.target_power_state:
                return node
            if backoff.over:
                raise RemoteError(
                    f"{self.where(node)} is still {node.provision_state}"
                    f"{f', locked by {node.reservation},' if node.reservation else ''} after {self._timeout:g} s; run "
                    "the same command again to continue to wait. A lock of a conductor that does not work any more is "
                    "released when that conductor is restarted"
                )
            await self._say(f"waiting for {self.where(node)} ({node.provision_state})")
            await backoff.pause()

    async def act(self, node: Node, asked: str, operation: Callable[[Any], Any]) -> Node:
        """Make a conductor do something in the background, and wait for it. Raises RemoteError with its message if that
        failed."""
        await self._connection.call(asked, operation)
        done = await self.settled(node.id)
        if done.last_error:
            raise RemoteError(f"{self.where(done)}, asked {asked}: {done.last_error}")
        return done

    async def power(self, node: Node, target: str) -> None:
        """Change the power state: `power on`, `power off` or `rebooting`."""
        await self.act(
            node, f"for {target} of {node.name}", lambda ironic: ironic.set_node_power_state(node.id, target)
        )

    async def stuck(self, node: Node) -> ProviderError:
        """The error for a node in an unusable state, with the remedy."""
        why = node.last_error or node.maintenance_reason or await self._last_failure(node) or "Ironic gives no reason"
        remedies = {
            ENROLLED: "Ironic does not reach its BMC: correct address, account and "
            + (
                "password of the server; IPMI over LAN must be on, and the account an administrator of it"
                if node.driver == IPMI
                else "`verifyCa` of the server"
            ),
            "clean failed": "find out why its cleaning fails, or correct its `cleanSteps`; then run the same command "
            "again, which repeats it",
            "inspect failed": "find out why its inspection fails; then run the same command again, which repeats it",
            DEPLOY_FAILED: "correct what the message names, or its `deploySteps`; then run the same command again, "
            "which repeats it",
            "error": "correct what the message names, and release the node: `baremetal node undeploy`",
        }
        remedy = remedies.get(node.provision_state, "bring it to the state available")
        return RemoteError(f"{self.where(node)} is in the state {node.provision_state}: {why}; {remedy}")

    async def _last_failure(self, node: Node) -> str:
        """The last failure in the node's history; empty if there is none.

        Needed because Ironic switches a node off after a failed deployment, which clears `last_error`
        (node_power_action of ironic/conductor/utils.py).
        """
        query = {"detail": True, "sort_dir": "desc", "limit": 20}
        answer = await self._connection.call(
            f"for the history of {node.name or node.id}",
            lambda ironic: ironic.get(f"/nodes/{node.id}/history", params=query, microversion=_HISTORY),
        )
        events = answer.json().get("history") or [] if answer.ok else []
        return next((" ".join(str(each["event"]).split()) for each in events if each["severity"] == "ERROR"), "")

    async def _usable(self, node: Node) -> None:
        if node.is_maintenance:
            raise RemoteError(
                f"{self.where(node)} is in maintenance ({node.fault or 'set by hand'}): "
                f"{node.maintenance_reason or 'no reason is given'}; end it: `baremetal node maintenance unset "
                f"{node.name or node.id}`"
            )

    # --- the end ------------------------------------------------------------------------------------------------------

    async def abandon(self, name: str, server: IronicServer | None) -> None:
        """Undo what a killed claim has made, like `give_back`."""
        node = await self.claimed(name)
        if node is None and server is not None and server.driver is not None:
            enrolled = await self.get(name)
            node = enrolled if enrolled is not None and self._is_ours(enrolled) else None
        if node is None:
            await self._drop(name)
        else:
            await self.give_back(name, node.id, server)

    async def give_back(self, name: str, node_id: str, server: IronicServer | None) -> None:
        """End a claim: the node is undeployed, and available again, or removed. A missing claim is not an error."""
        node = await self.get(node_id)
        if node is None:
            await self._drop(name)
            return
        held = await self._allocation(name)
        if node.instance_id and (held is None or held.id != node.instance_id):
            return  # claimed by somebody else since
        node = await self.settled(node_id)
        enrolled = server is not None and server.driver is not None
        if held is not None and server is not None and enrolled:
            await self.tell(name, server, node_id)
        if held is not None and node.provision_state in (ACTIVE, DEPLOY_FAILED, "error"):
            for _ in range(_AGAIN):
                node = await self.provision(node, "deleted")
                if node.provision_state != "error" or _UNRESUMED not in str(node.last_error):
                    break
            if node.provision_state in ("error", "clean failed"):
                raise await self.stuck(node)
        await self._drop(name)
        if enrolled and self._is_ours(node) and node.provision_state != ACTIVE and self._settings.release == "remove":
            await self._connection.find(
                f"to take {name} out", lambda ironic: ironic.delete_node(node_id, ignore_missing=True)
            )
