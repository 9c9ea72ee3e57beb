"""The page of all clusters: stack files, what hubs tell, and what is wrong with the two together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from tests.tools.svg_geometry import all_text, muddled
from tools import fleet
from tools.errors import StackError
from tools.fleet import Cluster
from tools.layout import ROOT
from tools.pictures import fleet as picture

_DECLARED = "OpenShiftControlPlane/AsDeclared"


def _condition(status: str, reason: str, message: str = "") -> dict[str, str]:
    return {"status": status, "reason": reason, "message": message, "lastTransitionTime": "2026-11-27T10:00:00Z"}


def _told(name: str = "east1", *, paused: bool = False, deleted: bool = False, **conditions: Any) -> dict[str, Any]:
    said = {"Cluster/Available": _condition("True", "Available"), _DECLARED: _condition("True", "Done")}
    return {
        "namespace": name,
        "name": name,
        "domain": f"{name}.example.com",
        "platform": "redfish",
        "version": "v4.19.3",
        "paused": paused,
        "deleted": deleted,
        "machines": {
            "control-plane": {"there": 3, "available": 3, "leaving": 0},
            "worker": {"there": 2, "available": 1, "leaving": 1},
        },
        "conditions": conditions.get("conditions", said),
    }


@pytest.mark.parametrize(
    ("found", "status", "told"),
    [
        (_told(), "as declared", ""),
        (_told(paused=True), "paused", ""),
        (_told(deleted=True), "being deleted", ""),
        (_told(conditions={}), "under way", "no condition yet"),
        (
            _told(conditions={_DECLARED: _condition("False", "NotYet", "not done: worker-checks-0")}),
            "under way",
            f"{_DECLARED}: NotYet: not done: worker-checks-0",
        ),
        (
            _told(
                conditions={
                    _DECLARED: _condition("False", "NotYet"),
                    "MetalIpiCluster/Ready": _condition("False", "SettingsRefused", "metal-ipi:platform.prefix = 77"),
                }
            ),
            "failed",
            "MetalIpiCluster/Ready: SettingsRefused: metal-ipi:platform.prefix = 77",
        ),
    ],
    ids=["well", "paused", "deleted", "new", "under way", "refused"],
)
def test_a_clusters_status_is_what_its_conditions_say(found: dict[str, Any], status: str, told: str) -> None:
    cluster = fleet.of_hub(found, "east")
    assert (cluster.status, cluster.told) == (status, told)
    assert cluster.machines == "3/3 control-plane + 1/2 worker" and cluster.version == "4.19.3"


def test_stack_files_and_hubs_are_put_together() -> None:
    described = [
        Cluster(domain="a.test", stack="a", status="not asked"),
        Cluster(domain="b.test", stack="b", status="not asked"),
        Cluster(domain="c.test", stack="c", status="not on a hub", told="12 resources in this checkout's state"),
        Cluster(domain="twice.test", stack="twice", status="not asked"),
    ]
    told = {
        "east": [Cluster(domain=name, hub="east", status="as declared") for name in ("a.test", "c.test", "twice.test")],
        "west": [
            Cluster(domain="twice.test", hub="west", status="under way", told="Working"),
            Cluster(domain="stranger.test", hub="west", status="as declared"),
        ],
    }
    found = {(each.domain, each.hub): (each.stack, each.status, each.told) for each in fleet.merged(described, told)}
    assert found == {
        ("a.test", "east"): ("a", "as declared", ""),
        ("b.test", ""): ("b", "not asked", "none of the given hubs has it"),
        ("c.test", "east"): ("c", "failed", "the file of stack c names no hub (clusterApi)"),
        ("twice.test", "east"): ("twice", "failed", "hub west has it, too: remove it from one of them"),
        ("twice.test", "west"): ("twice", "failed", "hub east has it, too: remove it from one of them; Working"),
        ("stranger.test", "west"): ("", "as declared", "it has no stack file here"),
    }
    assert fleet.merged(described, {})[0].told == "", "no hub was asked"


def test_a_page_has_every_stack_file_and_tells_which_are_wrong(tmp_path: Path) -> None:
    (tmp_path / "stacks").mkdir()
    for name in ("rack7", "capi7", "hub"):
        text = (ROOT / "stacks" / f"Pulumi.{name}.yaml").read_text()
        (tmp_path / "stacks" / f"Pulumi.{name}.yaml").write_text(text)
    (tmp_path / "stacks" / "Pulumi.wrong.yaml").write_text("config:\n  metal-ipi:clusterName: '|<b>'\n")
    (tmp_path / "metal_ipi").symlink_to(ROOT / "metal_ipi")
    page, counted = fleet.write(tmp_path, [], tmp_path / "fleet")
    assert counted == "3 clusters: 1 not asked, 1 not on a hub, 1 failed"
    text = page.read_text()
    assert r"| capi7.facility.test | capi7 |  | redfish | 4.21.0-lab | 3 control-plane + 1 worker | not asked |" in text
    assert r"metal-ipi:clusterName = \|\<b\>" in text and "<b>" not in MarkdownIt().enable("table").render(text)
    drawn = (tmp_path / "fleet" / "fleet.svg").read_text()
    assert "rack7.facility.test" in all_text(drawn) and not muddled(drawn)


@pytest.mark.parametrize(
    ("hubs", "told"),
    [
        (["nowhere"], "HUBS has 'nowhere'"),
        (["east=/nowhere/kubeconfig"], "there is no such file"),
        (["east={file}", "east={file}"], "another hub has that name"),
    ],
    ids=["no pair", "no file", "twice"],
)
def test_hubs_that_are_named_wrongly_are_refused(tmp_path: Path, hubs: list[str], told: str) -> None:
    (file := tmp_path / "kubeconfig").write_text("")
    with pytest.raises(StackError, match=told):
        fleet.write(tmp_path, [each.format(file=file) for each in hubs], tmp_path / "fleet")
    assert not (tmp_path / "fleet").exists()


def test_a_hub_that_does_not_tell_is_named_and_the_page_is_written(tmp_path: Path) -> None:
    (file := tmp_path / "kubeconfig").write_text("{")
    (tmp_path / "metal_ipi").symlink_to(ROOT / "metal_ipi")
    with pytest.raises(StackError, match=r"1 of 1 hubs did not report .*written without them"):
        fleet.write(tmp_path, [f"east={file}"], tmp_path / "fleet")
    page = (tmp_path / "fleet" / "fleet.md").read_text()
    assert (
        "0 clusters.\n\nHub east gave no answer: " in page
        and "kubeconfig is not a kubeconfig that can be used: " in page
    )


def test_no_text_of_a_long_picture_meets_another() -> None:
    rows = [
        picture.Row(name="n" * 90, place="hub " + "h" * 90, facts="f" * 90, status="being deleted", told="t" * 300),
        picture.Row(name="a", place="", facts="", status="as declared", told=""),
    ]
    assert not muddled(picture.svg(rows))
