"""Which machines may be made anew."""

from __future__ import annotations

from typing import Any

import pytest

from tools import replacement
from tools.errors import StackError
from tools.state import DEVICE, EPHEMERAL, REMOVAL, Deployment


def state(*names: str, formed: bool = True) -> Deployment:
    resources: list[dict[str, Any]] = [
        {"urn": f"urn:pulumi:t::metal-ipi::{DEVICE}::{name}-device", "type": DEVICE, "id": name} for name in names
    ]
    resources.append({"urn": f"urn:pulumi:t::metal-ipi::{EPHEMERAL}::c-bootstrap", "type": EPHEMERAL, "id": "lease"})
    if formed:
        resources.append({"urn": f"urn:pulumi:t::metal-ipi::{REMOVAL}::removed", "type": REMOVAL, "id": "r"})
    return Deployment(document={"deployment": {"resources": resources}})


MASTERS = tuple(f"c-control-plane-{n}" for n in range(3))


def test_workers_and_one_control_plane_machine() -> None:
    found = replacement.urns(state(*MASTERS, "c-worker-0", "c-worker-1"), "t", ["c-worker-0", "c-worker-1", MASTERS[2]])
    assert [urn.rpartition("::")[2] for urn in found] == [
        "c-worker-0-device", "c-worker-1-device", "c-control-plane-2-device",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("members", "asked", "told"),
    [
        (MASTERS, MASTERS[:2], r"c-control-plane-0, c-control-plane-1 cannot .* in one run[\s\S]*without 1 of them"),
        (MASTERS[:1], MASTERS[:1], r"c-control-plane-0 cannot[\s\S]*a single node is installed anew"),
        (MASTERS, ("c-bootstrap",), r"c-bootstrap cannot be replaced any more[\s\S]*the cluster is formed"),
        (MASTERS, ("c-worker-7",), r"there is no machine c-worker-7[\s\S]*has: c-bootstrap, c-control-plane-0,"),
    ],
)
def test_what_must_stay(members: tuple[str, ...], asked: tuple[str, ...], told: str) -> None:
    with pytest.raises(StackError, match=told):
        replacement.urns(state(*members), "t", asked)


def test_before_the_cluster_is_formed_there_is_no_quorum_to_keep() -> None:
    assert len(replacement.urns(state(*MASTERS, formed=False), "t", [*MASTERS, "c-bootstrap"])) == 4
