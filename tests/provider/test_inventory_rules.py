"""What follows from what is told of servers; and which disks may be meant by rules."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from metal_ipi.provider import sizes
from metal_ipi.provider.inventory import disks, rules, table
from metal_ipi.provider.inventory.facts import Card, Disk, Drive, Hardware, Part
from metal_ipi.provider.inventory.rules import Host

MAC, OTHER = "52:54:00:00:00:01", "52:54:00:00:00:02"
NOW = datetime(2026, 11, 27, tzinfo=UTC)
SMALL = Disk(name="small", size_bytes=120 * 10**9, media_type="SSD", serial="S1", model="MZ7L3", vendor="SAMSUNG")
LARGE = Disk(name="large", size_bytes=960 * 10**9, media_type="HDD", serial="S2", wwns=["5000c500abcdef01"])
WELL = Hardware(
    where="server worker-0 (BMC https://b)",
    power="Off",
    uuid="4c4c4544-0044-4a10-8036-b2c04f4d3533",
    serial="SN1",
    manufacturer="ACME",
    architecture="x86_64",
    memory_mib=65536,
    cpus=16,
    disks=[SMALL, LARGE],
    cards=[Card(mac=MAC, link="up"), Card(mac=OTHER, link="up")],
    boot_mode="uefi",
    boot_modes=["uefi", "bios"],
    boot_targets=["None", "Pxe", "UsbCd", "UefiHttp"],
    secure_boot=False,
    tpm="2.0",
    parts=[Part(kind="system", name="", health="OK"), Part(kind="disk", name="small", health="OK")],
    clock=(NOW, NOW),
    drives=[Drive(name="Cd")],
    firmware={"BIOS": "1.0"},
)
LEAST = sizes.least("worker", "4.19.0", live=False)
HOST = Host(
    name="worker-0",
    told=WELL,
    architecture="x86_64",
    least=LEAST,
    macs=[MAC.upper()],
    device={"smallest": True},
    boot_method="pxe",
)


def host(name: str = "worker-0", *, wanted: dict[str, Any] | None = None, **told: Any) -> Host:
    return replace(HOST, name=name, told=replace(WELL, **told), **(wanted or {}))


def said(*hosts: Host) -> list[tuple[str, str, str]]:
    """Check, level and words of all that is found about the first."""
    found = rules.found(hosts)[hosts[0].name]
    assert all(each.host == hosts[0].name for each in found)
    return [(each.check, each.level, each.what) for each in found]


def test_a_server_that_is_as_it_should_be() -> None:
    assert said(HOST) == []


def test_a_server_of_which_nothing_is_told_is_no_error() -> None:
    nothing = replace(HOST, told=Hardware(where="w"), tpm2=True, boot_method="live-iso", boot_mode="uefi")
    ((check, level, what),) = said(nothing, replace(nothing, name="worker-1"))
    assert (check, level) == ("tpm", "warning") and what.startswith("the BMC does not report whether it has a TPM")
    assert table.of(nothing).count(table.UNTOLD) == 8


_TPM = {"tpm2": True}
_ARM = {"architecture": "aarch64"}
_HTTP = {"boot_method": "uefi-http"}
_DISC = {"boot_method": "live-iso"}
_ARBITER = {"least": sizes.least("arbiter", "4.20.0", live=False)}


@pytest.mark.parametrize(
    ("told", "wanted", "check", "level", "words"),
    [
        ({"architecture": "aarch64"}, {}, "architecture", "error", "are aarch64, and boot.architecture is x86_64"),
        ({}, {"device": {"serial": "S9"}}, "disks", "error", "no disk meets the rules for the disk to inst"),
        ({}, {"device": {"rotational": True, "maxSize": 500}}, "disks", "error", "(rotational: true, maxSize: 500)"),
        ({}, {"device": {"minSize": 10}}, "disks", "warning", "only one may: small, large"),
        ({"disks": [replace(SMALL, size_bytes=64 * 10**9)]}, {}, "disks", "error", "less than the 100 GB"),
        ({"disks": [replace(SMALL, size_bytes=40 * 10**9)]}, _ARBITER, "disks", "error", "50 GB that the assist"),
        ({"cards": [Card(mac=OTHER)]}, {}, "cards", "error", f"with the MAC address {MAC}, but {OTHER}"),
        ({"cards": [Card(mac=MAC, link="down"), Card(mac=OTHER, link="up")]}, {}, "cards", "warning", "has no link"),
        ({"cards": [Card(mac=MAC, link="down")], "power": "On"}, {}, "cards", "warning", f"its card {MAC} has no link"),
        ({"boot_targets": ["Pxe", "Hdd"]}, _DISC, "firmware", "error", "does not offer to boot Cd, which"),
        ({"boot_modes": ["bios"]}, {"boot_mode": "uefi"}, "firmware", "error", "not offer bootMode uefi, but bios"),
        ({"boot_mode": "bios"}, _HTTP, "firmware", "error", "bootMethod uefi-http needs UEFI"),
        ({"boot_mode": "bios", **_ARM}, _ARM, "firmware", "error", "by UEFI only"),
        ({"override": "Pxe"}, {}, "firmware", "warning", "it is set to boot Pxe at every start"),
        ({"tpm": "none"}, _TPM, "tpm", "error", "it has no TPM, and machineConfig.diskEncryption.tpm2 needs"),
        ({"tpm": "off"}, _TPM, "tpm", "error", "its TPM is switched off"),
        ({"tpm": "1.2"}, _TPM, "tpm", "error", "its TPM is of version 1.2"),
        ({"parts": [Part(kind="memory", name="", health="Critical")]}, {}, "health", "error", "memory is Critical"),
        ({"parts": [Part(kind="memory", name="", health="Warning")]}, {}, "health", "warning", "memory is Warning"),
        ({"parts": [Part(kind="disk", name="small", health="Critical")]}, {}, "health", "error", "small is Critical"),
        ({"parts": [Part(kind="disk", name="large", health="Critical")]}, {}, "health", "warning", "large is Critical"),
        ({"parts": [Part(kind="power supply", name="PSU1", health="Critical")]}, {}, "health", "warning", "PSU1 is"),
        ({"clock": (NOW - timedelta(days=3), NOW)}, {}, "bmc-clock", "warning", "clock is 72 h behind of ours"),
        ({"drives": []}, _DISC, "virtual-media", "error", "no virtual drive for discs"),
        ({"drives": [Drive(name="Cd", disc="a disc of h")]}, _DISC, "virtual-media", "warning", "emptied: a disc of h"),
    ],
)  # fmt: skip
def test_what_is_wrong(told: dict[str, Any], wanted: dict[str, Any], check: str, level: str, words: str) -> None:
    ((found, how, what),) = said(host(wanted=wanted, **told))
    assert (found, how) == (check, level) and words in what
    ((_, how, _),) = said(host(wanted={**wanted, "runs": True}, **told))
    assert how == "warning", "it was installed as it is"


@pytest.mark.parametrize(
    "told",
    [
        {"cards": [Card(mac=MAC, link="down"), Card(mac=OTHER, link="down")]},  # it is off, and so are its cards
        {"tpm": "none"},
        {"boot_mode": "bios"},
        {"drives": []},
        {"clock": (NOW + timedelta(seconds=200), NOW)},
        {"disks": [Disk(name="unknown"), LARGE]},
    ],
)
def test_what_does_not_matter(told: dict[str, Any]) -> None:
    assert said(host(**told)) == []


_UUID = "11111111-2222-4333-8444-555555555555"


@pytest.mark.parametrize(
    ("told", "level", "words"),
    [
        ({}, "error", "it is the same server as worker-1: both BMCs report the UUID 4c4c4544"),
        ({"uuid": _UUID}, "warning", "it has the same serial number as worker-1: SN1"),
        ({"uuid": None}, "error", "it has the same serial number as worker-1: SN1"),
        ({"uuid": _UUID, "serial": "SN2"}, "error", f"the server of worker-1 has its MAC address {MAC}"),
    ],
)
def test_two_that_are_one(told: dict[str, Any], level: str, words: str) -> None:
    found = said(HOST, host("worker-1", wanted={"macs": [OTHER]}, **told))
    assert {check for check, _, _ in found} == {"twins"}
    assert (found[0][1], words in found[0][2]) == (level, True)


@pytest.mark.parametrize("serial", ["Default string", "To be filled by O.E.M.", "0123456789", "00000000", None])
def test_numbers_that_nobody_gave_make_no_twins(serial: str | None) -> None:
    nobody: dict[str, Any] = {"uuid": "00000000-0000-0000-0000-000000000000", "serial": serial}
    other = {"macs": [OTHER]}
    assert (
        said(host("v", **nobody, cards=[Card(mac=MAC)]), host("w", wanted=other, **nobody, cards=[Card(mac=OTHER)]))
        == []
    )


VOLUME = Disk(name="volume", size_bytes=480 * 10**9, raid="RAID1")


@pytest.mark.parametrize(
    ("wanted", "certain", "possible"),
    [
        ({"smallest": True}, ["small"], []),
        ({"serial": "S2 "}, ["large"], ["volume"]),
        ({"serial": "S2", "smallest": True}, [], ["large", "volume"]),
        ({"minSize": 200, "maxSize": 1000}, ["large", "volume"], []),
        ({"minSize": 110}, ["large", "volume"], ["small"]),
        ({"rotational": False}, ["small"], ["volume"]),
        ({"wwn": "0x5000c500abcdef01"}, ["large"], ["small", "volume"]),
        ({"model": "MZ7L3"}, ["small"], ["large", "volume"]),
        ({"vendor": "ATA"}, [], ["small", "large", "volume"]),
        ({"hctl": "0:0:0:0", "rotational": True}, [], ["large", "volume"]),
        ({"byId": "x", "serial": "S1"}, [], ["small", "volume"]),
    ],
)
def test_disks_that_may_be_meant(wanted: dict[str, Any], certain: list[str], possible: list[str]) -> None:
    found = disks.choose([SMALL, LARGE, VOLUME, Disk(name="an empty reader", size_bytes=0)], wanted)
    assert ([each.name for each in found.certain], [each.name for each in found.possible]) == (certain, possible)


def test_the_table() -> None:
    assert table.of(host(model="R1", clock=(NOW + timedelta(seconds=90), NOW), memory_mib=65536.0)).splitlines() == [
        "worker-0: ACME R1, serial SN1, power Off, BMC https://b",
        "  processors     16 CPUs, x86_64",
        "  memory         64 GiB",
        "  disks          small (120 GB, SSD, MZ7L3, serial S1), to install to",
        "                 large (960 GB, HDD, serial S2)",
        f"  network cards  {MAC}, link up, named by the stack",
        f"                 {OTHER}, link up",
        "  firmware       uefi, Secure Boot off, TPM 2.0, BIOS 1.0",
        "  health         2 parts OK",
        "  BMC's clock    90 s ahead",
        "  virtual drives Cd",
    ]
