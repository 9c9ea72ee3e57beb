"""The gates that ask a cluster's API; they wait for the same as openshift-install (create.go, waitfor.go).

api-answers           an HTTPS URL answers 2xx with a certificate of the cluster's CA
bootstrap-complete    ConfigMap kube-system/bootstrap has `status: complete`
nodes-ready           every named node is Ready, and etcd has the expected number of members
install-complete      ClusterVersion is Available, not Failing and not Progressing
object-ready          an object has the named conditions, for its current generation

While bootstrap or nodes are waited for, the certificate requests of the named nodes are approved, and no others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from metal_ipi.provider import backoff
from metal_ipi.provider.gates import Check, Observation, Opener, Spec, etcd_operator
from metal_ipi.provider.gates.approvals import Approvals, Approver
from metal_ipi.provider.gates.https import Answer, Api, conditions_of
from metal_ipi.provider.resource import Context

_BOOTSTRAP = "/api/v1/namespaces/kube-system/configmaps/bootstrap"
_NODES = "/api/v1/nodes"
_VERSION = "/apis/config.openshift.io/v1/clusterversions/version"
_PAUSE_BY_LOOK = 2.0
_LONGEST_BY_LOOK = 3.0
"""Where it takes long to list all nodes and certificate requests, as in a large cluster or at an API with much to do,
the pause is twice as long, up to three seconds."""


def _once(make: Callable[[Spec], Check]) -> Opener:
    """A gate that passed stays passed for the same cluster: other nodes or log directories do not make it wait
    again."""

    def open_check(context: Context, spec: Spec, old: Spec | None) -> Check | None:
        return None if _same_cluster(spec, old) else make(spec)

    return open_check


def _same_cluster(spec: Spec, old: Spec | None) -> bool:
    return old is not None and old.get("url") == spec.get("url") and old.get("caPem") == spec.get("caPem")


class OneObject(Check):
    """Looks at one object of the API; see `Check`."""

    def __init__(self, spec: Spec, path: str, evaluate: Callable[[Answer], Observation]) -> None:
        self._api, self._path, self._evaluate = Api(spec), path, evaluate

    async def look(self, elapsed: float) -> Observation:
        return self._evaluate(await self._api.get(self._path))


def _api_answers(spec: Spec) -> Check:
    def evaluate(answer: Answer) -> Observation:
        text = f"{spec['url']}: {answer.problem or f'HTTP {answer.status}'}"
        return Observation(passed=not answer.problem, text=text)

    return OneObject(spec, "", evaluate)


def _version(answer: Answer) -> Observation:
    """Evaluate the three conditions. An absent Failing means that it does not fail."""
    if answer.status == 404:
        return Observation(passed=False, text="the API answers; there is no ClusterVersion yet")
    if answer.problem:
        return Observation(passed=False, text=answer.problem)
    conditions = conditions_of(answer.body)
    kinds = ("Available", "Failing", "Progressing")
    status = {kind: str(conditions.get(kind, {}).get("status", "Unknown")) for kind in kinds}
    passed = status["Available"] == "True" and status["Failing"] != "True" and status["Progressing"] == "False"
    shown = ", ".join(f"{kind}={value}" for kind, value in status.items())
    wrong = "Failing" if status["Failing"] == "True" else "Progressing"
    message = "" if passed else str(conditions.get(wrong, {}).get("message") or "")
    return Observation(passed=passed, text=f"ClusterVersion {shown}{': ' + message if message else ''}")


class BootstrapComplete(Check):
    """See `Check`."""

    def __init__(self, spec: Spec) -> None:
        self._api = Api(spec)
        self._approver = Approver(self._api, spec)

    async def look(self, elapsed: float) -> Observation:
        answer, approvals = await asyncio.gather(self._api.get(_BOOTSTRAP), self._approver.look())
        seen = _bootstrap(answer)
        if answer.status == 0:
            return seen  # the API does not answer; one message is enough
        return replace(seen, text="; ".join([seen.text, *approvals.notes]))


def _object_ready(context: Context, spec: Spec, old: Spec | None) -> Check:
    return OneObject(spec, str(spec["path"]), lambda answer: _ready(answer, spec["path"], spec["conditions"]))


def _ready(answer: Answer, path: str, wanted: Sequence[str]) -> Observation:
    name = "/".join(path.split("/")[-2:])
    if answer.problem:
        return Observation(passed=False, text=f"{name}: {answer.problem}")
    meta, status = answer.body.get("metadata") or {}, answer.body.get("status") or {}
    if (status.get("observedGeneration") or 0) < meta.get("generation", 0):
        return Observation(passed=False, text=f"{name}: its operator has not processed it yet")
    conditions = conditions_of(answer.body)
    for each in wanted:
        kind, _, value = each.partition("=")
        found = conditions.get(kind, {})
        if found.get("status") != value:
            why = ": ".join(str(found[part]) for part in ("reason", "message") if found.get(part))
            told = f"{name}: {kind} is {found.get('status', 'not told')}{f' ({why})' if why else ''}"
            return Observation(passed=False, text=told)
    return Observation(passed=True, text=f"{name}: {', '.join(wanted)}")


def _bootstrap(answer: Answer) -> Observation:
    """The ConfigMap appears when the control plane has taken over."""
    if answer.status == 404:
        return Observation(passed=False, text="the API answers; kube-system/bootstrap is not there yet")
    if answer.problem:
        return Observation(passed=False, text=answer.problem)
    status = (answer.body.get("data") or {}).get("status", "")
    return Observation(passed=status == "complete", text=f"kube-system/bootstrap says {status or 'nothing'}")


def _nodes_ready(context: Context, spec: Spec, old: Spec | None) -> Check | None:
    """Only nodes that are new, or that are on another machine now, are waited for."""
    passed = dict[str, str]()
    if old is not None and _same_cluster(spec, old):
        machines = _machines(old)
        passed = {name: machines.get(name, "") for name in old.get("names") or ()}
    machines = _machines(spec)
    pending = [name for name in spec["names"] if passed.get(name) != machines.get(name, "")]
    return NodesReady(spec, pending) if pending else None


def _machines(spec: Spec) -> dict[str, str]:
    """Node name → the platform's id of its machine; empty if the specification does not have it."""
    return {str(node["name"]): str(node.get("machineId") or "") for node in spec.get("nodes") or ()}


