"""install-complete: ClusterVersion is Available, not Failing and not Progressing (openshift/installer, waitfor.go)."""

from __future__ import annotations

from typing import Any

from provider.gates import Check, Observation, Spec
from provider.gates.https import Answer, OneObject, same_cluster
from provider.resource import Context

_PATH = "/apis/config.openshift.io/v1/clusterversions/version"


def open_check(context: Context, spec: Spec, old: Spec | None) -> Check | None:
    """Waits again for another cluster only."""
    return None if same_cluster(spec, old) else OneObject(spec, _PATH, evaluate)


def evaluate(answer: Answer) -> Observation:
    """The three conditions; an absent Failing means it does not fail."""
    if answer.status == 404:
        return Observation(passed=False, text="the API answers; there is no ClusterVersion yet")
    if answer.problem:
        return Observation(passed=False, text=answer.problem)
    conditions: list[dict[str, Any]] = (answer.body.get("status") or {}).get("conditions") or []
    by_type = {str(item.get("type")): item for item in conditions}

    def status(type_: str) -> str:
        return str(by_type.get(type_, {}).get("status", "Unknown"))

    passed = status("Available") == "True" and status("Failing") != "True" and status("Progressing") == "False"
    shown = ", ".join(f"{type_}={status(type_)}" for type_ in ("Available", "Failing", "Progressing"))
    wrong = "Failing" if status("Failing") == "True" else "Progressing"
    message = "" if passed else str(by_type.get(wrong, {}).get("message") or "")
    return Observation(passed=passed, text=f"ClusterVersion {shown}{': ' + message if message else ''}")
