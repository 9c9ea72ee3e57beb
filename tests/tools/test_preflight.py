"""What `make preflight` asks the provider, beyond the settings: what the stack's state tells."""

from __future__ import annotations

import pytest

from metal_ipi.provider import configuration
from metal_ipi.provider.preflight.plan import Plan
from tests.stacks.answers import settings
from tools import preflight
from tools.state import Deployment


def test_the_run_and_whether_it_has_passed_before_are_the_states_to_tell() -> None:
    new = preflight.request(settings("rack7"), "rack7", Deployment(document={}))
    assert "run" not in new["inputs"] and new["again"] is False
    resources = [
        {"type": "metal-ipi:index:ClusterKeys", "id": "16hexdigits"},
        {"type": "metal-ipi:index:Preflight", "id": "preflight/rack7"},
    ]
    up = preflight.request(settings("rack7"), "rack7", Deployment(document={"deployment": {"resources": resources}}))
    assert up["inputs"] == {**new["inputs"], "run": "16hexdigits"} and up["again"] is True


@pytest.mark.parametrize("stack", ["da11", "rack7", "ironic7", "sno1"])
def test_the_provider_takes_what_it_is_asked_with(stack: str) -> None:
    asked = preflight.request(settings(stack), stack, Deployment(document={}))
    found = [*configuration.parse(asked["config"])[1], *Plan.problems(asked["inputs"])]
    assert [problem.path for problem in found] == ["artifacts.privateKey"], "which is none in tests"


def test_a_pool_is_checked_by_itself_as_part_of_its_clusters_installation() -> None:
    keys = {"type": "metal-ipi:index:ClusterKeys", "id": "16hexdigits"}
    cluster = Deployment(document={"deployment": {"resources": [keys]}})
    asked = preflight.request(settings("pooled", pool="gpu"), "pooled-gpu", Deployment(document={}), cluster)["inputs"]
    assert [order["hostnames"] for order in asked["orders"]["machines"]] == [["pooled-worker-20", "pooled-worker-21"]]
    assert asked["run"] == "16hexdigits" and "installer" not in asked
    whole = preflight.request(settings("pooled"), "pooled", cluster)["inputs"]["orders"]["machines"]
    assert sum(len(order["hostnames"]) for order in whole) == 6
