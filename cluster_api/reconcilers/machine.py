"""MetalIpiMachine: a listed server that is claimed for one machine, installed, and released."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from metal_ipi.cluster_api import domains
from metal_ipi.cluster_api.absences import TOO_MANY, joined_once
from metal_ipi.cluster_api.api import MACHINE, Object, labels_of
from metal_ipi.cluster_api.clusters import CLUSTER_LABEL, NotUsable, Work, is_of, leaving
from metal_ipi.cluster_api.engine.plan import Plan, Step
from metal_ipi.cluster_api.engine.state import name_of
from metal_ipi.cluster_api.reconcilers import departure, joined, quorum
from metal_ipi.cluster_api.reconcilers.base import (
    CALLED,
    HELD,
    JOINING,
    LATER,
    Reconciler,
    Said,
    doing,
    reason_of,
)
from metal_ipi.cluster_api.reconcilers.config import CONTROL_PLANE_LABEL
from metal_ipi.cluster_api.resources import METAL_IPI_MACHINE
from metal_ipi.components.machines.node import Node
from metal_ipi.stacks.platforms.listed.settings import Server

HOOK = "pre-drain.delete.hook.machine.cluster.x-k8s.io/metal-ipi"
"""Annotation of Machines: Cluster API does not drain a node while its Machine has it (api/core/v1beta2,
PreDrainDeleteHookAnnotationPrefix)."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The server for a machine, or the reason why there is none."""

    server: str = ""
    reason: str = ""
    message: str = ""


def choose(
    *,
    wanted: str | None,
    role: str,
    servers: Mapping[str, Server],
    taken: Mapping[str, str],
    refused: frozenset[str],
    domain: str | None = None,
) -> Choice:
    """The server for a machine: the one that it names, or the free one of its role with the lowest number.

    Args:
        servers: those that the settings list, by name; where the Machine names a failure domain, those of it.
        taken: whose each is, within the cluster.
        refused: those that a machine of another cluster has.
    """
    where = f" in failure domain {domain}" if domain else ""
    if wanted is not None:
        if wanted not in servers:
            return Choice(
                reason="NoServer",
                message=f"spec.server is {wanted}, which settings.platform.servers does not list{where}: it lists "
                f"{', '.join(sorted(servers)) or 'none'}",
            )
        if servers[wanted].role != role:
            return Choice(reason="NoServer", message=f"server {wanted} is listed for another role than {role}")
        if wanted in taken:
            return Choice(reason="ServerRefused", message=f"server {wanted} is MetalIpiMachine {taken[wanted]}'s")
        return Choice(server=wanted)
    of_role = sorted((each for each in servers.values() if each.role == role), key=lambda each: each.number)
    free = [each.name for each in of_role if each.name not in taken and each.name not in refused]
    if free:
        return Choice(server=free[0])
    return Choice(
        reason="NoServer",
        message=f"no listed server of role {role} is free{where}: list one more in settings.platform.servers of the "
        "MetalIpiCluster, or use fewer machines",
    )


