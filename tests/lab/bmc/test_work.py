"""Volumes, firmware and tasks of a BMC, by real sushy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sushy
import sushy.exceptions

from lab.bmc import work
from lab.bmc.updates import firmware
from tests.lab.bmc.harness import World
from tests.lab.waiting import until
from tests.serving import serving

pytestmark = pytest.mark.servers


def storage(lab: World) -> Any:
    (found,) = lab.system().storage.get_members()
    return found


def wanted(lab: World, raid: str = "RAID1", **more: Any) -> dict[str, Any]:
    """A volume of all drives."""
    drives = [{"@odata.id": drive.path} for drive in storage(lab).drives]
    return {"RAIDType": raid, "Links": {"Drives": drives}, **more}


def seen(lab: World) -> list[tuple[str, int]]:
    """The disks that the operating system sees: serial number, MiB."""
    lab.system().reset_system(sushy.ResetType.FORCE_RESTART if lab.machines.orders else sushy.ResetType.ON)
    return [(disk.serial, disk.size_mib) for disk in lab.machines.specs[lab.servers[0].uuid].disks]


def test_a_volume_is_the_disk_that_the_system_sees_until_it_is_deleted(lab: World) -> None:
    drives = seen(lab)
    volumes = storage(lab).volumes
    assert volumes.operation_apply_time_support.mapped_supported_values == [sushy.APPLY_TIME_IMMEDIATE]
    made = volumes.create(wanted(lab, Name="root"), apply_time=sushy.APPLY_TIME_IMMEDIATE)
    assert (made.name, made.raid_type.value, made.capacity_bytes) == ("root", "RAID1", 32 * 4096 << 20)
    assert [volume.identity for drive in storage(lab).drives for volume in drive.volumes] == [made.identity] * 2
    with pytest.raises(sushy.exceptions.BadRequestError, match="are in use: delete that volume first"):
        volumes.create(wanted(lab))
    assert seen(lab) == [(made.identity, 4096)]
    assert [serial for call, serial in lab.machines.calls if call == "blank"] == [serial for serial, _ in drives]
    lab.stop()
    lab.start()
    (kept,) = storage(lab).volumes.get_members()
    kept.delete(apply_time=sushy.APPLY_TIME_IMMEDIATE)
    assert storage(lab).volumes.get_members() == [] and seen(lab) == drives
    assert ("blank", made.identity) in lab.machines.calls


def test_a_controller_that_waits_for_a_restart(lab: World) -> None:
    lab.do(do="hardware", server="server-0", raid_on_reset=True)
    volumes = storage(lab).volumes
    with pytest.raises(sushy.exceptions.BadRequestError, match="'Immediate' is not OnReset"):
        volumes.create(wanted(lab), apply_time=sushy.APPLY_TIME_IMMEDIATE)
    task = volumes.create(wanted(lab, "RAID0"), apply_time=sushy.APPLY_TIME_ON_RESET)
    assert task.check_is_processing and storage(lab).volumes.get_members() == []
    with pytest.raises(sushy.exceptions.BadRequestError, match="are in use"):
        volumes.create(wanted(lab))
    (disk,) = seen(lab)
    assert not task.check_is_processing and task.get_task().task_state is sushy.TASK_STATE_COMPLETED
    (made,) = storage(lab).volumes.get_members()
    assert disk == (made.identity, 8192)
    task = made.delete(apply_time=sushy.APPLY_TIME_ON_RESET)
    assert len(seen(lab)) == 2 and not task.check_is_processing


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"RAIDType": "RAID5"}, "RAIDType 'RAID5' is not one of RAID0, RAID1"),
        ({"Links": {"Drives": []}}, "RAID1 takes 2 drives of"),
        ({"CapacityBytes": 1 << 40}, "is not between 32 and 137438953472"),
        ({"Encrypted": True}, "a volume has no writable Encrypted"),
    ],
)
def test_volumes_that_cannot_be_made(lab: World, change: dict[str, Any], why: str) -> None:
    with pytest.raises(sushy.exceptions.BadRequestError, match=why):
        storage(lab).volumes.create({**wanted(lab), **change})


def _answers(lab: World) -> bool:
    try:
        lab.system()
    except sushy.exceptions.ConnectionError:
        return False
    return True


def test_firmware_of_the_server_waits_for_a_start_and_that_of_the_bmc_does_not(
    lab: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "SECONDS", 3600.0)
    with serving(tmp_path) as url:
        for name, content in (
            ("bios.bin", firmware("BIOS", "2.0")),
            ("bmc.bin", firmware("BMC", "3.0")),
            ("else.bin", b"{}"),
        ):
            (tmp_path / name).write_bytes(content)
        service = lab.sushy().get_update_service()
        bios = service.simple_update(f"{url}/bios.bin")
        bmc = service.simple_update(f"{url}/bmc.bin")
        assert lab.system().bios_version == "lab-1.0" and bios.check_is_processing
        lab.system().reset_system(sushy.ResetType.ON)
        assert lab.system().bios_version == "2.0" and not bios.check_is_processing
        for name, why in (("else.bin", "not firmware of this server"), ("nothing", "404")):
            task = service.simple_update(f"{url}/{name}").get_task()
            assert task.task_state is sushy.TASK_STATE_EXCEPTION and why in task.messages[0].message
        assert bmc.check_is_processing
        monkeypatch.setattr(work, "SECONDS", 0.0)
        assert not bmc.check_is_processing
        assert lab.rack.bmcs["server-0"].server.settings.work.versions == {"BIOS": "2.0", "BMC": "3.0"}
        with pytest.raises(sushy.exceptions.ConnectionError):
            lab.system()  # the BMC restarts
        until(lambda: _answers(lab), 30)
        assert lab.system().managers[0].firmware_version == "3.0"
