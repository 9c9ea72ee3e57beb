"""A rack without a worker: the bootstrap machine is a virtual one of the lab's libvirt."""

from __future__ import annotations

import json
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end import processes
from tests.end_to_end.conftest import copies
from tests.end_to_end.project import RACK, Project
from tests.stacks.answers import stack_file

pytestmark = [pytest.mark.lab, pytest.mark.engine]

_LONGEST = 600.0
"""Seconds for an installation: four machines are emulated at once, in software."""
_NAME = f"{RACK}-bootstrap.{RACK}.facility.test"
_BOOTSTRAP = {
    "type": "local-vm",
    "address": "192.0.2.126",
    "mac": "52:54:00:72:61:ff",
    "bridge": "facility0",
    "memory": 2048,
    "cpus": 1,
}
_SCRIPT = "mac-52-54-00-72-61-ff.ipxe"


def _variant() -> dict[str, Any]:
    """The rack's control plane alone."""
    return {"platform": {"servers": stack_file(RACK)["platform"]["servers"][:3], "bootstrap": _BOOTSTRAP}}


@pytest.fixture
def rack(tmp_path: Path, emulation: None) -> Generator[Project, None, None]:
    """A copy whose rack has three servers, emulated."""
    yield from copies(tmp_path, machines="libvirt", stack=RACK, variant=_variant())


def _domains(rack: Project) -> list[str]:
    """The virtual machines that are not the rack's own servers."""
    facts = json.loads(rack.layout.facts.read_text())["rack"]
    servers = {server["uuid"] for server in facts["servers"]}
    listed = rack.lab("run", "--", "virsh", "--quiet", "--connect", facts["guest"]["uri"], "list", "--all", "--name")
    return [name for name in listed.split() if name not in servers]


@pytest.mark.libvirt
def test_a_virtual_machine_bootstraps_a_rack_and_is_gone(rack: Project) -> None:
    # Killed when the machine has just been made: the next run goes on with it.
    run, until = rack.start("up"), time.monotonic() + 120
    while _SCRIPT not in rack.uploaded():
        assert not run.over() and time.monotonic() < until, run.printed()
        time.sleep(0.1)
    processes.kill(processes.family(run.pid))
    run.wait()
    assert _domains(rack) == [_NAME]

    up = rack.make("up", seconds=_LONGEST)

    print(f"up with a virtual bootstrap machine took {up.seconds:.0f} s")
    output = rack.output()
    assert [node["role"] for node in output["nodes"]] == ["control-plane"] * 3
    assert output["bootstrap"] == {"present": False}
    assert _domains(rack) == [] and rack.uploaded() == []
    assert "up: no changes" in rack.make("up").out
    assert "refresh: no changes" in rack.make("refresh").out
    assert "nothing is left of the lab" in rack.make("down").text
    assert rack.left() == []


def test_simulated_machines_come_without_a_libvirt(tmp_path: Path) -> None:
    for rack in copies(tmp_path, stack=RACK, variant=_variant()):
        told = rack.make("up", fails=True).text
        assert "platform.bootstrap is of type local-vm, and simulated machines come without a libvirt" in told
        assert "use libvirt machines, or platform.bootstrap of type lend" in told
        assert rack.supervisor() is None
