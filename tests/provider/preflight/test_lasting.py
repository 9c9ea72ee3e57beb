"""What a cluster keeps as it was ordered: other projects and other ends are refused before anything is changed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from metal_ipi.provider.errors import InvalidInputs
from tests.provider.harness import Harness, Resource
from tests.provider.metal_answers import ORGANIZATION, PROJECT
from tests.provider.preflight.asking import inputs

OTHER = PROJECT.replace("52", "53", 1)
OWN: dict[str, Any] = {"projectId": None, "projectName": "new", "organizationId": ORGANIZATION}
_NO_END = r"without an end \(no platform\.lifetimeHours\)"


def _changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What the engine is told, of an installed stack, in previews and in an `up` before it does anything."""
    it = Resource(Harness(), "Preflight", id="preflight/t", state=inputs(**before))
    return asyncio.run(it.changes(inputs(**after)))


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ({}, {"lifetimeHours": 12}, rf"ordered {_NO_END}, but the settings now say with platform\.lifetimeHours 12"),
        ({"lifetimeHours": 12}, {}, rf"ordered with platform\.lifetimeHours 12, but the settings now say {_NO_END}"),
        (
            {"lifetimeHours": 12},
            {"lifetimeHours": 24},
            r"lifetimeHours 12, but the settings now say .*lifetimeHours 24: the platform",
        ),
        (
            {},
            {"projectId": OTHER},
            rf"\(platform\.projectId {PROJECT}\), but the settings now say .*{OTHER}\): existing resources would",
        ),
        ({}, OWN, rf"projectId {PROJECT}\), but the settings now say in a project of its own \(platform\.projectName"),
        (
            OWN,
            {},
            rf"of its own \(platform\.projectName.*but the .*that exists \(platform\.projectId {PROJECT}",
        ),
        (
            OWN,
            {**OWN, "organizationId": OTHER},
            rf"Id {ORGANIZATION}\), but the settings now say .*platform\.organizationId {OTHER}",
        ),
        (
            {},
            {"projectId": None, "orders": None},
            r"ordered in a project .*but the settings now say on another platform",
        ),
    ],
)
def test_what_was_ordered_stays(before: dict[str, Any], after: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidInputs, match=rf"(?s){told}.*\nRestore the former setting.*`make down` first"):
        _changes(before, after)


def test_all_that_must_not_change_is_told_at_once() -> None:
    with pytest.raises(InvalidInputs, match=rf"(?s)platform.projectId {OTHER}.*\n.*lifetimeHours 12: "):
        _changes({}, {"projectId": OTHER, "lifetimeHours": 12})


def test_what_may_change() -> None:
    assert _changes({"lifetimeHours": 12}, {"lifetimeHours": 12.0}) == []
    assert _changes(OWN, {**OWN, "projectName": "renamed"}) == ["projectName"], "the provider renames it"
    rack = {"projectId": None, "orders": None}
    assert _changes(rack, {**rack, "zones": ["facility.test"]}) == ["zones"]


def test_a_stack_of_before_there_were_runs_is_not_accused_of_what_nobody_knows() -> None:
    assert _changes({"run": None}, {"lifetimeHours": 12}) == ["lifetimeHours", "run"]
