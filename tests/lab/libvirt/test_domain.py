"""What libvirt and dnsmasq are told about a machine."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from lab.machines import libvirt_dhcp
from lab.machines.base import Address, BootDevice, Disk, MachineSpec
from lab.machines.libvirt_domain import SECURE_OVMF, domain_xml

SPEC = MachineSpec(
    id="6ac2a3d0-0000-4000-8000-000000000001",
    hostname="lab-worker-0",
    mac="52:54:00:aa:bb:cc",
    addresses=(
        Address(address="198.51.100.3", prefix=31, gateway="198.51.100.2", public=True),
        Address(address="203.0.113.3", prefix=31, gateway="203.0.113.2", public=False),
    ),
    memory_mib=768,
    cpus=2,
)


@pytest.fixture
def domain() -> ET.Element:
    return ET.fromstring(domain_xml(SPEC, bridge="facility0", directory="/mnt/x"))


def _order(domain: ET.Element) -> list[tuple[str, str | None]]:
    return [
        (device.tag, device.findtext("serial"))
        for rank in ("1", "2")
        for device in domain.findall(f"devices/*/boot[@order='{rank}']/..")
    ]


def test_a_machine_is_emulated_and_boots_from_the_network_only(domain: ET.Element) -> None:
    assert domain.get("type") == "qemu"
    assert _order(domain) == [("interface", None)]
    assert not list(domain.iter("disk"))
    assert domain.findtext("on_reboot") == "restart"


def test_a_machine_of_a_rack_boots_in_the_order_of_the_moment() -> None:
    spec = replace(
        SPEC,
        firmware="uefi",
        disks=(Disk(serial="A1", size_mib=64), Disk(serial="B2", size_mib=64, rotational=True)),
    )
    text = domain_xml(spec, bridge="facility0", directory="/mnt/x", order=("disk", "network"), resets=False)
    domain = ET.fromstring(text)
    assert _order(domain) == [("disk", "A1"), ("interface", None)]
    assert domain.findtext("on_reboot") == "destroy"
    disks = [(disk.find("source"), disk.find("target")) for disk in domain.iter("disk")]
    assert [source.get("file") for source, _ in disks if source is not None] == [
        "/mnt/x/disk-A1.img",
        "/mnt/x/disk-B2.img",
    ]
    assert [target.get("rotation_rate") for _, target in disks if target is not None] == ["1", "7200"]
    assert domain.findtext("os/nvram") == "/mnt/x/nvram.fd"
    assert domain.findtext("uuid") == spec.id


def test_a_machine_with_secure_boot_has_the_keys_of_servers_and_what_keeps_them() -> None:
    spec = replace(SPEC, firmware="uefi", secure_boot=True)
    domain = ET.fromstring(domain_xml(spec, bridge="facility0", directory="/mnt/x"))
    loader, kept = domain.find("os/loader"), domain.find("os/nvram")
    assert loader is not None and loader.attrib == {"readonly": "yes", "secure": "yes", "type": "pflash"}
    assert kept is not None and (kept.get("template"), kept.text) == (SECURE_OVMF[1], "/mnt/x/nvram-secure.fd")
    machine, smm = domain.find("os/type"), domain.find("features/smm")
    assert machine is not None and machine.get("machine") == "q35"
    assert smm is not None and smm.get("state") == "on"


def test_a_disc_is_in_the_drive_while_it_is_booted_from() -> None:
    spec = replace(SPEC, disks=(Disk(serial="A1", size_mib=64),), medium="/elsewhere/live.iso")

    def kinds(*order: BootDevice) -> list[tuple[str | None, str | None]]:
        domain = ET.fromstring(domain_xml(spec, bridge="facility0", directory="/mnt/x", order=order))
        drives = domain.findall("devices/disk")
        ranks = [
            (drive.get("device"), rank.get("order") if (rank := drive.find("boot")) is not None else None)
            for drive in drives
        ]
        sources = [source.get("file") for drive in drives if (source := drive.find("source")) is not None]
        assert ("/mnt/x/medium.iso" in sources) is ("cd" in order)
        return ranks

    assert kinds("cd", "disk") == [("disk", "2"), ("cdrom", "1")]
    assert kinds("disk", "network") == [("disk", "1")]


def test_a_machine_has_the_size_name_and_port_that_were_ordered(domain: ET.Element) -> None:
    memory = domain.find("memory")
    assert memory is not None and (memory.text, memory.get("unit")) == ("768", "MiB")
    assert (domain.findtext("vcpu"), domain.findtext("name"), domain.findtext("title")) == ("2", SPEC.id, SPEC.hostname)
    (interface,) = domain.iter("interface")
    assert {child.tag: child.attrib for child in interface} == {
        "mac": {"address": SPEC.mac},
        "source": {"bridge": "facility0"},
        "model": {"type": "virtio"},
        "boot": {"order": "1"},
    }


def test_both_serial_ports_add_to_one_console(domain: ET.Element) -> None:
    ports = [(serial.find("source"), serial.find("target")) for serial in domain.iter("serial")]
    assert [target.get("port") for _, target in ports if target is not None] == ["0", "1"]
    for source, _ in ports:
        assert source is not None and source.attrib == {"path": "/mnt/x/console.log", "append": "on"}


RACK = replace(
    SPEC,
    addresses=(Address(address="192.0.2.97", prefix=24, gateway="192.0.2.1", public=True),),
    boot_url="http://boot.facility.test/boot/boot.ipxe",
)
"""Of one network, and one script."""


@pytest.mark.parametrize(
    ("spec", "netmask", "script"),
    [(SPEC, "255.255.255.254", f"http://192.0.2.11/ipxe/{SPEC.id}"), (RACK, "255.255.255.0", RACK.boot_url)],
)
def test_dhcp_gives_the_first_address_alone_and_the_way_to_the_script(
    spec: MachineSpec, netmask: str, script: str
) -> None:
    first = spec.addresses[0]
    assert libvirt_dhcp.hosts([spec]) == f"52:54:00:aa:bb:cc,set:m525400aabbcc,{first.address},infinite\n"
    assert libvirt_dhcp.options([spec]).splitlines() == [
        f"tag:m525400aabbcc,option:netmask,{netmask}",
        f"tag:m525400aabbcc,option:router,{first.gateway}",
        f"tag:m525400aabbcc,option:bootfile-name,{script}",
    ]


def test_dnsmasq_takes_the_configuration(tmp_path: Path) -> None:
    if shutil.which("dnsmasq") is None:
        pytest.skip("dnsmasq is not installed")
    (tmp_path / "dnsmasq.conf").write_text(libvirt_dhcp.configuration(tmp_path, "facility0"))
    result = subprocess.run(
        ["dnsmasq", "--test", f"--conf-file={tmp_path / 'dnsmasq.conf'}"], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr.strip()) == (0, "dnsmasq: syntax check OK.")
