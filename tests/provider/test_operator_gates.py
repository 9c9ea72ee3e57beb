"""Gates of what comes when a cluster is complete: operators of OLM, and objects with conditions."""

from __future__ import annotations

from typing import Any

import pytest

from metal_ipi.provider.gates import Spec
from metal_ipi.provider.gates.cluster import OPENERS
from metal_ipi.provider.gates.https import Answer, Api
from metal_ipi.provider.gates.operator_lifecycle import OperatorInstalled, Seen, judged

_SPEC = {"name": "p", "source": "redhat-operators", "sourceNamespace": "openshift-marketplace"}
_CSV = {"metadata": {"name": "p.v1"}, "status": {"phase": "Succeeded"}}


def _subscription(state: str = "", *conditions: tuple[str, str, str]) -> dict[str, Any]:
    told = [{"type": kind, "status": "True", "reason": reason, "message": text} for kind, reason, text in conditions]
    return {"spec": _SPEC, "status": {"state": state, "conditions": told}}


def _plan(phase: str, **status: Any) -> dict[str, Any]:
    spec = {"clusterServiceVersionNames": ["p.v1"]}
    return {"metadata": {"name": "install-1", "namespace": "n"}, "spec": spec, "status": {"phase": phase, **status}}


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        (Seen(subscription=_subscription()), "OLM has not begun to process it"),
        (
            Seen(
                subscription=_subscription("", ("CatalogSourcesUnhealthy", "UnhealthyCatalogSourceFound", "not ready"))
            ),
            "CatalogSourcesUnhealthy: not ready; look at `oc -n openshift-marketplace get catalogsource`",
        ),
        (
            Seen(
                subscription=_subscription("", ("ResolutionFailed", "ErrorPreventedResolution", "connection refused"))
            ),
            "ResolutionFailed: connection refused",
        ),
        (
            Seen(subscription=_subscription("", ("BundleUnpackFailed", "BundleUnpackFailed", "pull denied"))),
            "BundleUnpackFailed: pull denied",
        ),
        (
            Seen(subscription=_subscription("UpgradePending"), plan=_plan("RequiresApproval")),
            "InstallPlan n install-1 (p.v1) is not approved: oc -n n patch installplan install-1",
        ),
        (
            Seen(
                subscription=_subscription("UpgradePending"),
                plan=_plan("Failed", conditions=[{"type": "Installed", "status": "False", "message": "no rights"}]),
            ),
            "InstallPlan n install-1 failed: no rights",
        ),
        (
            Seen(
                subscription=_subscription("UpgradePending"),
                plan=_plan("Complete"),
                csv={"metadata": {"name": "p.v1"}, "status": {"phase": "Failed", "reason": "X", "message": "no pods"}},
            ),
            "ClusterServiceVersion p.v1 is Failed (X: no pods)",
        ),
    ],
)
def test_what_stands_in_the_way_of_an_operator_is_told(seen: Seen, told: str) -> None:
    found = judged(seen, manual=False, elapsed=1000)
    assert (found.passed, found.fatal) == (False, None)
    assert told in found.text


def test_what_no_catalogue_has_ends_the_wait_after_a_while() -> None:
    seen = Seen(subscription=_subscription("", ("ResolutionFailed", "ConstraintsNotSatisfiable", "no package p")))
    assert judged(seen, manual=False, elapsed=10).fatal is None
    assert "correct package, channel" in str(judged(seen, manual=False, elapsed=500).fatal)


@pytest.mark.parametrize(
    ("state", "manual", "passes"),
    [("AtLatestKnown", False, True), ("UpgradePending", False, False), ("UpgradePending", True, True)],
)
def test_an_update_is_waited_for_unless_somebody_approves_it(state: str, manual: bool, passes: bool) -> None:
    assert judged(Seen(subscription=_subscription(state), csv=_CSV), manual=manual, elapsed=0).passed is passes


async def test_what_was_installed_before_must_stay_so_until_olm_has_seen_the_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = {"subscriptions": _subscription("AtLatestKnown"), "clusterserviceversions": _CSV}
    answers["subscriptions"]["status"]["currentCSV"] = "p.v1"

    async def get(self: Api, path: str = "") -> Answer:
        return Answer(status=200, body=answers[path.split("/")[-2]], problem="")

    monkeypatch.setattr(Api, "__init__", lambda self, spec: None)  # pyright: ignore[reportUnknownLambdaType]
    monkeypatch.setattr(Api, "get", get)
    check = OperatorInstalled({"namespace": "n", "subscription": "p"})
    assert not (await check.look(0)).passed
    assert (await check.look(30)).passed
    check = OperatorInstalled({"namespace": "n", "subscription": "p"})
    answers["subscriptions"]["status"]["state"] = "UpgradePending"
    assert not (await check.look(0)).passed
    answers["subscriptions"]["status"]["state"] = "AtLatestKnown"
    assert (await check.look(1)).passed, "it was seen to be installed"


def _object(generation: int, available: str) -> dict[str, Any]:
    condition = {"type": "Available", "status": available, "reason": "NoStorage", "message": "not configured"}
    return {"metadata": {"generation": 2}, "status": {"observedGeneration": generation, "conditions": [condition]}}


@pytest.mark.parametrize(
    ("body", "passes", "told"),
    [
        (_object(1, "True"), False, "configs/cluster: its operator has not processed it yet"),
        (_object(2, "False"), False, "Available is False (NoStorage: not configured)"),
        (_object(2, "True"), True, "configs/cluster: Available=True"),
    ],
)
async def test_what_an_operator_says_of_an_older_object_does_not_count(
    monkeypatch: pytest.MonkeyPatch, body: dict[str, Any], passes: bool, told: str
) -> None:
    async def get(self: Api, path: str = "") -> Answer:
        assert path == "/apis/x/v1/configs/cluster"
        return Answer(status=200, body=body, problem="")

    monkeypatch.setattr(Api, "__init__", lambda self, spec: None)  # pyright: ignore[reportUnknownLambdaType]
    monkeypatch.setattr(Api, "get", get)
    spec: Spec = {"path": "/apis/x/v1/configs/cluster", "conditions": ["Available=True"]}
    check = OPENERS["object-ready"](None, spec, None)  # pyright: ignore[reportArgumentType] - it needs no context
    assert check is not None
    seen = await check.look(0)
    assert (seen.passed, told in seen.text) == (passes, True)
