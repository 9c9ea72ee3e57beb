"""A simulated server with disks and the real install.sh: from the network to the disk, and what becomes of it there.

What its installer survives is tested in tests/components/test_install_script.py; machines that are installed again, by
kexec as well, and that lose their power meanwhile are those of tests/end_to_end.
"""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest

from tests.lab.namespaces import observed
from tests.lab.simulated.disk_driver import GENERATION, SPEC

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(shutil.which("jq") is None, reason="install.sh needs jq, which CoreOS has"),
]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the driver observed; it runs once."""
    return observed("tests.lab.simulated.disk_driver", tmp_path_factory.mktemp("disks"), seconds=240)


def _done(status: dict[str, Any]) -> tuple[str, str, str]:
    assert (status["device"], status["stable"]) == ("/dev/vda", "/dev/disk/by-id/virtio-first")
    return status["state"], status["generation"], status["step"]


def test_an_installation_leads_to_a_system_that_boots_from_the_disk(seen: dict[str, Any]) -> None:
    assert _done(seen["installed"]) == ("done", GENERATION, "installed")
    on_boot, in_etc, release, cmdline, *_ = seen["first boot"]
    marker = {"cluster": "rack.test", "machine": "server", "generation": GENERATION}
    assert (json.loads(on_boot), json.loads(in_etc), release) == (marker, marker, "1.2.3")
    assert cmdline.split()[1:] == [
        "ignition.platform.id=metal",
        "ignition.firstboot",
        "rw",
        "root=LABEL=root",
        "console=ttyS0,115200n8",
        "quiet",
        "rd.neednet=1",
    ]


def test_programs_see_the_disks(seen: dict[str, Any]) -> None:
    first, second = seen["disks"]
    assert (first["serial"], first["size"], first["rota"]) == ("first", 4096 << 20, False)
    assert [entry["label"] for entry in first["children"]] == [None, None, "boot", "root"]
    assert second == {"name": "vdb", "serial": "second", "size": 64 << 20, "rota": True, "label": None}


def test_what_is_on_the_disk_is_kept_and_the_next_boot_is_not_the_first(seen: dict[str, Any]) -> None:
    assert seen["second boot"][0] == "kept"
    assert "gone" not in seen["second boot"]
    assert "ignition.firstboot" not in seen["cmdline"] and "rd.neednet=1" in seen["cmdline"]


def test_the_order_is_asked_at_every_reset(seen: dict[str, Any]) -> None:
    assert seen["asked"] == 3


def test_a_machine_that_is_switched_off_stays_off(seen: dict[str, Any]) -> None:
    assert seen["power"] == ["on", "off", "off"]


def test_a_disk_without_its_boot_partition_ends_in_rescue_mode(seen: dict[str, Any]) -> None:
    assert seen["rescue"] == "on"


def test_a_blank_disk_boots_nothing(seen: dict[str, Any]) -> None:
    assert seen["blank"] == "off"


def test_the_other_disk_is_never_written(seen: dict[str, Any]) -> None:
    before, *after = seen["second disk"]
    assert after == [before, before]


def test_machines_outlive_the_process_that_runs_them(seen: dict[str, Any]) -> None:
    assert seen["restart"] == {"running": [SPEC.id], "same boot": True, "asked": 1}
    assert seen["rebooted"]


def test_nothing_is_left(seen: dict[str, Any]) -> None:
    assert (seen["left"], seen["left mounts"], seen["left processes"]) == ([], [], [])
