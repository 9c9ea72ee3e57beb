"""A rack whose servers have bonds and VLANs, in the live system and on disk."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from binaries.crate import NMSTATECTL, cargo
from tests.end_to_end.conftest import SMALL, copies
from tests.end_to_end.project import Project
from tests.stacks.answers import stack_file

pytestmark = [
    pytest.mark.lab,
    pytest.mark.engine,
    pytest.mark.nightly,
    pytest.mark.skipif(NMSTATECTL.cached() is None and cargo() is None, reason="no nmstatectl, and no cargo"),
]
_STACK = "bonded"
_LONGEST = 30 * 60.0
"""Seconds for an installation on servers that are emulated in software, on a busy system."""


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Generator[Project, None, None]:
    """A copy whose cluster is installed, shared by this module's tests."""
    for project in copies(tmp_path_factory.mktemp(_STACK), stack=_STACK, variant=SMALL):
        project.make("up")
        yield project


def _links(rack: Project) -> dict[str, dict[str, str]]:
    """What node checks read of bonds and VLANs, by server."""
    return {
        node["name"].split(".")[0].removeprefix(f"{_STACK}-"): {
            check["name"].removeprefix("link "): check["observed"]
            for check in node["checks"]
            if check["name"].startswith("link ") and check["status"] == "passed"
        }
        for node in rack.output()["nodes"]
    }


def _changed(server: int, key: str, value: Any) -> dict[str, Any]:
    platform = stack_file(_STACK)["platform"]
    platform["servers"][server]["networkConfig"]["interfaces"][3]["vlan"][key] = value
    return {"platform": platform}


_EACH = {
    name: {
        "bond0": f"active-backup/52:54:00:72:61:0{number},52:54:00:72:62:0{number}",
        "bond0.100": "100/bond0",
    }
    for number, name in enumerate(("control-plane-0", "control-plane-1", "control-plane-2", "worker-0"))
}


def test_every_node_has_its_bond_and_its_vlan(rack: Project) -> None:
    assert _links(rack) == _EACH
    for console in (rack.layout.state / "machines").glob("*/console.log"):
        told = [line for line in console.read_text().splitlines() if "NetworkManager: bond0 (" in line]
        assert len(told) >= 2, "the live system has it, and the one on disk"
        assert all("(active-backup of eth0, eth1)" in line for line in told), "whatever the settings call the cards"
    rack.assert_unchanged("up")


def test_nmstatectl_says_in_a_preview_what_it_does_not_take(rack: Project) -> None:
    rack.configure(**_changed(3, "protocol", "802.1z"))
    told = rack.make("preview", fails=True).text
    rack.restore()
    assert "nmstatectl refuses these networks; nothing was changed" in told
    assert "platform.servers[3].networkConfig" in told and "802.1z" in told


@pytest.mark.libvirt
@pytest.mark.usefixtures("emulation")
def test_emulated_machines_make_them_in_both_systems(tmp_path: Path) -> None:
    for site in copies(tmp_path, machines="libvirt", stack=_STACK, variant=SMALL):
        site.make("up", seconds=_LONGEST)
        assert _links(site) == _EACH
        site.assert_unchanged("up")
        site.assert_down()
