"""Networks of hosts with the real nmstatectl: the keyfiles of the stack `bonded`, and of what else a host may have.

NetworkManager's own library reads every keyfile; where NetworkManager itself is there, it makes the links of them.
"""

from __future__ import annotations

import ctypes.util
import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from binaries.crate import NMSTATECTL
from metal_ipi.components.boot.host_network import LIVE_PROFILES, HostNetwork, HostNetworkError, Keyfiles, keyfiles
from metal_ipi.components.boot.initrd import archive
from metal_ipi.stacks.names import Nodes
from metal_ipi.stacks.platforms.registry import facility
from metal_ipi.stacks.settings import parse
from tests import golden
from tests.conformance import network_manager
from tests.lab.node_image.newc import read
from tests.stacks.answers import rehearsed

_EN1, _EN2 = "52:54:00:72:61:00", "52:54:00:72:62:00"
_CARD = {"name": "eno1", "type": "ethernet", "state": "up"}


@pytest.fixture(scope="module")
def program() -> str:
    """The nmstatectl whose words are compared: the version that is pinned."""
    found = NMSTATECTL.cached()
    if found is None:
        pytest.skip("nmstatectl is not built yet: `make conformance` builds it")
    return str(found)


def _bonded() -> HostNetwork:
    settings = parse(rehearsed("bonded"), "bonded")
    found = facility(settings).host_network(Nodes.of(settings).control_plane[0])
    assert found is not None
    return found


def _network(*interfaces: dict[str, Any], **more: Any) -> HostNetwork:
    state = {"interfaces": list(interfaces), **more}
    return dataclasses.replace(_bonded(), cards={"eno1": _EN1, "eno2": _EN2}, state=state)


def _way(destination: str, gateway: str) -> dict[str, Any]:
    return {"destination": destination, "next-hop-address": gateway, "next-hop-interface": "eno1"}


def _told(made: Keyfiles) -> str:
    texts = {"live": made.live, "installed": made.installed}
    return "".join(f"==> {kind} {name}\n{text}" for kind, files in texts.items() for name, text in files.items())


def _cases() -> dict[str, HostNetwork]:
    on_card = {"name": "storage", "type": "vlan", "state": "up", "vlan": {"base-iface": "eno1", "id": 7}}
    lacp = {"mode": "802.3ad", "options": {"miimon": "100", "xmit_hash_policy": "layer3+4"}, "port": ["eno1", "eno2"]}
    jumbo = {
        "mtu": 9000,
        "ipv4": {"enabled": True, "dhcp": True},
        "ipv6": {"enabled": True, "dhcp": True, "autoconf": True},
    }
    static = {"enabled": True, "dhcp": False, "address": [{"ip": "192.0.2.97", "prefix-length": 24}]}
    route = {"destination": "198.51.100.0/24", "next-hop-address": "192.0.2.9", "next-hop-interface": "eno1"}
    rule = {"ip-from": "192.0.2.0/24", "route-table": 200, "priority": 100, "iif": "eno1"}
    return {
        "bonded": _bonded(),
        "vlan-on-a-card": _network({**_CARD, "ipv4": static}, on_card),
        "lacp-jumbo-dhcp": _network(
            {"name": "bond0", "type": "bond", "state": "up", "link-aggregation": lacp, **jumbo}
        ),
        "routes": _network(
            {**_CARD, "ipv4": static, "mac-address": _EN1.upper()},
            **{
                "routes": {"config": [route, {**route, "table-id": 200}]},
                "route-rules": {"config": [rule]},
                "dns-resolver": {"config": {"server": ["192.0.2.53"], "search": ["example.com"]}},
            },
        ),
        "both-families": _network(
            {
                **_CARD,
                "ipv4": static,
                "ipv6": {"enabled": True, "address": [{"ip": "2001:db8:64::61", "prefix-length": 64}]},
            },
            **{
                "routes": {"config": [_way("0.0.0.0/0", "192.0.2.1"), _way("::/0", "2001:db8:64::1")]},
                "dns-resolver": {"config": {"server": ["192.0.2.53"]}},
            },
        ),
        "bridge": _network(
            _CARD,
            {
                "name": "br0",
                "type": "linux-bridge",
                "state": "up",
                "bridge": {"port": [{"name": "eno1"}]},
                "ipv4": static,
            },
        ),
    }


@pytest.mark.parametrize("name", _cases())
def test_the_keyfiles(program: str, name: str) -> None:
    made = keyfiles(_cases()[name], program)
    golden.check(f"host-network-{name}.txt", _told(made))
    for text in made.live.values():
        assert "@" not in text and "interface-name=eno" not in text, "a live system's cards go by MAC addresses"
    for text in made.installed.values():
        assert "=eno1\n" not in text.replace("id=eno1\n", "") and "\nmac-address=" not in text


