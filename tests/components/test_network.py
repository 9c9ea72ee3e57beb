"""The profile of a static network, as NetworkManager's own library reads it, and as OVN's bridge needs it."""

from __future__ import annotations

import ctypes.util
import dataclasses
import subprocess
import sys

import pytest

from lab import setup
from metal_ipi.components.boot.bond import VlanInterface, bond_files
from metal_ipi.components.boot.network import StaticIpv6
from tests.components.test_installer import NETWORK

_LIBRARY = setup.Package("libnm0", "/usr/lib/x86_64-linux-gnu/libnm.so.0")
_IPV6 = StaticIpv6(address="2001:db8:64::61", gateway="2001:db8:64::1", prefix=64)
_BOTH = dataclasses.replace(NETWORK, ipv6=_IPV6)
_BONDS = bond_files([VlanInterface(name="storage", vlan=1000, address="192.0.2.3/26")], ["eno*", "enp*"])


@pytest.fixture(scope="module")
def libnm() -> None:
    """Debian's libnm0, installed where it is not there."""
    setup.install(setup.missing([_LIBRARY]), print)
    if ctypes.util.find_library("nm") is None:
        pytest.skip("libnm is not installed (Debian package libnm0)")


def _read(text: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.components.libnm"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


@pytest.mark.usefixtures("libnm")
def test_networkmanager_reads_all_of_it() -> None:
    read = _read(NETWORK.profile.text)
    assert read.returncode == 0, read.stderr
    for part in (
        "'connection': {'id': <'metal-ipi-eno1'>, 'interface-name': <'eno1'>",
        "'type': <'802-3-ethernet'>",
        "'wait-device-timeout': <60000>",
        "'ipv4': {'address-data': <[{'address': <'192.0.2.97'>, 'prefix': <uint32 24>}]>, 'dns-data': <['192.0.2.53']>",
        "'gateway': <'192.0.2.1'>, 'may-fail': <false>, 'method': <'manual'>",
        "'method': <'disabled'>",
    ):
        assert part in read.stdout


@pytest.mark.usefixtures("libnm")
def test_networkmanager_reads_both_families() -> None:
    read = _read(_BOTH.profile.text)
    assert read.returncode == 0, read.stderr
    for part in (
        "'ipv4': {'address-data': <[{'address': <'192.0.2.97'>, 'prefix': <uint32 24>}]>",
        "'address-data': <[{'address': <'2001:db8:64::61'>, 'prefix': <uint32 64>}]>",
        "'gateway': <'2001:db8:64::1'>, 'may-fail': <false>, 'method': <'manual'>",
    ):
        assert part in read.stdout


def test_a_live_system_is_told_both_families() -> None:
    """dracut.cmdline(7): IPv6 addresses in brackets; the mask is a prefix length."""
    assert [each for each in _BOTH.arguments if each.startswith("ip=")] == [
        f"ip=192.0.2.97::192.0.2.1:255.255.255.0:{NETWORK.hostname}:eno1:none",
        f"ip=[2001:db8:64::61]::[2001:db8:64::1]:64:{NETWORK.hostname}:eno1:none",
    ]
    assert "2001:db8:64::61/64, gateway 2001:db8:64::1" in _BOTH.told


@pytest.mark.usefixtures("libnm")
@pytest.mark.parametrize("file", _BONDS, ids=lambda file: file.path.rpartition("/")[2])
def test_networkmanager_reads_the_profiles_of_a_bond(file: object) -> None:
    read = _read(getattr(file, "text", ""))
    assert (read.returncode, read.stderr) == (0, "")


@pytest.mark.usefixtures("libnm")
@pytest.mark.parametrize(
    "text",
    ["no key file", "[connection]\nid=x\n", NETWORK.profile.text.replace("192.0.2.97/24", "192.0.2.397/24")],
    ids=["no-keyfile", "no-type", "no-address"],
)
def test_what_it_does_not_read_is_told(text: str) -> None:
    """The test above can fail."""
    assert _read(text).returncode == 1


def test_the_profile_is_one_that_configure_ovs_can_clone() -> None:
    """configure-ovs.sh rewrites `type=` of [connection], and a clone bound to a MAC address fits no OVS interface."""
    first, _, rest = NETWORK.profile.text.partition("\n\n")
    assert first.startswith("[connection]\n") and "\ntype=ethernet\n" in first
    assert "mac-address" not in NETWORK.profile.text and "[ethernet]" not in rest
    assert "method=manual" in rest, "only a manual method is cloned with its addresses"


def test_only_root_can_read_it() -> None:
    """NetworkManager leaves any other file alone."""
    assert NETWORK.profile.mode == 0o600
    assert NETWORK.profile.path == "/etc/NetworkManager/system-connections/metal-ipi-eno1.nmconnection"


def test_two_machines_have_profiles_of_their_own() -> None:
    other = dataclasses.replace(NETWORK, hostname="rack-worker-1.rack.facility.test")
    assert other.profile.text != NETWORK.profile.text, "a UUID is one connection's"