class NodesReady(Check):
    """See `Check`."""

    def __init__(self, spec: Spec, pending: Sequence[str]) -> None:
        self._api = Api(spec)
        self._pending = tuple(pending)
        self._addresses: Mapping[str, Sequence[str]] = spec.get("addresses") or {}
        self._etcd_members = int(spec.get("etcdMembers") or 0)
        self._approver = Approver(self._api, spec)

    async def look(self, elapsed: float) -> Observation:
        began = backoff.clock.now()
        answer, approvals = await asyncio.gather(self._api.get(_NODES), self._approver.look())
        took = backoff.clock.now() - began if answer.status else 0.0  # no answer, no long list
        seen = replace(self._evaluate(answer, approvals), pause=min(_PAUSE_BY_LOOK * took, _LONGEST_BY_LOOK))
        if not seen.passed or not self._etcd_members:
            return seen
        operator = await self._api.get(etcd_operator.OPERATOR)
        if operator.status == HTTPStatus.NOT_FOUND:
            return replace(seen, text=f"{seen.text}; this cluster has no etcd operator, which would report members")
        trouble = operator.problem or etcd_operator.trouble(operator.body, members=self._etcd_members)
        return replace(
            seen, passed=not trouble, text=f"etcd: {trouble}" if trouble else f"{seen.text}; etcd has all its members"
        )

    def _evaluate(self, answer: Answer, approvals: Approvals) -> Observation:
        """Evaluate which of the nodes are not Ready, and why."""
        names = self._pending
        if answer.problem:
            return Observation(passed=False, text=answer.problem, waiting=names)
        nodes = {str(item["metadata"]["name"]): item for item in answer.body.get("items") or []}
        seen = {name: _not_ready(nodes.get(name), self._addresses.get(name, ())) for name in names}
        missing = {name: why for name, why in seen.items() if why}
        text = ", ".join(f"{name} ({why})" for name, why in missing.items()) or f"Ready: {', '.join(names)}"
        return Observation(passed=not missing, text="; ".join([text, *approvals.notes]), waiting=tuple(missing))


def _not_ready(node: Mapping[str, Any] | None, addresses: Sequence[str]) -> str | None:
    if node is None:
        return "has not joined"
    status: Mapping[str, Any] = node.get("status") or {}
    # A replaced machine finds the Node object of its predecessor with the same name, which stays Ready until the API
    # server misses the kubelet.
    internal = {str(item["address"]) for item in status.get("addresses") or [] if item.get("type") == "InternalIP"}
    if addresses and internal and not internal & set(addresses):
        return f"the node of this name still belongs to another machine, at {', '.join(sorted(internal))}"
    ipv6 = {address for address in addresses if ":" in address}
    if ipv6 and not ipv6 & internal:
        return f"it has no address {', '.join(ipv6)} yet, only {', '.join(sorted(internal)) or 'none at all'}"
    condition = conditions_of(node).get("Ready")
    if condition is None:
        return "has no Ready condition"
    ready = str(condition.get("status"))
    return None if ready == "True" else f"Ready={ready} {condition.get('message') or ''}".strip()


OPENERS: Mapping[str, Opener] = {
    "api-answers": _once(_api_answers),
    "bootstrap-complete": _once(BootstrapComplete),
    "nodes-ready": _nodes_ready,
    "object-ready": _object_ready,
    "install-complete": _once(lambda spec: OneObject(spec, _VERSION, _version)),
}
