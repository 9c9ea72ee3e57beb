"""Machines that coreos-installer really installs: with UEFI, without DHCP and with a metadata service; at night with
BIOS, with DHCP and without a metadata service as well, anew and over what is there."""

from __future__ import annotations

from typing import Any

import pytest

from lab.machines.libvirt_domain import OVMF
from lab.node_image import ensure
from tests.lab.libvirt.installs import AGAIN
from tests.lab.namespaces import observed, require_libvirt

pytestmark = pytest.mark.libvirt


@pytest.fixture(scope="module", params=["uefi", pytest.param("bios", marks=pytest.mark.nightly)])
def firmware(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def results(firmware: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What became of a machine of `installs`; the one with BIOS is installed again."""
    require_libvirt(programs=["apt-get"], files=OVMF)
    if not ensure().installer:  # out here, where the package registries are
        pytest.skip("there is no cargo here to build coreos-installer with")
    arguments = [firmware, *([AGAIN] if firmware == "bios" else [])]
    directory = tmp_path_factory.mktemp(firmware)
    return observed("tests.lab.libvirt.installs", directory, *arguments, seconds=900, libvirt=True)


@pytest.fixture
def seen(results: dict[str, Any]) -> dict[str, Any]:
    """What was seen of it on the way."""
    return results["seen"][0]


def test_the_installation_ends_well_and_finds_its_partitions(seen: dict[str, Any]) -> None:
    assert seen["live"].split() == ["BIOS-BOOT", "EFI-SYSTEM", "boot", "root"]


def test_ignition_runs_at_the_first_boot_from_disk_only(seen: dict[str, Any]) -> None:
    assert seen["first"]["generation"] == seen["second"]["generation"] == "first"
    assert "ignition.firstboot" in seen["first"]["cmdline"].split()
    assert "ignition.firstboot" not in seen["second"]["cmdline"].split()
    for boot in ("first", "second"):
        assert seen[boot]["boot"].split() == ["coreos", "grub2", "loader", "lost+found", "ostree"]


def test_the_system_keeps_its_identity(seen: dict[str, Any]) -> None:
    assert len(seen["first"]["machine_id"]) == 32
    assert seen["first"]["machine_id"] == seen["second"]["machine_id"]


def test_the_root_file_system_fills_the_disk_and_boot_is_beside_it(seen: dict[str, Any]) -> None:
    for boot in ("first", "second"):
        assert seen[boot]["mounts"].splitlines() == ["/ ext4 rw", "/boot ext4 ro"]
        assert 3900 < int(seen[boot]["mib"]) < 4096
        assert seen[boot]["labels"].split() == ["EFI-SYSTEM", "boot", "root"]


def test_console_and_kernel_arguments_are_what_the_installer_was_told(seen: dict[str, Any]) -> None:
    for boot in ("first", "second"):
        arguments = seen[boot]["cmdline"].split()
        assert "test.appended" in arguments
        assert [argument for argument in arguments if argument.startswith("console=")] == ["console=ttyS1,115200n8"]
        assert seen[boot]["console"].splitlines()[1:-1] == [
            "serial --unit=1 --speed=115200 --word=8 --parity=no",
            "terminal_input serial",
            "terminal_output serial",
        ]


def test_without_dhcp_a_profile_says_what_the_network_is(seen: dict[str, Any], firmware: str) -> None:
    """From the boot partition at the first boot, and from then on where the initramfs put it."""
    for boot in (seen["first"], seen["second"]):
        if firmware == "bios":
            assert boot["profiles"] == ""
            continue
        assert "\nmethod=manual\n" in boot["profiles"] and "[ipv6]\nmethod=disabled" in boot["profiles"]
        assert not [word for word in boot["cmdline"].split() if word.startswith(("ip=", "nameserver="))]


def test_nothing_fails_at_boot_and_names_are_resolved(seen: dict[str, Any]) -> None:
    for boot in ("first", "second"):
        assert seen[boot]["system"] == "running"
        assert seen[boot]["resolver"] == "nameserver 192.0.2.53"


def test_the_installed_system_trusts_the_lab(seen: dict[str, Any], results: dict[str, Any]) -> None:
    assert seen["first"]["authority"] == seen["second"]["authority"] == results["authority"]


def test_the_platform_is_asked_where_there_is_one(seen: dict[str, Any], firmware: str) -> None:
    platform, name = ("metal", "") if firmware == "bios" else ("packet", "node-0" if ensure().afterburn else "")
    words = seen["second"]["cmdline"].split()
    assert [word for word in words if word.startswith("ignition.platform.id=")] == [f"ignition.platform.id={platform}"]
    assert seen["second"]["afterburn"] == name


@pytest.mark.parametrize("firmware", ["bios"], scope="module", indirect=True)
@pytest.mark.nightly
def test_a_running_system_installs_itself_anew(results: dict[str, Any]) -> None:
    again, before = results["again"], results["seen"][0]["second"]
    assert again["live"].split() == ["BIOS-BOOT", "EFI-SYSTEM", "boot", "root"]
    assert again["first"]["generation"] == "second"
    assert again["first"]["machine_id"] != before["machine_id"]
    assert again["first"]["system"] == "running"