class MachineReconciler(Reconciler):
    """Provisioned once its server was started from its disk."""

    resource = METAL_IPI_MACHINE.resource

    async def _reconcile(self, item: Object, work: Work) -> Said:
        machine = await self._machine(item, work)
        await self._before_drain(item, machine, work)
        choice = await self._claim(item, machine, work)
        if not choice.server:
            return Said().ready(False, choice.reason, choice.message)
        if item["spec"].get("server") != choice.server:  # written before anything is done to it
            change = {"spec": {"server": choice.server}}
            await self._hub.api.patch(self.resource, work.namespace, item["metadata"]["name"], change)
            item = {**item, "spec": {**item["spec"], **change["spec"]}}
        if self._held(work):
            return Said().ready(False, *HELD, again=CALLED)
        node = work.node(choice.server)
        plan = await work.plan(self._hub.reads)
        told = bool((machine["spec"].get("bootstrap") or {}).get("dataSecretName"))
        work.engine.advance(plan, lambda step: is_of(node, step.name) and (told or _is_claim(step)))
        return await self._seen(item, machine, work, plan, node, told=told)

    async def _before_drain(self, item: Object, machine: Object, work: Work) -> None:
        """If the hub has a limit, Cluster API waits before it drains the node of a deleted Machine, until the machine
        may be away. Raises NotUsable while it has to wait; TooManyAway is one of its kinds."""
        hooked, server = HOOK in (machine["metadata"].get("annotations") or {}), item["spec"].get("server")
        wanted = bool(self._hub.absences.limit) and joined_once(machine)
        if leaving(machine):
            if hooked and wanted and server in work.servers and not leaving(work.cluster):
                async with work.engine.deciding:
                    node = work.node(server)
                    if node.role == "control-plane":  # one that etcd cannot spare takes no place
                        await quorum.keep(self._hub.api, work, node)
                    await self._hub.absences.take(work, machine, server, "deleted")
            wanted = False
        if hooked != wanted and (hooked or not leaving(machine)):
            place = machine["metadata"]["namespace"], machine["metadata"]["name"]
            change = {"metadata": {"annotations": {HOOK: "metal-ipi" if wanted else None}}}
            await self._hub.api.patch(MACHINE, *place, change)

    async def _claim(self, item: Object, machine: Object, work: Work) -> Choice:
        role = item["spec"].get("pool") or ("control-plane" if CONTROL_PLANE_LABEL in labels_of(machine) else "worker")
        refused, domain = set[str](), machine["spec"].get("failureDomain")
        within = domains.of(work.facility).get(domain, ()) if domain else work.servers
        servers = {name: server for name, server in work.servers.items() if name in within}
        whose, wanted = f"{work.namespace}/{item['metadata']['name']}", item["spec"].get("server")
        has = wanted in servers and await self._hub.claims.has(servers[wanted].mac, whose)
        taken = {} if has else await self._taken(item, work)
        while True:
            choice = choose(
                wanted=wanted, role=role, servers=servers, taken=taken, refused=frozenset(refused), domain=domain
            )
            if has or not choice.server:
                return choice
            holder = await self._hub.claims.claim(work.servers[choice.server].mac, whose)
            if holder == whose:
                return choice
            refused.add(choice.server)
            if wanted:
                return Choice(
                    reason="ServerRefused",
                    message=f"server {choice.server} ({work.servers[choice.server].mac}) is claimed by MetalIpiMachine "
                    f"{holder}: remove it from the settings of one of the two clusters",
                )

    async def _taken(self, item: Object, work: Work) -> dict[str, str]:
        """The servers of the cluster's other objects, and whose each is."""
        found = await self._hub.api.list(self.resource, work.namespace, f"{CLUSTER_LABEL}={work.name}")
        return {
            str(each["spec"]["server"]): str(each["metadata"]["name"])
            for each in found
            if each["spec"].get("server") and each["metadata"]["name"] != item["metadata"]["name"]
        }

    async def _seen(self, item: Object, machine: Object, work: Work, plan: Plan, node: Node, *, told: bool) -> Said:
        def mine(name: str) -> bool:
            return is_of(node, name)

        waiting = plan.waiting(mine)
        was = bool(((item.get("status") or {}).get("initialization") or {}).get("provisioned"))
        said = Said()
        if not waiting or was:
            server = work.servers[node.name]
            said.spec["providerID"] = f"{joined.SCHEME}{node.hostname}"
            said.status = {
                "initialization": {"provisioned": True},
                "addresses": _addresses(node, server),
                "failureDomain": domains.home(domains.of(work.facility), node.name),
            }
        if not waiting:
            well, reason, message = await joined.look(work, node, machine, plan)
            said.ready(well, reason, message)
            said.again = LATER if reason == joined.JOINED else LATER / 2 if not well else JOINING
            return said
        if not told and not any(_is_claim(step) for step in waiting):
            return said.ready(False, "WaitingForBootstrapData", "the conditions of its OpenShiftConfig say why")
        before = _before(plan, waiting)
        message = doing(work, mine) or (f"waits for {', '.join(before)}" if before else "")
        held = self._hub.absences.waits(work, node.name) and work.engine.running(mine)
        return said.ready(False, TOO_MANY if held else reason_of(work, mine, "Waiting"), message)

    def _mine(self, item: Object, work: Work) -> Callable[[str], bool]:
        server = item["spec"].get("server")
        return lambda name: server in work.servers and is_of(work.node(server), name)

    async def _gone(self, item: Object, work: Work) -> bool:
        server, whose = item["spec"].get("server"), f"{work.namespace}/{item['metadata']['name']}"
        if not server or server not in work.servers:  # nothing was made: `Clusters.open` has refused the settings else
            await self._hub.claims.give_back(whose)
            return True
        node, state, mac = work.node(server), await work.engine.state(), work.servers[server].mac
        mine = [urn for urn in state.entries if is_of(node, name_of(urn))]
        holder = await self._hub.claims.holder(mac)
        if holder is None and mine:  # nobody's: as after a move to another hub, which takes no Lease along
            if other := (await self._taken(item, work)).get(server):
                raise NotUsable(
                    "ServerRefused",
                    f"the owner of server {server} is not known: MetalIpiMachine {other} names it too",
                )
            holder = await self._hub.claims.claim(mac, whose)
        if holder != whose:  # it was refused: what runs there is another's
            return True
        # While the cluster stays, a node is drained and taken out of it first.
        stays, connections = not leaving(work.cluster), await work.connections()
        async with work.engine.deciding:
            member = stays and node.role == "control-plane"
            if stays and not await departure.has_begun(work, node):
                if member:
                    await quorum.keep(self._hub.api, work, node)
                if self._hub.absences.limit and (machine := await self._owner(item, work, self._hub.api)):
                    await self._hub.absences.take(work, machine, server, "deleted")
            await work.engine.stop(lambda name: is_of(node, name))
            if member and not departure.has_left(state := await work.engine.state(), node):
                departure.begin(work, state, node, connections)
                return False
            mine = [urn for urn in (await work.engine.state()).entries if is_of(node, name_of(urn))]
            if not work.engine.remove(mine, connections, given_up=stays):
                return False
        if stays:  # another Machine may take it
            await work.engine.upload_again(node.hostname)
        await self._hub.claims.give_back(whose)
        return True


def _is_claim(step: Step) -> bool:
    return step.name.endswith("-server")


def _addresses(node: Node, server: Server) -> list[dict[str, Any]]:
    found: Sequence[tuple[str, str]] = (
        ("Hostname", node.fqdn),
        ("InternalIP", server.private_address or server.address),
        ("ExternalIP", server.address),
        ("InternalDNS", node.fqdn),
    )
    return [{"type": kind, "address": address} for kind, address in found]


def _before(plan: Plan, steps: Sequence[Step]) -> list[str]:
    """The names of other steps that must be finished first."""
    own = {step.urn for step in steps}
    needed = {urn for step in steps for urn in step.dependencies} - own
    return sorted(plan.steps[urn].name for urn in needed if urn in plan.steps and plan.steps[urn].action != "keep")
