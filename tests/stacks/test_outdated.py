"""Settings as earlier versions took them: what they mean now, and the warning that says so."""

from __future__ import annotations

import copy
from typing import Any

import pulumi
import pytest

from metal_ipi.stacks.outdated import current
from metal_ipi.stacks.platforms.equinix_metal.settings import EquinixMetal
from metal_ipi.stacks.program import main
from metal_ipi.stacks.settings import parse
from tests.mocks import Recorder, config_text, run
from tests.stacks.answers import ANSWERS, CALLS, rehearsed, stack_file

_LAB = stack_file("lab")
_WORKERS = "platform.reservations.workers"


def _without(tree: dict[str, Any], *paths: str) -> dict[str, Any]:
    tree = copy.deepcopy(tree)
    for path in paths:
        *sections, name = path.split(".")
        where = tree
        for section in sections:
            where = where[section]
        del where[name]
    return tree


@pytest.mark.parametrize(
    ("tree", "becomes", "told"),
    [
        (
            {"platform": {"reservations": {"bootstrap": "a", "workers": ["b"]}}},
            {"platform": {"reservations": {"bootstrap": "a", "worker": ["b"]}}},
            [f"metal-ipi:{_WORKERS} is called metal-ipi:platform.reservations.worker now"],
        ),
        (_without(_LAB, "protect"), _LAB, ["add `protect: false`"]),
        (_without(_LAB, "boot.diskless"), _LAB, ["add `boot.diskless: true`"]),
        (_LAB, _LAB, []),
        (stack_file("rack7"), stack_file("rack7"), []),
        (stack_file("da11"), stack_file("da11"), []),
        ({"lab": 1, "boot": [], "platform": "x"}, {"lab": 1, "boot": [], "platform": "x"}, []),
    ],
)
def test_what_a_setting_of_before_means(tree: dict[str, Any], becomes: dict[str, Any], told: list[str]) -> None:
    before = copy.deepcopy(tree)
    found, warnings = current(tree)
    assert found == becomes and tree == before
    assert len(warnings) == len(told) and all(text in warning for text, warning in zip(told, warnings, strict=True))


def test_both_names_at_once_are_a_problem_that_is_told() -> None:
    tree = {"platform": {"reservations": {"worker": [], "workers": ["b"]}}}
    assert current(tree) == (tree, [])  # and there is no setting `workers`, as validation says


def test_a_preview_warns_of_the_old_name_and_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", told.append)
    tree = stack_file("reserved")
    reservations = tree["platform"]["reservations"]
    reservations["workers"] = reservations.pop("worker")
    values = config_text({**tree, "rehearsal": True})
    platform = parse(values, "reserved").platform
    assert platform == parse(rehearsed("reserved"), "reserved").platform
    assert isinstance(platform, EquinixMetal) and platform.reservations.worker == tuple(reservations["workers"])
    run(main, Recorder(ANSWERS, CALLS), values, stack="reserved", preview=True)
    assert [text for text in told if _WORKERS in text] == told and len(told) == 1
