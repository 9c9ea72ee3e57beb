"""Simulated machines over real sockets: boots, faults, a kill of the API, in namespaces of their own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.lab.simulated.namespaces import observed


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the driver observed; it runs once."""
    return observed("world_driver", tmp_path_factory.mktemp("world"))


pytestmark = pytest.mark.lab


def test_a_machine_boots_to_ssh_with_all_that_checks_read(seen: dict[str, Any]) -> None:
    status, text = seen["ssh"]
    hostname, cmdline, release, result, *afterburn = text.splitlines()
    assert (status, hostname, release) == (7, "good-1", "1.2.3")
    assert "ignition.platform.id=packet" in cmdline.split()
    assert json.loads(result)["userConfigProvided"] is True
    assert afterburn == ["AFTERBURN_PACKET_IPV4_PUBLIC_0=198.51.100.1"]


def test_units_run_with_the_machine_s_address(seen: dict[str, Any]) -> None:
    assert "tool worker --unit role.service at 198.51.100.1" in seen["console"]


def test_the_console_is_served_over_ssh(seen: dict[str, Any]) -> None:
    assert seen["sos"].startswith("iPXE initialising devices...")


@pytest.mark.parametrize(
    ("hostname", "line", "state"),
    [
        ("broken", "Ignition failed: unsupported config version", "active"),
        ("hashed", "rootfs hash mismatch: expected ", "active"),
        ("silent", "sshd.service is masked.", "active"),
        ("dark", "No more network devices", "provisioning"),
    ],
)
def test_faults_show_on_the_console(seen: dict[str, Any], hostname: str, line: str, state: str) -> None:
    assert line in seen[hostname]["console"]
    assert seen[hostname]["state"] == state


def test_ignition_s_failure_is_an_event(seen: dict[str, Any]) -> None:
    assert "[fetch] Ignition error: unsupported config version" in seen["broken"]["events"]


def test_a_kill_of_the_api_reboots_nobody_and_a_reboot_does(seen: dict[str, Any]) -> None:
    killed, rebooted = seen["after kill"], seen["after reboot"]
    assert (killed[0], rebooted[0]) == (0, 0)
    boot_id = json.loads(seen["ssh"][1].splitlines()[3])["provisioningBootID"]
    assert killed[1].strip() == boot_id
    assert rebooted[1].strip() != boot_id


def test_nothing_is_left(seen: dict[str, Any]) -> None:
    assert (seen["left machines"], seen["left mounts"], seen["left processes"]) == ([], [], [])
