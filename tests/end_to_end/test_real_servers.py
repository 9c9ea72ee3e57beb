"""What real servers have and emulated ones have not: too little memory, and firmware with Secure Boot."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from lab.bmc.told import MEMORY_GIB
from tests.end_to_end import racks
from tests.end_to_end.conftest import SMALL, copies
from tests.end_to_end.project import RACK, Project
from tests.stacks.answers import stack_file

pytestmark = [pytest.mark.lab, pytest.mark.engine, pytest.mark.nightly]

_SERVERS = 4
_DENIED = 'failed to load Boot0001 "UEFI PXEv4 (MAC:'


@pytest.fixture
def rack(tmp_path: Path) -> Generator[Project, None, None]:
    """A copy with a lab, and nothing installed."""
    for project in copies(tmp_path, stack=RACK, variant=SMALL):
        project.start_lab()
        yield project


def _with_bmcs(**settings: Any) -> dict[str, Any]:
    """The stack's platform, with settings that all BMCs have in common."""
    return {"platform": {"bmc": {**stack_file(RACK)["platform"].get("bmc", {}), **settings}}}


def test_servers_that_cannot_work_are_refused_and_with_secure_boot_installed_from_signed_discs(rack: Project) -> None:
    rack.rack("hardware", server="server-0", memory_gib=12)
    rack.rack("hardware", server="server-1", memory_gib=0)
    rack.rack("hardware", server="server-2", secure_boot=True)
    rack.rack("hardware", server="server-3", memory_gib=16)
    told = rack.make("up", fails=True).text
    assert "has 12.0 GiB of memory: it needs 16 GiB, the least that OpenShift's documentation asks for" in told
    assert "does not report its memory: it needs 16 GiB" in told
    assert "has Secure Boot on, and `bootMethod: pxe` leads to iPXE" in told
    assert "has 16.0 GiB of memory: it needs 19 GiB, from 4.19 on" in told and "lend another server" in told
    servers = rack.rack("servers").values()
    assert {server["power"] for server in servers} == {"off"} and [server["boots"] for server in servers] == [[]] * 4

    rack.rack("hardware", server="all", memory_gib=MEMORY_GIB, secure_boot=True)
    rack.configure(**_with_bmcs(bootMethod="live-iso"))
    rack.make("up")
    racks.assert_finished(rack)
    told = rack.rack("servers")
    assert [(each["secure_boot"], each["medium"]) for each in told.values()] == [(True, "")] * _SERVERS
    assert [each["boots"][-2:] for each in told.values()] == [["cd", "disk"]] * _SERVERS
    assert told["server-3"]["boots"] == ["cd", "cd", "disk"], "the server that was lent was booted for that first"
    rack.assert_unchanged("up")
    rack.assert_down()


def test_firmware_refuses_what_was_excused_wrongly(rack: Project) -> None:
    rack.rack("hardware", server="all", secure_boot=True)
    rack.configure(preflight={"excused": ["secure-boot"]}, timeouts={"machinesReachable": 20, "machinesActive": 20})
    told = rack.make("up", fails=True).text
    assert "has Secure Boot on, and `bootMethod: pxe` leads to iPXE" in told and "(excused)" in told
    consoles = [path.read_text() for path in (rack.layout.state / "machines").glob("*/console.log")]
    assert consoles and all(_DENIED in console and "Linux version" not in console for console in consoles)
    rack.rack("power", server="all", to="off")  # no operating system hears that it is to shut down
