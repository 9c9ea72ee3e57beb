"""bootstrap-complete: ConfigMap kube-system/bootstrap says `status: complete` (openshift/installer, create.go).

Until then the control plane joins: the certificate requests of its machines are approved, and no others.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from provider.gates import Check, Observation, Spec
from provider.gates.approvals import Approver
from provider.gates.https import Answer, Api, same_cluster
from provider.resource import Context

_PATH = "/api/v1/namespaces/kube-system/configmaps/bootstrap"


def open_check(context: Context, spec: Spec, old: Spec | None) -> Check | None:
    """Once complete, always complete: waits again for another cluster only."""
    return None if same_cluster(spec, old) else BootstrapComplete(spec)


class BootstrapComplete:
    """See `Check`."""

    def __init__(self, spec: Spec) -> None:
        self._api = Api(spec)
        self._approver = Approver(self._api, spec)

    async def look(self, elapsed: float) -> Observation:
        answer, approvals = await asyncio.gather(self._api.get(_PATH), self._approver.look())
        seen = evaluate(answer)
        if answer.status == 0:
            return seen  # nobody answers; that is said once
        return replace(seen, text="; ".join([seen.text, *approvals.notes]))


def evaluate(answer: Answer) -> Observation:
    """The ConfigMap appears when the control plane has taken over."""
    if answer.status == 404:
        return Observation(passed=False, text="the API answers; kube-system/bootstrap is not there yet")
    if answer.problem:
        return Observation(passed=False, text=answer.problem)
    status = (answer.body.get("data") or {}).get("status", "")
    return Observation(passed=status == "complete", text=f"kube-system/bootstrap says {status or 'nothing'}")
