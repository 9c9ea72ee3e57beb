"""What a BMC tells of its server, Secure Boot, and discs in the virtual drive."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sushy

from lab.bmc.faults import Refused
from lab.live_iso.coreos import Parts, live_iso
from tests.lab.bmc.harness import World, world

pytestmark = pytest.mark.servers

CD_ONCE = {"target": sushy.BootSource.CD, "enabled": sushy.BootSourceOverrideEnabled.ONCE}
UEFI = sushy.BootSourceOverrideMode.UEFI


def _spec(lab: World) -> Any:
    return lab.machines.specs[lab.servers[0].uuid]


def _told(lab: World) -> tuple[Any, Any]:
    system = lab.system()
    return system.memory_summary.size_gib, system.json["ProcessorSummary"]["LogicalProcessorCount"]


def test_a_bmc_tells_of_a_server_and_not_of_the_machine_in_its_place(lab: World) -> None:
    assert _told(lab) == (64, 16)
    lab.system().reset_system(sushy.ResetType.ON)
    assert _spec(lab).memory_mib < 8192


def test_what_a_bmc_tells_can_be_told_otherwise_and_lasts(lab: World) -> None:
    lab.do(do="hardware", server="server-0", memory_gib=8, cpus=2)
    assert _told(lab) == (8, 2)
    lab.stop()
    lab.start()
    assert _told(lab) == (8, 2)
    lab.do(do="hardware", server="server-0", cpus=4)
    assert _told(lab) == (8, 4), "what is not given stays"


def test_a_bmc_that_does_not_tell_its_memory(lab: World) -> None:
    shown = lab.do(do="hardware", server="all", memory_gib=0)
    assert shown["server-0"]["memory_gib"] is None
    assert _told(lab)[0] in (None, 0)


def test_secure_boot_is_switched_by_redfish_and_holds_from_the_next_start(lab: World) -> None:
    system = lab.system()
    system.set_system_boot_options(mode=UEFI)
    system.refresh()
    system.reset_system(sushy.ResetType.ON)
    system.secure_boot.set_enabled(True)
    told = lab.system().secure_boot
    assert (told.enabled, told.current_boot) == (True, sushy.SecureBootCurrentBoot.DISABLED)
    assert not _spec(lab).secure_boot
    system.reset_system(sushy.ResetType.FORCE_RESTART)
    assert _spec(lab).secure_boot and _spec(lab).firmware == "uefi"
    assert lab.system().secure_boot.current_boot is sushy.SecureBootCurrentBoot.ENABLED


def test_secure_boot_needs_uefi(lab: World) -> None:
    server = lab.rack.bmcs["server-0"].server
    server.set_mode("Legacy")
    assert lab.system().secure_boot.enabled is False
    with pytest.raises(Refused, match="SecureBootEnable needs BootSourceOverrideMode UEFI"):
        server.set_secure_boot(True)
    assert lab.do(do="hardware", server="server-0", secure_boot=True)["server-0"]["mode"] == "UEFI"
    with pytest.raises(Refused, match="Secure Boot is on, and needs UEFI"):
        server.set_mode("Legacy")
    lab.do(do="hardware", server="server-0", secure_boot=False)
    server.set_mode("Legacy")


@pytest.mark.parametrize(("kind", "order"), [("disc", ("cd", "disk")), ("ipxe", ("network", "disk"))])
def test_a_drive_boots_what_is_in_it(lab: World, tmp_path: Path, kind: str, order: tuple[str, ...]) -> None:
    path = tmp_path / "medium.img"
    parts = Parts(release="1", kernel=b"k", initramfs=b"i", rootfs=b"r", efi_boot=b"e")
    path.write_bytes(live_iso(parts) if kind == "disc" else b"iPXE" * 10000)
    lab.rack.bmcs["server-0"].server.set_medium(str(path))
    system = lab.system()
    system.set_system_boot_options(**CD_ONCE)
    system.reset_system(sushy.ResetType.ON)
    lab.machines.guest_reset(lab.servers[0].uuid)
    assert lab.machines.boots == [order, ("disk", "network")], "the override is for one boot"
    assert _spec(lab).medium == str(path)


def test_an_empty_drive_boots_nothing(lab: World) -> None:
    system = lab.system()
    system.set_system_boot_options(**CD_ONCE)
    system.reset_system(sushy.ResetType.ON)
    assert lab.machines.boots == [("disk", "network")]


def test_an_inventory_is_of_the_machine_and_changes_by_request(lab: World) -> None:
    server, spec = lab.servers[0], lab.rack.bmcs["server-0"].spec
    system, chassis = f"Systems/{server.uuid}", f"Chassis/{server.uuid}"
    adapters = lab.get(f"{chassis}/NetworkAdapters/0/Ports?$expand=.($levels=1)").json()["Members"]
    assert [each["Ethernet"]["AssociatedMACAddresses"] for each in adapters] == [[spec.mac], [spec.further_macs[0]]]
    interfaces = f"{system}/EthernetInterfaces?$expand=.($levels=1)"
    assert [each["LinkStatus"] for each in lab.get(interfaces).json()["Members"]] == ["LinkUp", "LinkUp"]
    assert lab.get(system).json()["TrustedModules"] == [{"Status": {"State": "Absent"}}], (
        "no machine of the lab has one"
    )

    lab.do(do="hardware", server="server-0", disk_gib=60, tpm="1.2", link=False, health={"memory": "Critical"})
    lab.do(do="hardware", server="server-0", health={"power supply": "Warning"})
    told = lab.get(system).json()
    assert told["TrustedModules"][0]["InterfaceType"] == "TPM1_2"
    assert (told["MemorySummary"]["Status"]["Health"], told["Status"]["HealthRollup"]) == ("Critical", "Critical")
    assert [each["LinkStatus"] for each in lab.get(interfaces).json()["Members"]] == ["LinkDown", "LinkUp"]
    supplies = lab.get(f"{chassis}/PowerSubsystem/PowerSupplies?$expand=.($levels=1)").json()["Members"]
    assert [each["Status"]["Health"] for each in supplies] == ["Warning", "OK"]
    (storage,) = lab.system().storage.get_members()
    assert [drive.capacity_bytes for drive in storage.drives] == [60 << 30, (spec.disks[1].size_mib << 20) * 32]
    for wrong in ({"tpm": "3"}, {"health": {"fan": "Critical"}}, {"health": {"disk": "bad"}}):
        with pytest.raises(Refused, match="is not"):
            lab.do(do="hardware", server="server-0", **wrong)


def test_a_bmc_may_tell_of_another_ones_server(tmp_path: Path) -> None:
    with world(tmp_path, 2) as lab:
        with pytest.raises(Refused, match="name one server"):
            lab.do(do="hardware", server="server-1", same_as="all")
        lab.do(do="hardware", server="server-1", same_as="server-0")
        told = lab.get(f"Systems/{lab.servers[0].uuid}").json()
        other = lab.system(1).json
        assert (other["UUID"], other["SerialNumber"]) == (told["UUID"], told["SerialNumber"])
