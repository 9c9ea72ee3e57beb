"""A whole cluster as a component of a Python program."""

from __future__ import annotations

from pathlib import Path

import pulumi
import pytest

from metal_ipi.cluster import Cluster, ClusterArgs
from metal_ipi.stacks.problems import SettingsError
from tests.metal_ipi.tree import tree
from tests.mocks import Recorder, run
from tests.stacks.answers import ANSWERS

_ANSWERS = {**ANSWERS, "metal-ipi:index:Cluster": lambda args: {}}  # pyright: ignore
_GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.mark.parametrize("stack", ["da11", "lab", "rack7"])
def test_it_is_what_the_stack_has_below_one_component(stack: str) -> None:
    recorder = Recorder(_ANSWERS)

    def program() -> None:
        made = Cluster("metal", ClusterArgs(settings=tree(stack)))
        pulumi.export("api", made.api)
        pulumi.export("kubeconfig", made.kubeconfig)

    outputs = run(program, recorder, {}, stack=stack)
    urns = {recorder.urn(args.name) for args in recorder.resources}
    below = {f"metal-ipi:index:Cluster${urn}" for urn in (_GOLDEN / f"urns-{stack}.txt").read_text().split()}
    assert urns == below | {"metal-ipi:index:Cluster::metal"}
    assert outputs["api"]["url"].startswith("https://api.") and "certificate-authority-data" in outputs["kubeconfig"]


def test_paths_begin_where_it_is_told(tmp_path: Path) -> None:
    recorder = Recorder(_ANSWERS)
    settings = tree()
    (tmp_path / "stream.json").write_text(Path(settings["boot"]["streamFile"]).read_text())
    settings["boot"]["streamFile"] = "stream.json"
    run(lambda: _made(settings, tmp_path), recorder, {}, stack="ny5")
    gate = recorder.one("install-complete").inputs["spec"]
    assert str(tmp_path / ".state/logs/ny5") in str(gate)


def _made(settings: dict[str, object], directory: Path) -> None:
    Cluster("metal", ClusterArgs(settings=settings, directory=directory))


def test_problems_are_told_before_anything_is_registered() -> None:
    recorder = Recorder(_ANSWERS)
    with pytest.raises(SettingsError) as caught:
        run(lambda: _made(tree(clusterName="Bad_Name"), Path()), recorder, {})
    assert [problem.path for problem in caught.value.problems] == ["metal-ipi:clusterName"]
    assert all(args.typ == "pulumi:pulumi:Stack" for args in recorder.resources)
