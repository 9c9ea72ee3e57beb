"""A BMC as sushy, the client library of OpenStack, sees it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sushy
import sushy.exceptions

from lab.bmc.rack import DISK_MIB, second_mac
from tests.lab.bmc.harness import World, world

pytestmark = pytest.mark.servers

NETWORK, DISK = ("network", "disk"), ("disk", "network")


def test_a_bmc_shows_one_server(lab: World) -> None:
    server, root = lab.servers[0], lab.sushy()
    (system,) = root.get_system_collection().get_members()
    assert (system.identity, system.uuid, system.serial_number) == (server.uuid, server.uuid, server.serial)
    assert system.power_state is sushy.PowerState.OFF
    assert system.memory_summary.size_gib == 64, "what a server has; the machine in its place has less"
    assert list(system.ethernet_interfaces.summary) == [server.mac, second_mac(server.mac)]
    assert system.simple_storage.disks_sizes_bytes == [(DISK_MIB << 20) * 32, (2 * DISK_MIB << 20) * 32], (
        "as of a server"
    )
    (storage,) = system.storage.get_members()
    assert [drive.serial_number for drive in storage.drives] == [f"{server.serial}A", f"{server.serial}B"]
    assert [drive.json["MediaType"] for drive in storage.drives] == ["SSD", "HDD"]
    assert len(root.get_chassis_collection().get_members()) == 1
    (manager,) = root.get_manager_collection().get_members()
    assert manager.identity == server.uuid
    assert manager.firmware_version == "1.0"


def test_two_bmcs_do_not_know_each_other(tmp_path: Path) -> None:
    with world(tmp_path, 2) as lab:
        for number, server in enumerate(lab.servers):
            (system,) = lab.sushy(number).get_system_collection().get_members()
            assert system.uuid == server.uuid
        lab.system(1).reset_system(sushy.ResetType.ON)
        assert lab.system(0).power_state is sushy.PowerState.OFF
        with pytest.raises(sushy.exceptions.ResourceNotFoundError):
            lab.sushy(0).get_system(f"/redfish/v1/Systems/{lab.servers[1].uuid}")
        with pytest.raises(sushy.exceptions.AccessError):
            lab.sushy(0, password=lab.servers[1].bmc.password).get_system()


def test_power_is_switched(lab: World) -> None:
    system = lab.system()
    system.reset_system(sushy.ResetType.ON)
    system.reset_system(sushy.ResetType.ON)
    assert lab.machines.calls == [("power_on", "server-0")], "on a server that is on, On does nothing"
    system.refresh()
    assert system.power_state is sushy.PowerState.ON
    system.reset_system(sushy.ResetType.FORCE_RESTART)
    assert len(lab.machines.boots) == 2
    system.reset_system(sushy.ResetType.GRACEFUL_SHUTDOWN)
    system.refresh()
    assert system.power_state is sushy.PowerState.OFF
    system.reset_system(sushy.ResetType.ON)
    system.reset_system(sushy.ResetType.FORCE_OFF)
    system.refresh()
    assert system.power_state is sushy.PowerState.OFF


def test_a_one_time_boot_is_used_up_by_one_reset(lab: World) -> None:
    system = lab.system()
    system.set_system_boot_options(sushy.BootSource.PXE, enabled=sushy.BootSourceOverrideEnabled.ONCE)
    system.refresh()
    assert system.boot.enabled is sushy.BootSourceOverrideEnabled.ONCE
    assert system.boot.target is sushy.BootSource.PXE
    system.reset_system(sushy.ResetType.ON)
    system.refresh()
    assert system.boot.enabled is sushy.BootSourceOverrideEnabled.DISABLED
    assert system.boot.target is sushy.BootSource.NONE
    lab.machines.guest_reset(lab.servers[0].uuid)
    assert lab.machines.boots == [NETWORK, DISK]


def test_a_continuous_boot_lasts_until_it_is_disabled(lab: World) -> None:
    system = lab.system()
    system.set_system_boot_options(sushy.BootSource.PXE, enabled=sushy.BootSourceOverrideEnabled.CONTINUOUS)
    for _ in range(2):
        system.reset_system(sushy.ResetType.FORCE_OFF)
        system.reset_system(sushy.ResetType.ON)
    system.refresh()
    assert system.boot.enabled is sushy.BootSourceOverrideEnabled.CONTINUOUS
    system.set_system_boot_options(enabled=sushy.BootSourceOverrideEnabled.DISABLED)
    system.reset_system(sushy.ResetType.FORCE_RESTART)
    assert lab.machines.boots == [NETWORK, NETWORK, DISK]


def test_uefi_boots_by_http(lab: World) -> None:
    system, url = lab.system(), "http://192.0.2.12/boot/other.ipxe"
    with pytest.raises(sushy.exceptions.BadRequestError, match="UefiHttp needs"):
        _patch(lab, {"Boot": {"BootSourceOverrideTarget": "UefiHttp", "BootSourceOverrideEnabled": "Once"}}, system)
    system.set_system_boot_options(
        sushy.BootSource.UEFI_HTTP,
        enabled=sushy.BootSourceOverrideEnabled.ONCE,
        mode=sushy.BootSourceOverrideMode.UEFI,
        http_boot_uri=url,
    )
    system.refresh()
    assert (system.boot.mode, system.boot.http_boot_uri) == (sushy.BootSourceOverrideMode.UEFI, url)
    system.reset_system(sushy.ResetType.ON)
    spec = lab.machines.specs[lab.servers[0].uuid]
    assert (spec.firmware, spec.boot_url) == ("uefi", url)
    system.reset_system(sushy.ResetType.FORCE_RESTART)
    spec = lab.machines.specs[lab.servers[0].uuid]
    assert (spec.firmware, spec.boot_url) == ("uefi", "http://boot.facility.test/artifacts/boot/boot.ipxe")
    assert lab.machines.boots == [NETWORK, DISK]


def test_what_is_not_there_is_refused(lab: World) -> None:
    system = lab.system()
    for body, reason in (
        ({"Boot": {"BootSourceOverrideTarget": "Floppy"}}, "Floppy"),
        ({"Boot": {"BootSourceOverrideEnabled": "Twice"}}, "Twice"),
        ({"Boot": {"BootOrder": []}}, "BootOrder"),
    ):
        with pytest.raises(sushy.exceptions.BadRequestError, match=reason):
            _patch(lab, body, system)
    with pytest.raises(sushy.exceptions.BadRequestError, match="Nmi"):
        system._conn.post(f"{system.path}/Actions/ComputerSystem.Reset", data={"ResetType": "Nmi"})


def test_a_writer_who_has_read_something_else_starts_again(lab: World) -> None:
    path = f"Systems/{lab.servers[0].uuid}"
    read = lab.get(path)
    document = read.json()
    assert read.headers["ETag"] == document["@odata.etag"]
    assert document["BootProgress"] == {"LastState": "None"}
    lab.system().reset_system(sushy.ResetType.ON)
    now = lab.get(path).json()
    assert now["@odata.etag"] == document["@odata.etag"], "power is nothing that a writer could overwrite"
    assert now["BootProgress"]["LastState"] == "PrimaryProcessorInitializationStarted"
    boot = {"Boot": {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}}
    lab.system().set_system_boot_options(sushy.BootSource.HDD, enabled=sushy.BootSourceOverrideEnabled.CONTINUOUS)
    account = (lab.servers[0].bmc.username, lab.servers[0].bmc.password)
    with lab.client() as client:
        for etag, status in ((document["@odata.etag"], 412), (lab.get(path).headers["ETag"], 204)):
            answer = client.patch(path, json=boot, auth=account, headers={"If-Match": etag})
            assert answer.status_code == status


def test_nobody_gets_in_without_a_session_or_a_password(lab: World) -> None:
    assert lab.get("Systems", **{"X-Auth-Token": "guessed"}).status_code == 401
    client = lab.sushy()
    assert len(lab.get("SessionService/Sessions").json()["Members"]) == 1
    client._auth.close()
    assert lab.get("SessionService/Sessions").json()["Members"] == []


def test_everything_survives_a_restart_of_the_service(lab: World) -> None:
    system = lab.system()
    system.reset_system(sushy.ResetType.ON)
    system.set_system_boot_options(sushy.BootSource.PXE, enabled=sushy.BootSourceOverrideEnabled.ONCE)
    system.set_indicator_led(sushy.IndicatorLED.BLINKING)
    lab.stop()
    lab.start()
    assert lab.machines.boots == [NETWORK], "it had power, so it has it again, and boots what it was told to"
    system = lab.system()
    assert system.power_state is sushy.PowerState.ON
    assert system.indicator_led is sushy.IndicatorLED.BLINKING
    system.reset_system(sushy.ResetType.FORCE_OFF)
    lab.stop()
    lab.start()
    assert lab.machines.boots == []


def _patch(lab: World, body: Any, system: Any) -> None:
    system._conn.patch(system.path, data=body)
