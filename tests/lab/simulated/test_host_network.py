"""Simulated machines with networks of their own: what nmstatectl's profiles make of their cards."""

from __future__ import annotations

from functools import reduce
from pathlib import Path

import pytest

from lab.machines.base import Address
from lab.machines.simulated import host_network
from lab.machines.simulated.kernel import BootError, Installed, Kernel

_CARDS = {"eth0": "52:54:00:72:61:00", "eth1": "52:54:00:72:62:00"}
_ADDRESS = Address(address="192.0.2.97", prefix=24, gateway="192.0.2.1", public=True)


def _profiles(kind: str, case: str = "bonded") -> dict[str, str]:
    """Those of the first server of the stack `bonded`, or of another case, as nmstatectl made them."""
    golden = Path(__file__).resolve().parents[2] / f"golden/host-network-{case}.txt"
    parts = [part.partition("\n") for part in golden.read_text().split("==> ")[1:]]
    found = {head.partition(" ")[2]: text for head, _, text in parts if head.startswith(f"{kind} ")}
    for name, mac in _CARDS.items():
        found = {file: text.replace(f"@{mac}@", name) for file, text in found.items()}
    return found


def _written(folder: Path, kind: str, *changes: tuple[str, str], case: str = "bonded") -> list[Path]:
    folder.mkdir(parents=True)
    for name, text in _profiles(kind, case).items():
        (folder / name).write_text(reduce(lambda given, change: given.replace(*change), changes, text))
        (folder / name).chmod(0o600)
    return sorted(folder.iterdir())


@pytest.mark.parametrize("kind", ["live", "installed"])
def test_a_bond_and_a_vlan(tmp_path: Path, kind: str) -> None:
    paths = _written(tmp_path / "profiles", kind)
    assert host_network.is_one(paths)
    links = Kernel(arguments=()).check_host_network(paths, (_ADDRESS,), _CARDS)
    assert sorted(link.told for link in links.values()) == [
        "bond0 (active-backup of eth0, eth1): 192.0.2.97/24 via 192.0.2.1",
        "bond0.100 (VLAN 100 on bond0): 10.100.0.97/24",
        "eth0: no address",
        "eth1: no address",
    ]
    host_network.populate(tmp_path, _CARDS, links)
    assert (tmp_path / "sys/class/net/eth1/address").read_text() == f"{_CARDS['eth0']}\n", "a bond has one address"
    assert (tmp_path / "sys/class/net/eth1/bonding_slave/perm_hwaddr").read_text() == f"{_CARDS['eth1']}\n"
    assert (tmp_path / "proc/net/vlan/bond0.100").read_text().startswith("bond0.100  VID: 100\t")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("52:54:00:72:62:00", "52:54:00:72:62:0f"), "no card has the MAC address 52:54:00:72:62:0f"),
        (("=active-backup", "=802.3ad"), "do not know bond.mode=802.3ad"),
        (("master=bond0", "master=bond1"), "there is no bond bond1"),
        (("master=bond0\n", ""), "the bond has no port"),
        (("parent=bond0", "parent=bond7"), "there is no bond7 that it could be on"),
        (("192.0.2.97/24", "192.0.2.98/24"), "no profile has one of 192.0.2.97"),
        (("192.0.2.97/24", "192.0.2.97/25"), "the network is 192.0.2.97/24 with gateway 192.0.2.1"),
        (("0.0.0.0/0,192.0.2.1", "0.0.0.0/0,192.0.2.2"), "the network is 192.0.2.97/24 with gateway 192.0.2.1"),
        (("[vlan]", "[ethernet]\nmtu=9000\n\n[vlan]"), "larger than those of bond0"),
        (("autoconnect=true", "autoconnect=false"), "do not know connection.autoconnect=false"),
    ],
)
def test_what_would_not_work_ends_the_boot(tmp_path: Path, change: tuple[str, str], told: str) -> None:
    paths = _written(tmp_path / "profiles", "live", change)
    with pytest.raises(BootError, match=told):
        Kernel(arguments=()).check_host_network(paths, (_ADDRESS,), _CARDS)


@pytest.mark.parametrize("kind", ["live", "installed"])
def test_both_families(tmp_path: Path, kind: str) -> None:
    ipv6 = Address(address="2001:db8:64::61", prefix=64, gateway="2001:db8:64::1", public=True)
    paths = _written(tmp_path / "profiles", kind, case="both-families")
    kernel = Kernel(arguments=())
    assert kernel.check_host_network(paths, (_ADDRESS,), _CARDS)["eth0"].told == "eth0: 192.0.2.97/24 via 192.0.2.1"
    assert kernel.check_ipv6(paths, ipv6) == ipv6
    host_network.populate_ipv6(tmp_path, ipv6)
    assert (tmp_path / "proc/net/if_inet6").read_text().split() == [
        "20010db8006400000000000000000061",
        *["02", "40", "00", "80", "eth0"],
    ]
    assert (tmp_path / "proc/net/ipv6_route").read_text().split()[4] == "20010db8006400000000000000000001"
    elsewhere = _written(tmp_path / "elsewhere", kind, ("2001:db8:64::1,", "2001:db8:64::2,"), case="both-families")
    with pytest.raises(BootError, match="the network is 2001:db8:64::61/64 with gateway 2001:db8:64::1"):
        kernel.check_ipv6(elsewhere, ipv6)
    assert kernel.check_ipv6(_written(tmp_path / "alone", kind), ipv6) is None, "IPv6 is disabled"


def test_profiles_and_kernel_arguments_may_not_both_say_it(tmp_path: Path) -> None:
    paths = _written(tmp_path / "profiles", "live")
    with pytest.raises(BootError, match="both say what the network is"):
        Kernel(arguments=("ip=dhcp",)).check_host_network(paths, (_ADDRESS,), _CARDS)


def test_an_installed_system_has_those_of_its_disk(tmp_path: Path) -> None:
    _written(tmp_path / "root/etc/NetworkManager/system-connections", "installed")
    kernel = Kernel(arguments=(), installed=Installed(root=tmp_path / "root", boot=tmp_path / "boot"))
    assert host_network.is_one(kernel.profiles()) and kernel.embedded_profiles() == {}