@pytest.mark.parametrize("name", _cases())
def test_networkmanagers_library_reads_all_of_them(program: str, name: str) -> None:
    if ctypes.util.find_library("nm") is None:
        pytest.skip("libnm is not installed (Debian package libnm0)")
    made = keyfiles(_cases()[name], program)
    for text in (
        *made.live.values(),
        *(text.replace(f"@{_EN1}@", "ens3").replace(f"@{_EN2}@", "ens4") for text in made.installed.values()),
    ):
        command = [sys.executable, "-m", "tests.components.libnm"]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), text


_BOND = {"name": "bond0", "type": "bond", "state": "up"}
_VLAN = {"name": "eno1.7", "type": "vlan", "state": "up", "vlan": {"base-iface": "eno1", "id": 7}}


def _bond(**ports: Any) -> list[dict[str, Any]]:
    return [{**_BOND, "link-aggregation": {"mode": "active-backup", **ports}}]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (_bond(ports=["eno1", "eno2"]), _bond(port=["eno1", "eno2"])),
        (_bond(**{"ports-config": [{"name": "eno1"}, {"name": "eno2"}]}), _bond(port=["eno1", "eno2"])),
        ([{**_CARD, "identifier": "mac-address", "mac-address": _EN1.upper()}, _VLAN], [_CARD, _VLAN]),
    ],
)
def test_what_is_said_otherwise_is_the_same(
    program: str, one: list[dict[str, Any]], other: list[dict[str, Any]]
) -> None:
    assert keyfiles(_network(*one), program) == keyfiles(_network(*other), program)


def test_what_is_not_ascii_arrives(program: str) -> None:
    made = keyfiles(_network({**_CARD, "description": "Küche"}), program)
    packed = read(archive("{}", made.initramfs).encode())
    assert "description=Küche\n" in packed[f"{LIVE_PROFILES}/eno1.nmconnection"][4].decode()


def test_only_profiles_of_cards_are_rewritten(program: str) -> None:
    """A port of Open vSwitch is called as its card is."""
    made = keyfiles(
        _network(_CARD, {"name": "br0", "type": "ovs-bridge", "bridge": {"port": [{"name": "eno1"}]}}), program
    )
    for files in (made.live, made.installed):
        assert "interface-name=eno1\n" in files["eno1-port.nmconnection"]
        assert "interface-name=eno1\n" not in files["eno1.nmconnection"]


def test_what_is_on_a_card_that_is_not_described_is_refused(program: str) -> None:
    above = {"name": "mv0", "type": "mac-vlan", "mac-vlan": {"base-iface": "eno2", "mode": "vepa", "promiscuous": True}}
    with pytest.raises(HostNetworkError, match="mv0 is on eno2, which networkConfig does not describe"):
        keyfiles(_network(_CARD, above), program)


@pytest.mark.parametrize(
    ("interface", "words"),
    [
        ({**_CARD, "mtus": 9000}, "unknown field `mtus`"),
        ({**_CARD, "ipv4": {"enabled": True, "address": [{"ip": "192.0.2.400", "prefix-length": 24}]}}, "invalid IP"),
        ({"name": "bond0", "type": "bond", "link-aggregation": {"mode": "fast", "port": ["eno1"]}}, "unknown variant"),
    ],
)
def test_what_it_refuses_is_told_in_its_words(program: str, interface: dict[str, Any], words: str) -> None:
    with pytest.raises(HostNetworkError, match=words) as caught:
        keyfiles(_network(interface), program)
    assert "INFO" not in str(caught.value)


def test_a_route_out_of_nowhere_is_refused(program: str) -> None:
    route = {"destination": "0.0.0.0/0", "next-hop-address": "192.0.2.1", "next-hop-interface": "eno9"}
    with pytest.raises(HostNetworkError, match="next hop interface eno9 not found"):
        keyfiles(_network(_CARD, routes={"config": [route]}), program)


def test_nothing_at_all_is_refused(program: str) -> None:
    with pytest.raises(HostNetworkError, match="describes no interface"):
        keyfiles(_network(), program)


@pytest.mark.parametrize("kind", ["live", "installed"])
def test_networkmanager_makes_the_bond_and_the_vlan(program: str, kind: str, tmp_path: Path) -> None:
    """On cards that are called otherwise, one of them as NMState calls the other."""
    if (reason := network_manager.missing()) is not None:
        pytest.skip(reason)
    made = keyfiles(_bonded(), program)
    cards = {"eno2": _EN1, "ens7": _EN2}
    profiles = dict(made.live if kind == "live" else made.installed)
    for card, mac in cards.items():
        profiles = {name: text.replace(f"@{mac}@", card) for name, text in profiles.items()}
    seen = network_manager.run(tmp_path, profiles, cards)
    assert (seen.bond_mode, set(seen.bond_ports)) == ("active-backup", set(cards)), seen.log
    assert seen.vlan == "100 bond0", seen.log
    assert {"bond0 192.0.2.97/24", "bond0.100 10.100.0.97/24"} <= set(seen.addresses), seen.log
    assert seen.primary == ("eno2" if kind == "installed" else ""), seen.log
    assert "default via 192.0.2.1 dev bond0" in seen.routes, seen.log
