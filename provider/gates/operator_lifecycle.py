"""Gate `operator-installed`: an operator of the Operator Lifecycle Manager (OLM) runs.

OLM resolves a Subscription in its catalogues and creates an InstallPlan, which may need approval; from that it creates
a ClusterServiceVersion (CSV), which succeeds when the operator's Deployments are available. The gate reports the first
of these that is not as expected (operator-lifecycle-manager, pkg/controller/operators; operator-framework/api,
pkg/operators/v1alpha1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any

from metal_ipi.provider.gates import Check, Observation, Spec
from metal_ipi.provider.gates.https import Api, conditions_of
from metal_ipi.provider.resource import Context

_API = "/apis/operators.coreos.com/v1alpha1"
_HOPELESS_AFTER = 120.0
"""Seconds after which a package that a healthy catalogue does not have is a failure. Not earlier: other Subscriptions
of the namespace may be new too."""
_NOTICED_AFTER = 20.0
"""Seconds for which an operator that was installed before must stay installed. A Subscription does not show whether OLM
has processed its latest change, and OLM learns another channel's version only when it has asked the catalogue."""
_LATEST = "AtLatestKnown"
_PENDING = ("UpgradeAvailable", "UpgradePending")


@dataclass(frozen=True, kw_only=True)
class Seen:
    """The objects of a subscription in the API; None for those that do not exist."""

    subscription: Mapping[str, Any] | None = None
    plan: Mapping[str, Any] | None = None
    csv: Mapping[str, Any] | None = None


class OperatorInstalled(Check):
    """See `Check`."""

    def __init__(self, spec: Spec) -> None:
        self._api = Api(spec)
        self._space = f"{_API}/namespaces/{spec['namespace']}"
        self._name, self._manual = str(spec["subscription"]), bool(spec.get("manual"))
        self._before: bool | None = None
        """Whether it was installed at the first look."""

    async def look(self, elapsed: float) -> Observation:
        seen = await self._look(elapsed)
        self._before = seen.passed if self._before is None else self._before and seen.passed
        if self._before and elapsed < _NOTICED_AFTER:
            return replace(seen, passed=False, text=f"{seen.text}; OLM may not have processed the change yet")
        return seen

    async def _look(self, elapsed: float) -> Observation:
        answer = await self._api.get(f"{self._space}/subscriptions/{self._name}")
        if answer.status == HTTPStatus.NOT_FOUND:
            return Observation(
                passed=False, text=f"there is no Subscription {self._name}, or its kind does not exist yet"
            )
        if answer.problem:
            return Observation(passed=False, text=answer.problem)
        status = answer.body.get("status") or {}
        # status.currentCSV names a version before it exists; without an InstallPlan there is nothing of it.
        plan = await self._get("installplans", (status.get("installPlanRef") or {}).get("name"))
        csv = await self._get("clusterserviceversions", status.get("currentCSV") or status.get("installedCSV"))
        if self._manual and csv is None:
            csv = await self._get("clusterserviceversions", status.get("installedCSV"))
        return judged(Seen(subscription=answer.body, plan=plan, csv=csv), manual=self._manual, elapsed=elapsed)

    async def _get(self, plural: str, name: str | None) -> Mapping[str, Any] | None:
        if not name:
            return None
        answer = await self._api.get(f"{self._space}/{plural}/{name}")
        return None if answer.problem else answer.body


def judged(seen: Seen, *, manual: bool, elapsed: float) -> Observation:
    """Whether the operator is installed; otherwise what blocks it, and what to do."""
    subscription = seen.subscription or {}
    status: Mapping[str, Any] = subscription.get("status") or {}
    state, phase = str(status.get("state") or ""), _phase(seen.csv)
    name = str(((seen.csv or {}).get("metadata") or {}).get("name") or "")
    if phase == "Succeeded" and (state == _LATEST or (manual and state in _PENDING)):
        waits = ", and an update waits for its approval" if _phase(seen.plan) == "RequiresApproval" else ""
        return Observation(passed=True, text=f"{name} {phase}{waits}")
    if hopeless := _unresolved(subscription):
        fatal = hopeless if elapsed > _HOPELESS_AFTER else None
        return Observation(passed=False, text=hopeless, fatal=fatal)
    for text in (_catalog(subscription), _plan(seen.plan), _csv(seen.csv, name, phase)):
        if text:
            return Observation(passed=False, text=text)
    return Observation(passed=False, text=f"OLM has not begun to process it (state {state or 'not reported'})")


def _unresolved(subscription: Mapping[str, Any]) -> str | None:
    """The message if no catalogue has what is asked for, and nothing else is wrong; None otherwise."""
    failed = conditions_of(subscription).get("ResolutionFailed", {})
    if failed.get("status") != "True" or failed.get("reason") != "ConstraintsNotSatisfiable":
        return None
    return (
        f"OLM cannot resolve it: {failed.get('message')}; correct package, channel, startingCsv or catalogue"
        " (`oc get packagemanifests`)"
    )


def _catalog(subscription: Mapping[str, Any]) -> str | None:
    spec, conditions = subscription.get("spec") or {}, conditions_of(subscription)
    for kind in ("CatalogSourcesUnhealthy", "ResolutionFailed", "BundleUnpackFailed"):
        found = conditions.get(kind, {})
        if found.get("status") == "True" and found.get("reason") != "AllCatalogSourcesHealthy":
            source = f"{spec.get('sourceNamespace')}/{spec.get('source')}"
            why = found.get("message") or found.get("reason")
            return f"{kind}: {why}; look at `oc -n {spec.get('sourceNamespace')} get catalogsource`, for {source}"
    return None


def _plan(plan: Mapping[str, Any] | None) -> str | None:
    if plan is None:
        return None
    meta, phase = plan.get("metadata") or {}, _phase(plan)
    where = f"{meta.get('namespace')} {meta.get('name')}"
    if phase == "RequiresApproval":
        names = ", ".join((plan.get("spec") or {}).get("clusterServiceVersionNames") or ())
        return (
            f"InstallPlan {where} ({names}) is not approved: oc -n {meta.get('namespace')} patch installplan"
            f""" {meta.get("name")} --type merge -p '{{"spec":{{"approved":true}}}}'"""
        )
    if phase == "Failed":
        installed = conditions_of(plan).get("Installed", {})
        return f"InstallPlan {where} failed: {installed.get('message') or (plan.get('status') or {}).get('message')}"
    return None if phase == "Complete" else f"InstallPlan {where} is {phase or 'new'}"


def _csv(csv: Mapping[str, Any] | None, name: str, phase: str) -> str | None:
    if csv is None:
        return None
    status = csv.get("status") or {}
    why = ": ".join(str(status[part]) for part in ("reason", "message") if status.get(part))
    return f"ClusterServiceVersion {name} is {phase or 'new'}{f' ({why})' if why else ''}"


def _phase(item: Mapping[str, Any] | None) -> str:
    return str(((item or {}).get("status") or {}).get("phase") or "")


def open_check(context: Context, spec: Spec, old: Spec | None) -> Check:
    return OperatorInstalled(spec)
