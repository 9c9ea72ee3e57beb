"""bootstrap-complete: ConfigMap kube-system/bootstrap says `status: complete` (openshift/installer, create.go)."""

from __future__ import annotations

from provider.gates import Check, Observation, Spec
from provider.gates.https import Answer, OneObject, same_cluster
from provider.resource import Context

_PATH = "/api/v1/namespaces/kube-system/configmaps/bootstrap"


def open_check(context: Context, spec: Spec, old: Spec | None) -> Check | None:
    """Once complete, always complete: waits again for another cluster only."""
    return None if same_cluster(spec, old) else OneObject(spec, _PATH, evaluate)


def evaluate(answer: Answer) -> Observation:
    """The ConfigMap appears when the control plane has taken over."""
    if answer.status == 404:
        return Observation(passed=False, text="the API answers; kube-system/bootstrap is not there yet")
    if answer.problem:
        return Observation(passed=False, text=answer.problem)
    status = (answer.body.get("data") or {}).get("status", "")
    return Observation(passed=status == "complete", text=f"kube-system/bootstrap says {status or 'nothing'}")
