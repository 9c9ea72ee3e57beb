"""A single node without a bootstrap machine: it bootstraps itself in its live system, and goes on from its disk."""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Any

import pytest

from tests.end_to_end.conftest import SMALL, copies
from tests.end_to_end.project import SINGLE, Project
from tests.stacks.answers import stack_file

pytestmark = [pytest.mark.lab, pytest.mark.engine]

_NODE = f"{SINGLE}-control-plane-0"
_DOMAIN = f"{SINGLE}.facility.test"
_WRITERS = {"bootkube.service", "install-to-disk.service", "metal-ipi-install.service"}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Generator[Project, None, None]:
    """A copy whose only node is installed, shared by this module's tests."""
    for project in copies(tmp_path_factory.mktemp("single"), stack=SINGLE, variant=SMALL):
        project.make("up")
        yield project


def _boots(node: Project) -> list[str]:
    """What its server has booted since the lab began."""
    (boots,) = node.booted().values()
    return boots


def _changed(**changes: Any) -> dict[str, Any]:
    """The stack's platform, its server with one more kernel argument."""
    platform = stack_file(SINGLE)["platform"]
    servers = [{**server, "kernelArguments": ["lab.rehearsal=1"]} for server in platform["servers"]]
    return {"platform": {**platform, "servers": servers}, **changes}


def test_a_single_node_is_a_whole_cluster_from_its_disk(node: Project) -> None:
    output = node.output()
    assert (output["bootstrap"], [each["name"] for each in output["nodes"]]) == (
        {"present": False},
        [f"{_NODE}.{_DOMAIN}"],
    )
    checks = {check["name"]: check["status"] for check in output["nodes"][0]["checks"]}
    assert {"installation", "root-on-disk", "hostname"} <= checks.keys()
    assert {name for name, status in checks.items() if status != "passed"} == {"afterburn"}
    assert _boots(node) == ["network", "disk"]
    assert node.uploaded() == [], "what bootstraps it holds the cluster's keys"
    assert not node.deployment().get("pending_operations")


def test_only_our_installer_wrote_to_its_disk(node: Project) -> None:
    (console,) = (node.layout.state / "machines").glob("*/console.log")
    live, _, _ = console.read_text().partition("systemd-shutdown[1]: Rebooting.")
    started = set(re.findall(r"Starting (\S+\.service)", live))
    assert started & _WRITERS == _WRITERS - {"install-to-disk.service"}
    assert live.count("Install complete.") == 1


def test_restarted_by_its_bmc_it_comes_back_from_disk(node: Project) -> None:
    before = _boots(node)
    node.rack("power", server="all", to="cycle")
    node.assert_unchanged("up", "refresh")
    assert _boots(node) == [*before, "disk"]


def test_it_is_never_installed_again_not_even_with_consent(node: Project) -> None:
    before = _boots(node)
    node.configure(**_changed(reprovision={"consent": ["control-plane-0"]}))
    refused = node.make("up", fails=True).text
    assert f"control plane machine {_NODE} cannot be installed again: it is the only member, and no quorum" in refused
    assert "or undo the change" in refused
    assert _boots(node) == before
    assert "bootstrap.ign" not in node.uploaded(), "it holds the cluster's keys"
    node.configure()


def test_down_leaves_nothing(node: Project) -> None:
    assert re.search(r"down: \d+ deleted", node.assert_down().text)
