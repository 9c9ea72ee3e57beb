"""Addresses for services on a real Kubernetes API: MetalLB's objects say what outputs and platform say."""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end import secrets
from tests.end_to_end.conftest import copies
from tests.end_to_end.project import Project
from tests.end_to_end.user import User

pytestmark = [pytest.mark.lab, pytest.mark.engine, pytest.mark.usefixtures("kubernetes")]

OWN = {"name": "own", "addresses": ["198.51.100.240/28"], "autoAssign": False}
BGP: dict[str, Any] = {
    "type": "metallb-bgp",
    "install": False,
    "holdTime": 9,
    "pools": [OWN, {"name": "elastic", "reserve": 4, "aggregationLength": 30}],
}
_NAMESPACE = "namespaces/metallb-system"
_PATHS = {
    "Secret": f"/api/v1/{_NAMESPACE}/secrets",
    "IPAddressPool": f"/apis/metallb.io/v1beta1/{_NAMESPACE}/ipaddresspools",
    "BGPAdvertisement": f"/apis/metallb.io/v1beta1/{_NAMESPACE}/bgpadvertisements",
    "L2Advertisement": f"/apis/metallb.io/v1beta1/{_NAMESPACE}/l2advertisements",
    "BGPPeer": f"/apis/metallb.io/v1beta2/{_NAMESPACE}/bgppeers",
}


class Cluster:
    """MetalLB's objects as the API has them, for a project that is installed."""

    def __init__(self, project: Project, directory: Path) -> None:
        self._user = User(project, directory)

    def names(self, kind: str) -> set[str]:
        """The names of a kind's objects."""
        return {item["metadata"]["name"] for item in self._user("get", _PATHS[kind])["items"]}

    def specs(self, kind: str) -> dict[str, dict[str, Any]]:
        """The specifications of a kind's objects, by name."""
        return {item["metadata"]["name"]: item["spec"] for item in self._user("get", _PATHS[kind])["items"]}

    def is_untouched(self) -> bool:
        """Whether nothing of ours is there."""
        return not any(self.names(kind) for kind in _PATHS)


def wanted_peers(project: Project) -> dict[str, dict[str, Any]]:
    """What the platform says of the neighbours of all its devices, as MetalLB has to be told."""
    peers: dict[str, dict[str, Any]] = {}
    for device in project.holdings()["devices"]:
        document = project.inside("call", "GET", f"/devices/{device['id']}/bgp/neighbors")
        node = f"{device['hostname']}.lab.facility.test"
        for neighbour in json.loads(document)["bgp_neighbors"]:
            for number, address in enumerate(neighbour["peer_ips"]):
                peers[f"{node}-peer-{number}"] = {
                    "myASN": neighbour["customer_as"],
                    "peerASN": neighbour["peer_as"],
                    "peerAddress": address,
                    "sourceAddress": neighbour["customer_ip"],
                    "ebgpMultiHop": neighbour["multihop"],
                    "holdTime": "9s",
                    "nodeSelectors": [{"matchLabels": {"kubernetes.io/hostname": node}}],
                    **({"passwordSecret": _SECRET} if neighbour["md5_enabled"] else {}),
                }
    return peers


_SECRET = {"name": "bgp-password", "namespace": "metallb-system"}


def assert_as_told(project: Project, cluster: Cluster, own: str, workers: int) -> None:
    """Outputs, the platform and the API say the same."""
    pools = project.output()["serviceAddresses"]["pools"]
    (block,) = project.holdings()["reservations"]
    assert pools == {"own": [own], "elastic": [block["name"]]}
    there = cluster.specs("IPAddressPool")
    assert {name: (pool["addresses"], pool["autoAssign"]) for name, pool in there.items()} == {
        "own": (pools["own"], False),
        "elastic": (pools["elastic"], True),
    }
    assert {name: each["ipAddressPools"] for name, each in cluster.specs("BGPAdvertisement").items()} == {
        "own": ["own"],
        "elastic": ["elastic"],
    }
    peers = cluster.specs("BGPPeer")
    assert len(peers) == 2 * workers
    without_defaults = {
        name: {key: value for key, value in peer.items() if key in wanted}
        for (name, peer), wanted in zip(sorted(peers.items()), _sorted(wanted_peers(project)), strict=True)
    }
    assert without_defaults == wanted_peers(project)


def _sorted(peers: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    return [peer for _, peer in sorted(peers.items())]


def steps(text: str) -> dict[str, str]:
    """What happened to MetalLB's objects: what became of each, by resource."""
    return dict(re.findall(r"service-addresses-(\S+) \((?:BGP|IP|L2|Secret)\w*\): (\w+)", text))


@pytest.fixture
def project(tmp_path: Path) -> Generator[Project, None, None]:
    """A copy whose clusters have a real Kubernetes API, if this system can have one."""
    yield from copies(tmp_path)


def test_addresses_are_announced_over_bgp_then_by_arp(project: Project, tmp_path: Path) -> None:
    project.configure(workers={"count": 1}, serviceAddresses=BGP)
    run = project.start("up")
    run.until(lambda: "own-pool (IPAddressPool)" in run.printed(), "a pool is applied", 100)
    run.kill(project.supervisor())
    project.make("up")
    cluster = Cluster(project, tmp_path)
    assert_as_told(project, cluster, "198.51.100.240/28", workers=1)
    project.assert_unchanged("refresh", "up")
    _no_password_in_clear(project)

    changed = {**BGP, "pools": [{**OWN, "addresses": ["198.51.100.224/28"]}, BGP["pools"][1]]}
    project.configure(workers={"count": 1}, serviceAddresses=changed)
    preview = project.make("preview").out
    assert re.findall(r"^ +(\w+) +(service-addresses-\S+)", preview, re.MULTILINE) == [
        ("update", "service-addresses-own-pool")
    ], preview
    project.configure(workers={"count": 2}, serviceAddresses=changed)
    peers = {f"lab-worker-1.lab.facility.test-peer-{number}" for number in (0, 1)}
    assert steps(project.make("up").out) == {"own-pool": "updated", **dict.fromkeys(peers, "created")}
    assert_as_told(project, cluster, "198.51.100.224/28", workers=2)
    project.configure(workers={"count": 1}, serviceAddresses=changed)
    assert steps(project.make("up").out) == dict.fromkeys(peers, "deleted")
    assert_as_told(project, cluster, "198.51.100.224/28", workers=1)

    project.configure(workers={"count": 1})
    project.make("up")
    assert cluster.is_untouched() and not project.holdings()["reservations"]
    assert "serviceAddresses" not in project.output()

    near = {"type": "metallb-l2", "install": False, "pools": [OWN], "interfaces": ["bond0"]}
    project.configure(workers={"count": 1}, serviceAddresses=near)
    assert steps(project.make("up").out) == {"own-pool": "created", "l2": "created"}
    assert project.output()["serviceAddresses"] == {"pools": {"own": OWN["addresses"]}}
    assert cluster.specs("IPAddressPool")["own"]["addresses"] == OWN["addresses"]
    (advertisement,) = cluster.specs("L2Advertisement").values()
    assert (advertisement["ipAddressPools"], advertisement["interfaces"]) == (["own"], ["bond0"])
    assert not cluster.specs("BGPPeer")
    project.assert_unchanged("up")
    project.assert_down()


def _no_password_in_clear(project: Project) -> None:
    (session,) = project.account()["bgp_configs"]
    if session["md5"] is None:
        return  # this kernel signs no TCP segments, so the lab's sessions have no password
    texts = {path: path.read_text(errors="replace") for path in secrets.files(project)}
    assert [path for path, text in texts.items() if session["md5"] in text] == []
