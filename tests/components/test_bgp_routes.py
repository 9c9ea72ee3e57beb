"""A machine's BGP sessions and the routes to its peers: the script on a node with a network of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from metal_ipi.components.endpoints.bgp_routes import UNIT, files, unit
from tests.components.node import METADATA_PORT, METADATA_URL, OFTEN, Node, eventually

pytestmark = pytest.mark.programs

NEIGHBOUR: dict[str, Any] = {
    "address_family": 4,
    "customer_as": 65000,
    "customer_ip": "203.0.113.5",
    "md5_enabled": True,
    "md5_password": "swordfish",
    "multihop": True,
    "peer_as": 65530,
    "peer_ips": ["169.254.255.1", "169.254.255.2"],
}
METADATA: dict[str, Any] = {
    "network": {
        "addresses": [
            {"address": "198.51.100.5", "cidr": 31, "gateway": "198.51.100.4", "public": True, "address_family": 4},
            {"address": "203.0.113.5", "cidr": 31, "gateway": "203.0.113.4", "public": False, "address_family": 4},
        ]
    },
    "bgp_neighbors": [NEIGHBOUR, {**NEIGHBOUR, "address_family": 6, "customer_ip": "2001:db8::5"}],
}
SESSION: dict[str, Any] = {
    "own": "203.0.113.5",
    "prefix": 31,
    "gateway": "203.0.113.4",
    "as": 65000,
    "peer_as": 65530,
    "peers": ["169.254.255.1", "169.254.255.2"],
    "multihop": True,
    "password": "swordfish",
}
PUBLISHED = "run/metal-ipi/bgp-routes"
_REACHED = "the BGP peers are reached over {}: 169.254.255.1 169.254.255.2 "


def tell(node: Node, metadata: dict[str, Any]) -> None:
    """What the platform's metadata service answers from now on."""
    node.serve(METADATA_PORT, body=json.dumps(metadata))


def laid(node: Node, interface: str) -> bool:
    """Whether address and routes are at an interface, and nowhere else."""
    routes = [node.ip(f"-4 route show {peer}/32") for peer in SESSION["peers"]]
    holders = [place for place in node.addresses() if place.endswith(" 203.0.113.5/31")]
    way = f"via 203.0.113.4 dev {interface} src 203.0.113.5"
    return holders == [f"{interface} 203.0.113.5/31"] and all(way in route for route in routes)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    node = Node(tmp_path)
    try:
        node.give(files(METADATA_URL))
        node.boot()
        yield node
    finally:
        node.power_cut()


def test_the_routes_are_laid_once_the_platform_names_the_peers(node: Node) -> None:
    tell(node, {**METADATA, "bgp_neighbors": []})
    node.start(unit())
    eventually(lambda: len(node.asked(METADATA_PORT)) > 2)
    assert not laid(node, "eth0") and not (node.root / PUBLISHED).exists()
    assert node.said(UNIT) == [
        f"waiting until {METADATA_URL} names this machine's BGP neighbours:"
        " it names no BGP session whose address is one of the machine"
    ]
    tell(node, METADATA)
    eventually((node.root / PUBLISHED).exists)
    assert laid(node, "eth0")
    eventually(lambda: node.said(UNIT)[1:] == [_REACHED.format("eth0")])
    kept = node.root / "var/lib/metal-ipi/bgp-sessions.json"
    assert json.loads(kept.read_text()) == [SESSION]
    assert kept.stat().st_mode & 0o077 == 0, "it holds the password"


def test_what_others_take_away_is_put_back(node: Node) -> None:
    tell(node, METADATA)
    node.start(unit())
    eventually(lambda: laid(node, "eth0"))
    node.ip("address delete 203.0.113.5/31 dev eth0")
    eventually(lambda: laid(node, "eth0"))
    node.ip("route delete 169.254.255.2/32")
    eventually(lambda: laid(node, "eth0"))


@pytest.mark.parametrize("keeps", [True, False], ids=["address-stays", "address-flushed"])
def test_address_and_routes_follow_the_default_route_to_a_bridge(node: Node, keeps: bool) -> None:
    tell(node, METADATA)
    node.start(unit())
    eventually((node.root / PUBLISHED).exists)
    published = (node.root / PUBLISHED).read_text()
    node.to_bridge()
    if keeps:
        node.ip("address replace 203.0.113.5/31 dev eth0")
    eventually(lambda: laid(node, "br-ex"))
    eventually(lambda: node.said(UNIT)[-1] == _REACHED.format("br-ex"))
    assert (node.root / PUBLISHED).read_text() == published.replace("eth0", "br-ex")


def test_after_a_power_cut_the_peers_are_known_without_the_platform(node: Node) -> None:
    tell(node, METADATA)
    node.start(unit())
    eventually(lambda: laid(node, "eth0"))
    node.power_cut()
    node.boot()
    node.to_bridge()
    node.start(unit())
    eventually((node.root / PUBLISHED).exists)
    assert laid(node, "br-ex")
    tell(node, {**METADATA, "bgp_neighbors": [{**NEIGHBOUR, "peer_ips": ["169.254.255.9"]}]})
    eventually(lambda: "169.254.255.9 via 203.0.113.4 dev br-ex" in node.ip("-4 route show"), 60)


def test_the_platform_is_asked_again_now_and_then(node: Node) -> None:
    tell(node, METADATA)
    node.start(unit())
    published = node.root / PUBLISHED
    eventually(published.exists)
    before = published.read_text()
    tell(node, {**METADATA, "bgp_neighbors": [{**NEIGHBOUR, "md5_password": "trout"}]})
    eventually(lambda: published.read_text() != before, 60)
    tell(node, {**METADATA, "bgp_neighbors": []})
    seen = len(node.asked(METADATA_PORT))
    eventually(lambda: len(node.asked(METADATA_PORT)) > seen + 1, 60)
    kept = json.loads((node.root / "var/lib/metal-ipi/bgp-sessions.json").read_text())
    assert kept == [{**SESSION, "password": "trout"}], "an answer without sessions is not believed"


def test_without_a_default_route_it_says_so_and_tries_again(node: Node) -> None:
    tell(node, METADATA)
    node.ip("route delete default")
    process = node.start(unit())
    eventually(
        lambda: node.said(UNIT) == ["there is no default route: the way to the BGP peers is not known"],
    )
    node.ip("route add default via 198.51.100.1 dev eth0")
    eventually(lambda: laid(node, "eth0"))
    assert process.poll() is None


def test_the_unit_runs_the_script() -> None:
    assert (unit().name, f"ExecStart=/bin/bash {files(METADATA_URL)[0].path}\n" in unit().text) == (UNIT, True)
    assert files(METADATA_URL)[0].mode == 0o755
    assert f"\n{OFTEN}" in files(METADATA_URL)[0].text
