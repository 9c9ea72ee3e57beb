"""The whole program against mocks that fail closed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stacks.program import main
from stacks.settings import SettingsError
from tests.mocks import Recorder, plain, run
from tests.stacks.answers import ANSWERS, CALLS, SEED, rehearsed, settings


def test_a_cluster_is_composed_as_designed() -> None:
    recorder = Recorder(ANSWERS)
    outputs = run(main, recorder, settings())
    assert outputs["cluster"] == {"name": "da11", "domain": "da11.metal.example.com", "version": "4.21.3"}
    assert outputs["api"] == {"url": "https://api.da11.metal.example.com:6443"}
    assert outputs["bootstrap"] == {"present": False}
    assert [node["name"].split(".")[0] for node in outputs["nodes"]] == [
        "da11-control-plane-0",
        "da11-control-plane-1",
        "da11-control-plane-2",
        "da11-worker-0",
        "da11-worker-1",
        "da11-worker-2",
    ]
    assert len(recorder.of("equinix-metal:index/device:Device")) == 6


@pytest.mark.parametrize(("stack", "most"), [("lab", 3), ("da11", 4)])
def test_a_worker_is_few_resources(stack: str, most: int) -> None:
    few, many = Recorder(ANSWERS), Recorder(ANSWERS)
    run(main, few, settings(stack, workers={"count": 2}), stack=stack)
    run(main, many, settings(stack, workers={"count": 12}), stack=stack)
    assert (len(many.resources) - len(few.resources)) / 10 <= most


def test_userdata_holds_pointers_and_no_secret() -> None:
    recorder = Recorder(ANSWERS)
    run(main, recorder, settings())
    machines = [*recorder.of("equinix-metal:index/device:Device"), recorder.one("da11-bootstrap")]
    texts = [plain(machine.inputs["userData"]) for machine in machines]
    for text in texts:
        assert "PRIVATE KEY" not in text and "swordfish" not in text and SEED not in text
        config = json.loads(text)["ignition"]["config"]
        assert config["merge"][-1]["verification"]["hash"].startswith("sha512-")


def test_a_rehearsal_changes_nothing() -> None:
    recorder = Recorder(ANSWERS)
    with pytest.raises(SettingsError) as caught:
        run(main, recorder, rehearsed())
    assert [problem.path for problem in caught.value.problems] == ["metal-ipi:rehearsal"]
    assert all(args.typ == "pulumi:pulumi:Stack" for args in recorder.resources)
    run(main, Recorder(ANSWERS), rehearsed(), preview=True)


_STACKS = {path.name.split(".")[1] for path in (Path(__file__).parents[2] / "stacks").glob("Pulumi.*.yaml")}
# sno1 wants other assets: tests/stacks/test_in_place.py.


@pytest.mark.parametrize("stack", sorted(_STACKS - {"sno1"}))
def test_every_committed_stack_can_be_rehearsed(stack: str) -> None:
    recorder = Recorder(ANSWERS, CALLS)
    run(main, recorder, rehearsed(stack), stack=stack, preview=True)
    assert recorder.one("install-complete")


def test_problems_are_reported_before_any_resource() -> None:
    recorder = Recorder(ANSWERS)
    with pytest.raises(SettingsError) as caught:
        run(main, recorder, settings(clusterName="Bad_Name", workers={"cuont": 1}))
    assert [problem.path for problem in caught.value.problems] == ["metal-ipi:clusterName", "metal-ipi:workers.cuont"]
    assert all(args.typ == "pulumi:pulumi:Stack" for args in recorder.resources)
