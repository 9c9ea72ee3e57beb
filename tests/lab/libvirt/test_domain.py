"""What libvirt and dnsmasq are told about a machine."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from lab.machines import libvirt_dhcp
from lab.machines.base import Address, MachineSpec
from lab.machines.libvirt_domain import domain_xml

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
    return ET.fromstring(domain_xml(SPEC, bridge="facility0", console="/mnt/x/console.log"))


def test_a_machine_is_emulated_and_boots_from_the_network_only(domain: ET.Element) -> None:
    assert domain.get("type") == "qemu"
    assert [boot.get("dev") for boot in domain.iter("boot")] == ["network"]
    assert not list(domain.iter("disk"))


def test_a_machine_has_the_size_name_and_port_that_were_ordered(domain: ET.Element) -> None:
    memory = domain.find("memory")
    assert memory is not None and (memory.text, memory.get("unit")) == ("768", "MiB")
    assert (domain.findtext("vcpu"), domain.findtext("name"), domain.findtext("title")) == ("2", SPEC.id, SPEC.hostname)
    (interface,) = domain.iter("interface")
    assert {child.tag: child.attrib for child in interface} == {
        "mac": {"address": SPEC.mac},
        "source": {"bridge": "facility0"},
        "model": {"type": "virtio"},
    }


def test_both_serial_ports_add_to_one_console(domain: ET.Element) -> None:
    ports = [(serial.find("source"), serial.find("target")) for serial in domain.iter("serial")]
    assert [target.get("port") for _, target in ports if target is not None] == ["0", "1"]
    for source, _ in ports:
        assert source is not None and source.attrib == {"path": "/mnt/x/console.log", "append": "on"}


def test_dhcp_gives_the_public_address_alone_and_the_way_to_the_script() -> None:
    assert libvirt_dhcp.hosts([SPEC]) == "52:54:00:aa:bb:cc,set:m525400aabbcc,198.51.100.3,infinite\n"
    assert libvirt_dhcp.options([SPEC]).splitlines() == [
        "tag:m525400aabbcc,option:netmask,255.255.255.254",
        "tag:m525400aabbcc,option:router,198.51.100.2",
        f"tag:m525400aabbcc,option:bootfile-name,http://192.0.2.11/ipxe/{SPEC.id}",
    ]


def test_dnsmasq_takes_the_configuration(tmp_path: Path) -> None:
    if shutil.which("dnsmasq") is None:
        pytest.skip("dnsmasq is not installed")
    (tmp_path / "dnsmasq.conf").write_text(libvirt_dhcp.configuration(tmp_path, "facility0"))
    result = subprocess.run(
        ["dnsmasq", "--test", f"--conf-file={tmp_path / 'dnsmasq.conf'}"], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr.strip()) == (0, "dnsmasq: syntax check OK.")
