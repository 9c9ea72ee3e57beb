"""MetalIpiRemediation: a MachineHealthCheck found a Machine unhealthy. Its server is power-cycled as often as
configured, each time with a wait; then the Machine is left to its owner, which replaces it.

Every power cycle is recorded before it begins, so a provider that was killed does not begin the next one too early.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal

from metal_ipi.cluster_api import conditions
from metal_ipi.cluster_api.api import MACHINE, MANAGER, Api, Object, status_of
from metal_ipi.cluster_api.clusters import FORMED, NotUsable, Work, leaving, made
from metal_ipi.cluster_api.conditions import EXTERNALLY, HEALTHY, OWNER
from metal_ipi.cluster_api.engine.state import Entry, action_urn
from metal_ipi.cluster_api.reconcilers import joined, quorum
from metal_ipi.cluster_api.reconcilers.base import Reconciler, Said, doing
from metal_ipi.cluster_api.reconcilers.quorum import seconds_since
from metal_ipi.cluster_api.resources import METAL_IPI_MACHINE, METAL_IPI_REMEDIATION
from metal_ipi.cluster_api.resources.remediation import RemediationSpec
from metal_ipi.components.machines.node import Node
from metal_ipi.provider.configuration import Settings
from metal_ipi.provider.errors import ProviderError
from metal_ipi.provider.resource import Context

_HEALTHY_SECONDS = 10.0
"""MachineHealthCheck first deletes a MetalIpiRemediation, and then sets its Machine to healthy. If that does not happen
within this time, somebody else deleted it."""

Next = Literal["wait", "power-cycle", "hand-over"]


def decide(spec: RemediationSpec, *, begun: int, seconds: float, installed: bool) -> Next:
    """Decide the next step.

    Args:
        begun: power cycles that were begun.
        seconds: since the last of them was begun; before the first, since the machine was found not healthy.
        installed: whether its server was installed: no other is power-cycled, for its installation may be under way.
    """
    if installed and begun < spec.power_cycles and (begun == 0 or seconds >= spec.timeout_seconds):
        return "power-cycle"
    if installed and spec.power_cycles == 0:
        return "hand-over"
    return "wait" if seconds < spec.timeout_seconds else "hand-over"


async def tell(api: Api, machine: Object, *said: Mapping[str, Any]) -> None:
    """Set these conditions of a Machine; others that this provider set before are removed."""
    if all(status_of(machine, each["type"], ("status", "reason", "message")) == _values(each) for each in said):
        return
    kinds = {each["type"] for each in said}
    found = [each for each in conditions.written(machine, said) if each["type"] in kinds]
    place = machine["metadata"]["namespace"], machine["metadata"]["name"]
    body = {"status": {"conditions": found}}
    await api.apply(MACHINE, *place, body, "status", manager=f"{MANAGER}-remediation")


def _values(each: Mapping[str, Any]) -> tuple[str, ...]:
    return each["status"], each["reason"], each["message"]


class RemediationReconciler(Reconciler):
    """Ready once its Machine is healthy again: the MachineHealthCheck then deletes it."""

    resource = METAL_IPI_REMEDIATION.resource

    async def _reconcile(self, item: Object, work: Work) -> Said:
        machine = await self._machine(item, work)
        if leaving(machine):
            return Said().ready(False, "MachineLeaves", "its Machine is being deleted: the remediation has ended")
        if status_of(machine, HEALTHY) == ("True",):
            return Said().ready(True, "Healthy")
        node, state = await self._node(machine, work), await work.engine.state()
        spec, status = RemediationSpec.model_validate(item["spec"]), item.get("status") or {}
        begun = int(status.get("powerCycles") or 0)
        server, installation = map(state.named, made(node)) if node else (None, None)
        seconds = seconds_since(status.get("lastPowerCycle") or item["metadata"]["creationTimestamp"])
        match decide(spec, begun=begun, seconds=seconds, installed=installation is not None):
            case "power-cycle":
                assert node is not None and server is not None, "what is installed has a server"
                message = f"power cycle {begun + 1} of {spec.power_cycles}"
                return await self._power_cycle(item, machine, work, node, server, number=begun + 1, message=message)
            case "hand-over":
                why = f"not healthy after {begun} power cycles" if begun else "not healthy, and powerCycles is 0"
                await tell(
                    self._hub.api,
                    machine,
                    conditions.condition(EXTERNALLY, False, "HandedOver", f"{why}: its owner replaces it"),
                    *self._to_owner(machine),
                )
                return Said().ready(
                    False, "HandedOver", f"{why}: Machine {machine['metadata']['name']} is left to its owner"
                )
            case "wait":
                said = self._waits(work, node, begun, spec.timeout_seconds)
                if node is not None and server is not None and work.engine.failures(_acts(node)):
                    plan = await work.plan(self._hub.reads)
                    async with work.engine.deciding:
                        await self._refuse_unsafe(work, node, plan.settings)
                        _begin(work, node, server, plan.settings)
                return said

    def _waits(self, work: Work, node: Node | None, begun: int, seconds: int) -> Said:
        if not begun:
            message = f"its server is not installed yet: if that is not done within {seconds} s, its owner replaces it"
            return Said().ready(False, "NotInstalled", message)
        if node is not None and (message := doing(work, _acts(node))):
            return Said().ready(False, "PowerCycling", message)
        return Said().ready(False, "PowerCycled", f"its node has {seconds} s to come back")

    def _to_owner(self, machine: Object) -> tuple[Mapping[str, Any], ...]:
        """The condition at which the owner begins; the owner's later changes of it stay."""
        if len(found := status_of(machine, OWNER, ("status", "reason", "message"))) == 3 and found[0] == "False":
            return (conditions.condition(OWNER, False, found[1], found[2]),)
        return (conditions.condition(OWNER, False, "WaitingForRemediation", "power cycles did not help"),)

    async def _power_cycle(
        self, item: Object, machine: Object, work: Work, node: Node, server: Entry, *, number: int, message: str
    ) -> Said:
        plan = await work.plan(self._hub.reads)
        api, place = self._hub.api, (self.resource, work.namespace, item["metadata"]["name"])
        async with work.engine.deciding:
            await self._refuse_unsafe(work, node, plan.settings)
            if self._hub.absences.limit and not await _is_off(work, node, plan.settings):
                await self._hub.absences.take(work, machine, node.name, "power-cycled")
            now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            status = {"powerCycles": number, "lastPowerCycle": now}
            await api.patch(*place, {"status": status}, "status")
            await tell(api, machine, conditions.condition(EXTERNALLY, False, "PowerCycling", message))
            _begin(work, node, server, plan.settings)
        return Said(status=status).ready(False, "PowerCycling", message)

    async def _refuse_unsafe(self, work: Work, node: Node, settings: Settings) -> None:
        """Raises NotUsable if etcd cannot spare this member for a power cycle, or the control plane is still being
        formed; ProviderError if this is not known."""
        if node.role != "control-plane" or await _is_off(work, node, settings):
            return
        if (await work.engine.state()).named(FORMED) is None:
            raise NotUsable("NotFormed", "the cluster is not formed yet: its control plane is not power-cycled")
        await quorum.keep(self._hub.api, work, node)

    async def _node(self, machine: Object, work: Work) -> Node | None:
        """The node of a Machine's server; None while the server is not claimed for it."""
        reference = machine["spec"]["infrastructureRef"]
        if reference.get("kind") != METAL_IPI_MACHINE.resource.kind:
            raise NotUsable("NotOurs", f"its Machine has a {reference.get('kind')}, no MetalIpiMachine")
        found = await self._hub.api.get(METAL_IPI_MACHINE.resource, work.namespace, reference["name"])
        server = ((found or {}).get("spec") or {}).get("server")
        if server not in work.servers:
            return None
        holder = await self._hub.claims.holder(work.servers[server].mac)
        return work.node(server) if holder == f"{work.namespace}/{reference['name']}" else None

    def _mine(self, item: Object, work: Work) -> Callable[[str], bool]:
        return lambda name: False  # a power cycle is ended with the machine that it is for

    async def _gone(self, item: Object, work: Work) -> bool:
        machine = await self._hub.api.get(MACHINE, work.namespace, str(item["metadata"]["name"]))
        if machine is None or leaving(machine):
            return True
        if status_of(machine, HEALTHY) == ("True",):
            await tell(self._hub.api, machine, conditions.condition(EXTERNALLY, True, "Remediated"))
            return True
        return seconds_since(item["metadata"]["deletionTimestamp"]) > _HEALTHY_SECONDS


def _begin(work: Work, node: Node, server: Entry, settings: Settings) -> None:
    async def cycle(context: Context) -> None:
        async with joined.driver(work, context.settings, context.status) as driver:
            await driver.restart(server.outputs["machineId"])

    work.engine.act(action_urn(server.urn, _act(node)), settings, cycle)


def _act(node: Node) -> str:
    """The name of a power cycle among the actions for a machine."""
    return f"{node.hostname}-power cycle"


def _acts(node: Node) -> Callable[[str], bool]:
    return lambda name: name == _act(node)


async def _is_off(work: Work, node: Node, settings: Settings) -> bool:
    """Whether a server is certainly off: then switching it on is safe."""
    try:
        return await joined.power(work, node, settings) == "Off"
    except (TimeoutError, ProviderError):
        return False
