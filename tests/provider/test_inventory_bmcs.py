"""What is read of a server whose BMC is shaped as vendors shape theirs; the values are made up.

Shapes: Dell's, HPE's, Supermicro's and Lenovo's guides to their Redfish services, and what their users reported
(bb-Ricardo/check_redfish, issues 20, 48, 66, 80).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from metal_ipi.provider.inventory.facts import Card, Disk, Drive, Hardware, Part
from metal_ipi.provider.platforms.redfish import survey
from metal_ipi.provider.platforms.redfish.documents import MOST, Documents
from tests.provider.redfish_tree import CHASSIS, MANAGER, SYSTEM, Tree, bmc, collection, link

MAC, OTHER = "0c:42:a1:00:00:01", "0c:42:a1:00:00:02"
ONE_LEVEL = {"ExpandAll": True, "Levels": True, "Links": True, "MaxLevels": 1, "NoLinks": True}
OK = {"State": "Enabled", "Health": "OK"}


def read(tree: Tree, *macs: str) -> Hardware:
    return survey.read("server worker-0", Documents(), tree.system(), macs)


def _idrac() -> Tree:
    storage, boss = f"{SYSTEM}/Storage", f"{SYSTEM}/Storage/AHCI.SL.6-1"
    drives = {
        name: {"Name": name, "CapacityBytes": 240057409536, "MediaType": "SSD", "Model": "MTFDDAV240", "Status": OK}
        for name in ("SSD 0", "SSD 1")
    }
    raw = {"Name": "Disk 0", "CapacityBytes": 1200243695616, "MediaType": "HDD", "SerialNumber": " WFK123 ",
           "Manufacturer": "SEAGATE", "FailurePredicted": True, "Status": OK, "Protocol": "SAS",
           "Identifiers": [{"DurableName": "5000C500ABCDEF01", "DurableNameFormat": "NAA"}]}  # fmt: skip
    perc = f"{storage}/RAID.Integrated.1-1"
    return bmc(
        {
            "Manufacturer": "Dell Inc.", "Model": "PowerEdge R650", "SerialNumber": "CNIVC0001", "BiosVersion": "1.9",
            "UUID": "4C4C4544-0044-4A10-8036-B2C04F4D3533", "Status": {"Health": "Critical"},
            "MemorySummary": {"TotalSystemMemoryGiB": 256, "Status": OK},
            "ProcessorSummary": {"LogicalProcessorCount": 64, "Status": OK},
            "TrustedModules": [{"InterfaceType": "TPM2_0", "Status": {"State": "Enabled"}}],
            "Boot": {"BootSourceOverrideEnabled": "Disabled", "BootSourceOverrideMode": "UEFI",
                     "BootSourceOverrideMode@Redfish.AllowableValues": ["Legacy", "UEFI"],
                     "BootSourceOverrideTarget@Redfish.AllowableValues": ["None", "Pxe", "Cd", "Hdd", "UefiHttp"]},
            "EthernetInterfaces": link(f"{SYSTEM}/EthernetInterfaces"), "Processors": link(f"{SYSTEM}/Processors"),
            "Storage": link(storage), "SecureBoot": link(f"{SYSTEM}/SecureBoot"),
        },
        {f"{SYSTEM}/SecureBoot": {"Id": "s", "Name": "s", "SecureBootEnable": False}},
        collection(f"{SYSTEM}/EthernetInterfaces", {
            "NIC.Integrated.1-1-1": {"PermanentMACAddress": MAC.upper(), "LinkStatus": "LinkUp"},
            "NIC.Integrated.1-2-1": {"MACAddress": OTHER, "LinkStatus": "LinkDown"},
        }),
        collection(f"{SYSTEM}/Processors", {
            "Video.Slot.7-1": {"ProcessorType": "GPU", "InstructionSet": None},
            "CPU.Socket.1": {"ProcessorType": "CPU", "InstructionSet": [{"Member": "x86-64"}]},
        }),
        collection(storage, {
            "AHCI.SL.6-1": {"Drives": [link(f"{boss}/D/{each}") for each in drives], "Volumes": link(f"{boss}/V")},
            "RAID.Integrated.1-1": {"Drives": [link(f"{perc}/D/0")], "Volumes": link(f"{perc}/Volumes")},
            "CPU.1": {"Drives": []},
        }),
        {f"{boss}/D/{name}": drive for name, drive in drives.items()},
        {f"{perc}/D/0": raw},
        collection(f"{boss}/V", {"Disk.Virtual.0": {"Name": "VD 0", "RAIDType": "RAID1", "CapacityBytes": 240057409536,
                   "Links": {"Drives": [link(f"{boss}/D/{each}") for each in drives]}}}),
        collection(f"{perc}/Volumes", {"Disk.Bay.0": {"Name": "Disk 0", "VolumeType": "RawDevice", "RAIDType": None}}),
        {CHASSIS: {"Power": link(f"{CHASSIS}/Power")}},
        {f"{CHASSIS}/Power": {"PowerSupplies": [
            {"Name": "PS1 Status", "MemberId": "PSU.Slot.1", "Status": OK},
            {"Name": "PS2 Status", "MemberId": "PSU.Slot.2", "Status": {"State": "Enabled", "Health": "Critical"}}]}},
        {MANAGER: {"FirmwareVersion": "6.10.30.00", "DateTime": datetime.now(UTC).isoformat(),
                   "VirtualMedia": link(f"{MANAGER}/VirtualMedia")}},
        collection(f"{MANAGER}/VirtualMedia", {
            "RemovableDisk": {"Id": "RemovableDisk", "MediaTypes": ["USBStick"]},
            "CD": {"Id": "CD", "MediaTypes": ["CD", "DVD"], "Inserted": True, "Image": "http://h.test/a-secret-path/x.iso"},
        }),
        features=ONE_LEVEL,
    )  # fmt: skip


def test_dell() -> None:
    tree = _idrac()
    found = read(tree, MAC)
    assert (found.manufacturer, found.uuid) == ("Dell Inc.", "4c4c4544-0044-4a10-8036-b2c04f4d3533")
    assert (found.architecture, found.memory_mib, found.cpus) == ("x86_64", 256 * 1024, 64)
    assert found.cards == [Card(mac=MAC, link="up"), Card(mac=OTHER, link="down")]
    volume, disk = found.disks or [None, None]
    assert volume is not None and disk is not None
    assert volume == Disk(name="VD 0", size_bytes=240057409536, raid="RAID1"), "its disks are no system's to see"
    assert (disk.serial, disk.vendor, disk.wwns) == (" WFK123 ", "SEAGATE", ["5000c500abcdef01"])
    assert (found.boot_mode, found.boot_modes, found.secure_boot) == ("uefi", ["bios", "uefi"], False)
    assert (found.tpm, found.firmware, found.override) == ("2.0", {"BIOS": "1.9", "BMC": "6.10.30.00"}, None)
    assert found.drives == [Drive(name="CD", disc="a disc of h.test")], "URLs of discs are secrets of whoever made them"
    assert found.clock is not None and abs(found.clock[0] - found.clock[1]) < timedelta(seconds=60)
    assert [part for part in found.parts or () if part.health != "OK"] == [
        Part(kind="system", name="", health="Critical"),
        Part(kind="power supply", name="PS2 Status", health="Critical"),
        Part(kind="disk", name="Disk 0", health="Warning"),
    ]
    assert len(tree.asked) <= 20, "lists come with what is in them"
    assert len(tree.asked) == len(set(tree.asked)), "and each document once"


def test_hpe() -> None:
    adapters = f"{CHASSIS}/NetworkAdapters"
    tree = bmc(
        {
            "Manufacturer": "HPE", "SerialNumber": "CZ2 ", "UUID": "30373237-3132-4D32-3231-313930304C33",
            "TrustedModules": [{"Status": {"State": "Absent"}}],
            "Boot": {"BootSourceOverrideEnabled": "Continuous", "BootSourceOverrideTarget": "Pxe",
                     "BootSourceOverrideMode": "UEFI"},
            # After a power cut, and before the first self test.
            "EthernetInterfaces": link(f"{SYSTEM}/EthernetInterfaces"), "MemorySummary": {"TotalSystemMemoryGiB": 0},
            "Storage": link(f"{SYSTEM}/Storage"), "Status": {"Health": "OK", "HealthRollup": "Warning"},
        },
        collection(f"{SYSTEM}/EthernetInterfaces", {"1": {"MACAddress": MAC, "LinkStatus": None}}),
        {CHASSIS: {"NetworkAdapters": link(adapters), "Power": link(f"{CHASSIS}/Power")}},
        collection(adapters, {"DC07": {"NetworkPorts": link(f"{adapters}/DC07/NetworkPorts")}}),
        collection(f"{adapters}/DC07/NetworkPorts",
                   {"0": {"AssociatedNetworkAddresses": [OTHER.upper()], "LinkStatus": "Up"}}),
        {f"{CHASSIS}/Power": {"PowerSupplies": [{"MemberId": "1", "Status": {"State": "Absent"}}]}},
        {MANAGER: {"DateTime": "1970-01-01T00:02:03Z"}},
        features={**ONE_LEVEL, "ExpandAll": False},
    )  # fmt: skip
    found = read(tree, OTHER)
    assert found.cards == [Card(mac=MAC), Card(mac=OTHER, link="up")]
    assert (found.disks, found.memory_mib, found.cpus, found.architecture, found.drives) == (None,) * 5
    assert (found.tpm, found.override, found.secure_boot, found.serial) == ("none", "Pxe", None, "CZ2")
    assert found.clock is not None and found.clock[0].year == 1970
    assert [(part.name, part.health) for part in found.parts or ()] == [("", "OK"), ("as a whole", "Warning")]
    asked = read(again := bmc({"EthernetInterfaces": link(f"{SYSTEM}/E")}, collection(f"{SYSTEM}/E",
                 {"1": {"MACAddress": MAC}}), {CHASSIS: {"NetworkAdapters": link(adapters)}}), MAC)  # fmt: skip
    assert asked.cards == [Card(mac=MAC)] and adapters not in again.asked, "all that is looked for was told"


def test_supermicro() -> None:
    adapters = f"{CHASSIS}/A"
    tree = bmc(
        {
            "Manufacturer": "Supermicro", "SerialNumber": "Default string", "TrustedModules": [],
            "UUID": "00000000-0000-0000-0000-AC1F6B000001", "Processors": link(f"{SYSTEM}/Processors"),
            "Boot": {"BootSourceOverrideMode": "Legacy"},
        },
        collection(f"{SYSTEM}/Processors", {"1": {"ProcessorArchitecture": "ARM"}}),
        {CHASSIS: {"NetworkAdapters": link(adapters)}},
        collection(adapters, {"1": {"NetworkDeviceFunctions": link(f"{adapters}/N"), "Ports": link(f"{adapters}/P")}}),
        collection(f"{adapters}/N", {"1": {"Ethernet": {"MACAddress": MAC.replace(":", "-")}}, "2": {}}),
        collection(f"{adapters}/P", {"1": {"LinkStatus": "LinkDown", "Ethernet": {"AssociatedMACAddresses": [MAC]}}}),
        {MANAGER: {"VirtualMedia": link(f"{MANAGER}/VirtualMedia")}, f"{MANAGER}/VirtualMedia": {"Members": []}},
    )  # fmt: skip
    found = read(tree, MAC)
    assert found.cards == [Card(mac=MAC, link="down")]
    assert (found.tpm, found.architecture, found.boot_mode, found.drives) == ("none", "aarch64", "bios", [])


def _lenovo(drives: int, *, expands: bool = True, refuses: tuple[str, ...] = ()) -> Tree:
    storage = f"{SYSTEM}/Storage"
    disks = {f"{storage}/RAID/Drives/{number}": {"Name": f"Disk.{number}", "CapacityBytes": 10**12}
             for number in range(drives)}  # fmt: skip
    tpm = {"InterfaceType": "TPM2_0", "Status": {"State": "Disabled"}}
    return bmc(
        {"Storage": link(storage), "TrustedModules": [tpm], "EthernetInterfaces": link(f"{SYSTEM}/E")},
        collection(storage, {"RAID": {"Drives": [link(each) for each in disks]}}),
        disks,
        collection(f"{SYSTEM}/E", {"1": {"MACAddress": MAC}}),
        {CHASSIS: {"PowerSubsystem": link(f"{CHASSIS}/PowerSubsystem")},
         f"{CHASSIS}/PowerSubsystem": {"PowerSupplies": link(f"{CHASSIS}/S")}},
        collection(f"{CHASSIS}/S", {"1": {"Name": "PSU1", "Status": OK}}),
        features={"NoLinks": expands},
        refuses_queries=refuses,
    )  # fmt: skip


def test_lenovo() -> None:
    """42 disks, eleven seconds each."""
    tree = _lenovo(42)
    found = read(tree, MAC)
    assert len(found.disks or ()) == 42 and len(tree.asked) <= 12
    assert (found.tpm, found.parts) == ("off", [Part(kind="power supply", name="PSU1", health="OK")])


def test_lists_that_cannot_be_expanded_are_read_one_by_one() -> None:
    tree = _lenovo(5, refuses=(f"{SYSTEM}/E", f"{SYSTEM}/Storage", f"{SYSTEM}/Storage/RAID"))
    found = read(tree, MAC)
    assert (found.cards, len(found.disks or ())) == ([Card(mac=MAC)], 5)
    assert sum("?" in path for path in tree.asked) == 1, "what was refused once is not tried again"


def test_no_more_is_asked_than_so_much() -> None:
    tree = _lenovo(MOST, expands=False)
    found = read(tree, MAC)
    assert (found.disks, found.cards) == (None, [Card(mac=MAC)]), "half of the disks would be mistaken for all"
    assert len(tree.asked) <= MOST + 4, "sushy's own are not counted"


def test_a_card_is_not_missing_where_the_bmc_was_asked_no_more() -> None:
    adapters = f"{CHASSIS}/A"
    tree = bmc(
        {"EthernetInterfaces": link(f"{SYSTEM}/E")},
        collection(f"{SYSTEM}/E", {"1": {"MACAddress": MAC}}),
        {CHASSIS: {"NetworkAdapters": link(adapters)}},
        collection(adapters, {str(number): {} for number in range(MOST)}),
    )
    assert read(tree, MAC).cards == [Card(mac=MAC)] and read(tree, OTHER).cards is None


def test_a_list_that_is_not_there_does_not_end_what_lists_are_expanded() -> None:
    tree = _lenovo(42)
    tree.documents[SYSTEM]["Memory"] = link(f"{SYSTEM}/Memory")
    assert len(read(tree, MAC).disks or ()) == 42 and len(tree.asked) <= 14


def test_disks_of_simple_storage() -> None:
    simple = f"{SYSTEM}/SimpleStorage"
    devices = [{"Name": "D0", "CapacityBytes": 10**12, "Model": "M"}, {"Name": "empty", "CapacityBytes": None}]
    tree = bmc(
        {"SimpleStorage": link(simple)},
        collection(simple, {"1": {"Devices": devices}, "2": {}, "3": {"Devices": 3}}),
    )
    assert read(tree).disks == [Disk(name="D0", size_bytes=10**12, model="M")]


def test_virtual_drives_are_those_of_all_managers() -> None:
    other, media = "/redfish/v1/Managers/2", "/redfish/v1/Managers/2/VirtualMedia"
    tree = bmc(
        {"Links": {"ManagedBy": [link(MANAGER), link(other)]}},
        {MANAGER: {"FirmwareVersion": "1"}, other: {"VirtualMedia": link(media)}},
        collection(media, {"1": {"Id": "Cd", "MediaTypes": ["CD"]}}),
    )
    found = read(tree)
    assert (found.drives, found.firmware) == ([Drive(name="Cd")], {"BMC": "1"})


def test_documents_of_another_shape_are_not_told() -> None:
    odd = {"TrustedModules": {"a": 1}, "Boot": {}, "Storage": link(f"{SYSTEM}/S"), "Links": {"Chassis": {"a": 1}},
           "EthernetInterfaces": {}, "Processors": 7}  # fmt: skip
    found = read(bmc(odd, {f"{SYSTEM}/S": {"Members": 3}}), MAC)
    assert (found.tpm, found.boot_mode, found.memory_mib, found.disks, found.cards, found.drives) == (None,) * 6
