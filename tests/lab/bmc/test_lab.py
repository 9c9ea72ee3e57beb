"""What a lab with a rack has in the place of the Metal API: facts, certificates, services."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import pytest
from cryptography import x509

from lab import control, facts
from lab.bmc import identity
from lab.bmc.rack import guest_spec, second_mac, spec
from lab.errors import LabError
from lab.layout import Layout
from lab.machines import libvirt_dhcp
from lab.network import certificates, inventory, plan
from tests.lab.openshift import kinds
from tests.provider.fake_virsh import FakeVirsh


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    made = Layout.of(tmp_path / "lab")
    made.make()
    return made


def test_a_rack_is_the_same_after_a_restart(layout: Layout, tmp_path: Path) -> None:
    first = facts.ensure(layout, "simulated", kinds.of(tmp_path), rack=5)
    assert facts.ensure(layout, "simulated", kinds.of(tmp_path), rack=5) == first == facts.load(layout)
    assert first.rack is not None
    assert (first.api, first.bgp) == (None, None)
    assert [each.bmc.address for each in first.rack.servers] == [f"https://192.0.2.{65 + n}" for n in range(5)]
    assert [each.address for each in first.rack.servers] == [f"192.0.2.{97 + n}" for n in range(5)]
    for each in ("uuid", "serial", "mac"):
        assert len({getattr(server, each) for server in first.rack.servers}) == 5
    assert len({server.bmc.password for server in first.rack.servers}) == 5


def test_a_rack_that_is_emulated_has_room_for_a_virtual_machine(layout: Layout, tmp_path: Path) -> None:
    first = facts.ensure(layout, "libvirt", kinds.of(tmp_path), rack=identity.LARGEST)
    assert facts.ensure(layout, "libvirt", kinds.of(tmp_path), rack=identity.LARGEST) == first == facts.load(layout)
    assert first.rack is not None and first.rack.guest is not None
    guest, servers = first.rack.guest, first.rack.servers
    assert (guest.uri, guest.bridge) == ("qemu+tcp://127.0.0.1/system", "facility0")
    assert ipaddress.ip_address(guest.address) in ipaddress.ip_network(plan.SERVERS)
    assert guest.address not in [each.address for each in servers] and guest.mac not in [each.mac for each in servers]
    reservations = libvirt_dhcp.hosts([guest_spec(guest)])
    assert reservations == f"{guest.mac},set:m5254007261ff,{guest.address},infinite\n"
    assert "bootfile-name,http://boot.facility.test/artifacts/boot/boot.ipxe" in libvirt_dhcp.options(
        [guest_spec(guest)]
    )


def test_simulated_machines_have_no_libvirt(layout: Layout, tmp_path: Path) -> None:
    rack = facts.ensure(layout, "simulated", kinds.of(tmp_path), rack=1).rack
    assert rack is not None and rack.guest is None and list(inventory.guests(rack)) == []


def test_virtual_machines_that_are_left_are_told(
    layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rack = facts.ensure(layout, "libvirt", kinds.of(tmp_path), rack=1).rack
    assert rack is not None
    virsh = FakeVirsh(tmp_path / "bin")
    monkeypatch.setenv("PATH", str(virsh.directory), prepend=":")
    for name in (rack.servers[0].uuid, "rack7-bootstrap.rack7.facility.test"):
        virsh.add(name, "<domain/>")
    assert list(inventory.guests(rack)) == ["virtual machine rack7-bootstrap.rack7.facility.test"]


def test_the_largest_rack_has_room() -> None:
    servers = identity.make(identity.LARGEST, "ca.pem")
    assert ipaddress.ip_address(servers[-1].host) in ipaddress.ip_network(plan.BMCS)
    assert ipaddress.ip_address(servers[-1].address) in ipaddress.ip_network(plan.SERVERS)
    for count in (-1, 0, identity.LARGEST + 1):
        with pytest.raises(LabError, match="a rack has 1 to"):
            identity.make(count, "ca.pem")


def test_a_rack_of_simulated_machines_may_be_larger_in_a_network_of_its_own(layout: Layout, tmp_path: Path) -> None:
    with pytest.raises(LabError, match=f"a rack has 1 to {identity.LARGEST} servers"):
        facts.ensure(layout, "libvirt", kinds.of(tmp_path), rack=identity.LARGEST + 1)
    rack = facts.ensure(layout, "simulated", kinds.of(tmp_path), rack=identity.MOST).rack
    assert rack is not None and (rack.gateway, rack.prefix) == (plan.WIDE_GATEWAY, 16)
    ranges = [ipaddress.ip_network(each) for each in (plan.WIDE_BMCS, plan.WIDE_SERVERS)]
    for each in rack.servers:
        assert ipaddress.ip_address(each.host) in ranges[0] and ipaddress.ip_address(each.address) in ranges[1]
    macs = {mac for each in rack.servers for mac in (each.mac, second_mac(each.mac))}
    assert len(macs) == 2 * identity.MOST
    assert spec(rack.servers[-1]).addresses[0].gateway == plan.WIDE_GATEWAY and spec(rack.servers[-1]).ipv6 is None


def test_bmcs_have_certificates_of_their_own(layout: Layout) -> None:
    certificates.ensure(layout, {"server-0": "192.0.2.65", "server-1": "192.0.2.66"})
    made = [x509.load_pem_x509_certificate((layout.tls / f"server-{n}.crt").read_bytes()) for n in range(2)]
    names = [each.extensions.get_extension_for_class(x509.SubjectAlternativeName).value for each in made]
    assert [name.get_values_for_type(x509.IPAddress) for name in names] == [
        [ipaddress.ip_address("192.0.2.65")],
        [ipaddress.ip_address("192.0.2.66")],
    ]
    authority = x509.load_pem_x509_certificate(layout.ca.read_bytes())
    for each in made:
        each.verify_directly_issued_by(authority)


def test_a_lab_with_another_rack_is_not_started(layout: Layout, tmp_path: Path) -> None:
    facts.ensure(layout, "simulated", kinds.of(tmp_path), rack=2)
    for rack, there in ((0, "the Metal API"), (3, "a rack of 3 servers")):
        wanted = control.Wanted(layout=layout, machines="simulated", rack=rack, openshift=lambda: kinds.of(tmp_path))
        with pytest.raises(LabError, match=f"has a rack of 2 servers, not {there}"):
            control.up(wanted, print)
