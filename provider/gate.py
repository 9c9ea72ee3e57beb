"""Gate: waits until a condition is true.

Life cycle: create waits; update waits again when the specification or a trigger changed, only for new nodes unless a
trigger changed; read does not check. Delete does nothing, with one exception: nodes to which a pool's networks were
sent delete them from their lists.

Killed while waiting: nothing was made; the next run waits again, and a condition that is true already passes at the
first look. On failure the logs of the nodes that did not pass are gathered first; the machines stay, and the next up
waits again.

If no cluster can be formed without a gate's condition (`aborts`), its failure ends the waiting of all other gates. A
gate that needs only some other gates names them (`givesUpWith`).
"""

from __future__ import annotations

import textwrap
from contextlib import aclosing

from metal_ipi.provider.backoff import Backoff
from metal_ipi.provider.errors import GateFailed
from metal_ipi.provider.failures import Failures
from metal_ipi.provider.gates import Check, Observation, machine_config_access
from metal_ipi.provider.gates.causes import recognise
from metal_ipi.provider.gates.logs import gather
from metal_ipi.provider.gates.opening import opener
from metal_ipi.provider.resource import Changes, Context, Made, ResourceType, Values, simple_changes, time_now
from metal_ipi.provider.resources.gate import GateArgs
from metal_ipi.provider.resources.gate_kinds import GateLogs, MachineConfigAccess
from metal_ipi.provider.values import UNKNOWN, has_unknown

_COMPUTED = ("passedAt", "observed", "waitedSeconds")
# Without `givesUpWith`, which has no effect on a gate that has passed.
_INPUTS = ("kind", "spec", "timeoutSeconds", "stabilitySeconds", "triggers", "aborts")
_LONGEST_PAUSE = 1.0
_GROWTH = 1.05
"""The growth keeps pauses at about a twentieth of the elapsed time, so a condition that becomes true early is seen
soon."""
_LONGEST_STATUS = 400
"""Characters of an observation in a live status. A failure has all of it."""


class Gate(ResourceType):
    """Waits until a condition is true; fails with the cause and with gathered logs."""

    token = "metal-ipi:index:Gate"  # noqa: S105 - a type token
    inputs = GateArgs
    # All nodes with host keys and consoles; they are in the state's inputs already.
    hidden_inputs = frozenset({"spec"})
    found_by_inputs = True

    def __init__(self, failures: Failures | None = None) -> None:
        self._failures = failures or Failures()
        self._failed_gates: set[str] = set()
        """The names of all gates that failed in this update."""

    def diff(self, context: Context, old: Values, new: Values) -> Changes:
        # The log directory depends on the user and the host: its change alone is not a change of the gate.
        return simple_changes(_without_place(old), _without_place(new), _INPUTS)

    def preview(self, context: Context, old: Values | None, new: Values) -> Values:
        waits = old is None or any(
            has_unknown(new.get(key)) or old.get(key) != new.get(key) for key in ("kind", "spec", "triggers")
        )
        return dict.fromkeys(_COMPUTED, UNKNOWN) if waits or old is None else {key: old.get(key) for key in _COMPUTED}

    async def create(self, context: Context, inputs: Values) -> Made:
        check = opener(inputs["kind"])(context, inputs["spec"], None)
        outputs = await self._wait(context, check, inputs)
        return Made(id=context.identity, outputs=outputs)

    async def update(self, context: Context, resource_id: str, old: Values, new: Values) -> Values:
        unchanged = {key: old.get(key) for key in _COMPUTED}
        triggered = old.get("triggers") != new.get("triggers") or old.get("kind") != new.get("kind")
        if not triggered and old.get("spec") == new.get("spec"):
            return unchanged
        check = opener(new["kind"])(context, new["spec"], None if triggered else old.get("spec"))
        return unchanged if check is None else await self._wait(context, check, new)

    async def delete(self, context: Context, resource_id: str, old: Values) -> None:
        # Only a pool's networks must be withdrawn: the cluster's own disappear with its machines.
        if old["kind"] == MachineConfigAccess.kind and old["spec"].get("part"):
            await machine_config_access.withdraw(context, old["spec"])

    async def _wait(self, context: Context, check: Check | None, inputs: Values) -> Values:
        if check is None:
            return _passed("nothing to wait for", 0.0)
        async with aclosing(check):
            return await self._passing(context, check, inputs)

    async def _passing(self, context: Context, check: Check, inputs: Values) -> Values:
        timeout, stability = float(inputs["timeoutSeconds"]), float(inputs.get("stabilitySeconds") or 0)
        backoff = Backoff(timeout=timeout, longest=_LONGEST_PAUSE, growth=_GROWTH)
        passed_since: float | None = None
        while True:
            seen = await check.look(backoff.elapsed)
            if seen.fatal:
                raise await self._failed(context, inputs, seen, f"failed after {backoff.elapsed:.0f} s")
            passed_since = (backoff.elapsed if passed_since is None else passed_since) if seen.passed else None
            if passed_since is not None and backoff.elapsed - passed_since >= stability:
                return _passed(seen.text, backoff.elapsed)
            if backoff.over:
                raise await self._failed(context, inputs, seen, f"did not pass within {timeout:g} s")
            if not seen.passed and (failed := self._hopeless(inputs)):
                raise GateFailed(
                    f"gate {context.name} ({inputs['kind']}) gave up after {backoff.elapsed:.0f} s, "
                    f"because {failed} failed\n  last seen: {seen.text}"
                )
            await context.status.live(_progress(seen, backoff.elapsed, passed_since, stability))
            await backoff.pause(at_least=seen.pause)

    def _hopeless(self, inputs: Values) -> str | None:
        """The failed step or gate that makes further waiting useless; None if there is none."""
        if self._failures.no_cluster is not None:
            return self._failures.no_cluster
        return next((f"gate {name}" for name in inputs.get("givesUpWith") or () if name in self._failed_gates), None)

    async def _failed(self, context: Context, inputs: Values, seen: Observation, how: str) -> GateFailed:
        self._failed_gates.add(context.name)
        if inputs.get("aborts") and self._failures.no_cluster is None:
            self._failures.no_cluster = f"gate {context.name}"
        return await _failure(context, inputs, seen, how)


