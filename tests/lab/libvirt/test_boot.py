"""Machines that really boot, in namespaces of their own: to SSH, or to the console line that says why not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lab.node_image import ensure
from tests.lab.namespaces import observed, require_libvirt

pytestmark = pytest.mark.libvirt


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What became of the three machines of `boots`; they boot once."""
    require_libvirt(programs=["apt-get"])
    ensure()  # out here, where the package registries are
    return observed("tests.lab.libvirt.boots", tmp_path_factory.mktemp("boots"), seconds=600, libvirt=True)


def test_a_machine_becomes_what_its_ignition_says(seen: dict[str, Any]) -> None:
    assert len(seen["seen"]) == 8, seen["seen"]
    hostname, release, address, key, done, root, journal, result = seen["seen"]
    assert hostname == "node-0"
    assert release == f"'{seen['release']}'"
    assert address == "198.51.100.1/31"
    assert key == "/etc/ssh/ssh_host_ed25519_key"
    assert (done, root, journal) == ("done", "0", "1")
    assert json.loads(result)["userConfigProvided"] is True


def test_ignition_reports_to_the_metadata_service(seen: dict[str, Any]) -> None:
    assert ["198.51.100.1", "/events"] in seen["posted"]


def test_a_damaged_root_file_system_stops_the_boot(seen: dict[str, Any]) -> None:
    assert "rootfs hash mismatch: http://192.0.2.12/damaged" in seen["mismatch"]
    assert "switching to the root file system" not in seen["consoles"]["node-1"]


def test_a_failed_ignition_says_why_and_does_not_try_for_ever(seen: dict[str, Any]) -> None:
    assert "hash verification failed" in seen["failure"]
    assert "switching to the root file system" not in seen["consoles"]["node-2"]


def test_no_console_shows_a_private_key(seen: dict[str, Any]) -> None:
    (secret,) = [line for line in seen["host_key"].splitlines() if not line.startswith("-")][1:2]
    for console in seen["consoles"].values():
        assert "initramfs of" in console
        assert secret not in console


def test_a_deleted_machine_leaves_nothing(seen: dict[str, Any]) -> None:
    assert seen["forgotten"] == ["", "", ""]
    assert seen["left"] == []
