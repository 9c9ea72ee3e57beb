"""What a machine of a rack boots, reset by reset: in QEMU, without an operating system."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.lab.namespaces import observed, require_libvirt

pytestmark = pytest.mark.libvirt


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What `orders` saw."""
    require_libvirt()
    return observed("tests.lab.libvirt.orders", tmp_path_factory.mktemp("orders"), seconds=120, libvirt=True)


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