def _passed(observed: str, waited: float) -> Values:
    return {"passedAt": time_now(), "observed": observed, "waitedSeconds": round(waited, 1)}


def _without_place(values: Values) -> Values:
    spec = values.get("spec")
    if not isinstance(spec, dict):
        return values
    return {**values, "spec": {key: value for key, value in spec.items() if key != "logDirectory"}}


def _progress(seen: Observation, elapsed: float, passed_since: float | None, stability: float) -> str:
    text = textwrap.shorten(seen.text, _LONGEST_STATUS, placeholder=" …")
    if passed_since is not None:
        return f"{text}; stable for {elapsed - passed_since:.0f} of {stability:g} s"
    return f"waiting for {text}, {elapsed:.0f} s"


async def _failure(context: Context, inputs: Values, seen: Observation, how: str) -> GateFailed:
    """Gather logs, and return the error: the gate, the last observation, the cause if known, and the place of the
    logs."""
    access = GateLogs.of_state(inputs["spec"])
    nodes = [node for node in access.nodes if not seen.waiting or node.name in seen.waiting]
    await context.status.remark(f"gathering logs of {', '.join(node.name for node in nodes) or 'no node'}")
    logs = await gather(access, context.name, nodes)
    parts = [f"gate {context.name} ({inputs['kind']}) {how}", f"last seen: {seen.text}"]
    if seen.fatal and seen.fatal not in seen.text:
        parts.append(f"reason: {seen.fatal}")
    causes = {name: cause for name, cause in logs.causes}
    parts += [f"cause on {name}: {cause.what} («{cause.line}»); {cause.remedy}" for name, cause in causes.items()]
    known = recognise(f"{seen.text}\n{seen.fatal or ''}")
    if not causes and known:
        parts.append(f"cause: {known.what}; {known.remedy}")
    if logs.directory:
        parts.append(f"logs: {logs.directory}")
    if logs.failures:
        parts.append("logs that could not be read: " + "; ".join(logs.failures))
    return GateFailed("\n  ".join(parts))
