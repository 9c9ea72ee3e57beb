"""What a machine of a rack boots, reset by reset: in QEMU, without an operating system."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lab.machines.libvirt import PROGRAMS
from tests.lab.libvirt.test_boot import NAMESPACES, ROOT

pytestmark = pytest.mark.libvirt


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What `orders` saw."""
    missing = [name for name in PROGRAMS if shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin") is None]
    if missing:
        pytest.skip(f"libvirt machines need {', '.join(missing)}")
    if subprocess.run([*NAMESPACES, "true"], capture_output=True, check=False).returncode:
        pytest.skip("libvirt machines need namespaces, which this system refuses")
    state: Path = tmp_path_factory.mktemp("orders")
    result = subprocess.run(
        [
            *NAMESPACES,
            "sh",
            "-c",
            '"$@"; exit $?',
            "init",
            sys.executable,
            "-m",
            "tests.lab.libvirt.orders",
            str(state),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_every_reset_asks_what_to_boot(seen: dict[str, Any]) -> None:
    assert re.findall(r"from (?:network|disk)", seen["console"]) == ["from network", "from disk", "from disk"]
    assert seen["asked"] == [["network", "disk"], ["disk", "network"], ["disk", "network"]]


def test_the_network_is_that_of_the_rack(seen: dict[str, Any]) -> None:
    assert "from network 192.0.2.97 192.0.2.1 7c9e6679-7425-40de-944b-e07fc1f90ae7" in seen["console"]
    assert "192.0.2.1/24" in seen["gateway"], "the facility's own gateway does not go with a machine"


def test_power_off_from_inside_is_off(seen: dict[str, Any]) -> None:
    assert (seen["before"], seen["during"]) == ("off", "on")
    assert "last from disk" in seen["console"]


def test_disks_are_kept_until_they_are_blanked_or_the_machine_is_deleted(seen: dict[str, Any]) -> None:
    assert seen["files"] == ["console.log", "disk-LAB0.img", "disk-LAB1.img"]
    assert seen["kept"] == [16 << 20, 16 << 20]
    assert seen["after"] == ["disk-LAB1.img"]
    assert seen["left"] == []
