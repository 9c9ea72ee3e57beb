"""Addresses for services on a real Kubernetes API, announced by the real MetalLB.

Its objects say what outputs and platform say. A client outside reaches a Service at its address, also after the loss of
a node.
"""

from __future__ import annotations

import ipaddress
import json
import re
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from lab.network import plan
from lab.setup import NFTABLES, announcing, missing
from tests.end_to_end import secrets
from tests.end_to_end.api_client import Facility
from tests.end_to_end.conftest import copies
from tests.end_to_end.project import Project, await_
from tests.end_to_end.user import User

pytestmark = [pytest.mark.lab, pytest.mark.engine, pytest.mark.usefixtures("kubernetes")]

OWN: dict[str, Any] = {"name": "own", "addresses": ["198.51.100.240/28"], "autoAssign": False}
BGP: dict[str, Any] = {
    "type": "metallb-bgp",
    "install": False,
    "holdTime": 9,
    "pools": [OWN, {"name": "elastic", "reserve": 4, "aggregationLength": 30}],
}
NEAR = {**OWN, "addresses": ["192.0.2.40/29"]}
"""In the network of the facility's own services."""
_NAMESPACE = "namespaces/metallb-system"
_PATHS = {
    "Secret": f"/api/v1/{_NAMESPACE}/secrets",
    "IPAddressPool": f"/apis/metallb.io/v1beta1/{_NAMESPACE}/ipaddresspools",
    "BGPAdvertisement": f"/apis/metallb.io/v1beta1/{_NAMESPACE}/bgpadvertisements",
    "L2Advertisement": f"/apis/metallb.io/v1beta1/{_NAMESPACE}/l2advertisements",
    "BGPPeer": f"/apis/metallb.io/v1beta2/{_NAMESPACE}/bgppeers",
}


_PORT = {"port": 80, "protocol": "TCP"}
_SERVICE = {"apiVersion": "v1", "kind": "Service", "spec": {"type": "LoadBalancer", "ports": [_PORT]}}
_ENDPOINTS: dict[str, Any] = {
    "apiVersion": "discovery.k8s.io/v1",
    "kind": "EndpointSlice",
    "addressType": "IPv4",
    "ports": [_PORT],
    "endpoints": [{"addresses": [plan.BOOT], "conditions": {"ready": True}}],
}
_GET = """
import sys, urllib.request
try:
    print(urllib.request.urlopen(f"http://{sys.argv[1]}/streams/lab.json", timeout=3).status)
except OSError as error:
    print(error)
"""


class Cluster:
    """MetalLB's objects as the API has them, for a project that is installed."""

    def __init__(self, project: Project, directory: Path) -> None:
        self.user = User(project, directory)

    def names(self, kind: str) -> set[str]:
        """The names of a kind's objects."""
        return {item["metadata"]["name"] for item in self.user("get", _PATHS[kind])["items"]}

    def specs(self, kind: str) -> dict[str, dict[str, Any]]:
        """The specifications of a kind's objects, by name."""
        return {item["metadata"]["name"]: item["spec"] for item in self.user("get", _PATHS[kind])["items"]}

    def is_untouched(self) -> bool:
        """Whether nothing of ours is there, but what MetalLB has for itself."""
        return set().union(*(self.names(kind) for kind in _PATHS)) <= {"memberlist"}


class Site:
    """What others see of the addresses of a cluster's Services."""

    def __init__(self, project: Project, cluster: Cluster) -> None:
        self._project, self._cluster = project, cluster
        self.facility = Facility(project)
        self.private = {each["name"]: each["private_ipv4"] for each in project.output()["nodes"]}

    def expose(self, name: str, pool: str) -> str:
        """Make a Service, which leads to the facility's web server; the address that MetalLB gives it."""
        slice_of = {"kubernetes.io/service-name": name}
        for document in (
            {**_SERVICE, "metadata": {**_named(name), "annotations": {"metallb.io/address-pool": pool}}},
            {**_ENDPOINTS, "metadata": {**_named(name), "labels": slice_of}},
        ):
            assert self._cluster.user.apply(document) == (200, "")
        path = f"/api/v1/namespaces/default/services/{name}"
        await_(lambda: self._cluster.user("get", path)["status"]["loadBalancer"], f"{name} has an address", 60)
        (given,) = self._cluster.user("get", path)["status"]["loadBalancer"]["ingress"]
        return given["ip"]

    def reached(self, address: str) -> bool:
        """Whether a client outside of the facility gets the web server's answer there."""
        command = [sys.executable, "-m", "lab.network.client", "--", sys.executable, "-c", _GET, address]
        return self._project.facility(*command).strip() == "200"

    def lose(self, node: str) -> float:
        """Cut the power of the node with this private address; the moment before."""
        name = next(name for name, address in self.private.items() if address == node)
        return self.facility.power("off", self._project.devices()[name.partition(".")[0]])

    def answering(self, address: str) -> str:
        """The private address of the node that answers for an address by ARP, as the router has heard; or empty."""
        hardware = self.facility.neighbour(address)
        return next((each for each in self.private.values() if self.facility.neighbour(each) == hardware), "")


def _named(name: str) -> dict[str, Any]:
    return {"name": name, "namespace": "default"}


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
    """A copy whose clusters have a real Kubernetes API and a real MetalLB, if this system can have them."""
    announcing(print)
    if missing((NFTABLES,)):
        pytest.skip(f"kube-proxy wants {NFTABLES.file}: install {NFTABLES.name}")
    yield from copies(tmp_path)


def test_addresses_are_announced_over_bgp_then_by_arp(project: Project, tmp_path: Path) -> None:
    project.configure(workers={"count": 1}, serviceAddresses=BGP)
    run = project.start("up")
    run.until(lambda: "own-pool (IPAddressPool)" in run.printed(), "a pool is applied")
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
    project.configure(workers={"count": 3}, serviceAddresses=changed)
    peers = {f"lab-worker-{worker}.lab.facility.test-peer-{number}" for worker in range(3) for number in (0, 1)}
    new = {peer for peer in peers if "worker-0" not in peer}
    assert steps(project.make("up").out) == {"own-pool": "updated", **dict.fromkeys(new, "created")}
    assert_as_told(project, cluster, "198.51.100.224/28", workers=3)
    left = _by_bgp(Site(project, cluster), project.output()["serviceAddresses"]["pools"]["elastic"][0])

    near = {"type": "metallb-l2", "install": False, "pools": [NEAR], "interfaces": ["bond0"]}
    project.configure(workers={"count": 3}, serviceAddresses=near)
    gone = ("bgp-password", "own-bgp", "elastic-bgp", "elastic-pool", *peers)
    assert steps(project.make("up").out) == {"own-pool": "updated", "l2": "created", **dict.fromkeys(gone, "deleted")}
    assert project.output()["serviceAddresses"] == {"pools": {"own": NEAR["addresses"]}}
    assert not project.holdings()["reservations"]
    assert cluster.specs("IPAddressPool")["own"]["addresses"] == NEAR["addresses"]
    (advertisement,) = cluster.specs("L2Advertisement").values()
    assert (advertisement["ipAddressPools"], advertisement["interfaces"]) == (["own"], ["bond0"])
    assert not cluster.names("BGPPeer")
    _by_arp(Site(project, cluster), left)

    project.configure(workers={"count": 3})
    assert steps(project.make("up").out) == dict.fromkeys(("own-pool", "l2"), "deleted")
    assert cluster.is_untouched() and "serviceAddresses" not in project.output()
    project.assert_down()


def _by_bgp(site: Site, block: str) -> set[str]:
    """The router learns the block of a Service's address from all nodes, and forgets those that are lost.

    The nodes that are left.
    """
    address = site.expose("far", "elastic")
    assert ipaddress.ip_address(address) in ipaddress.ip_network(block)
    workers = {address for name, address in site.private.items() if "-worker-" in name}

    def announcing() -> dict[str, set[str]]:
        return {route["prefix"]: set(route["via"]) for route in site.facility.routes()}

    await_(lambda: announcing() == {block: workers}, "all workers announce", 60)
    await_(lambda: site.reached(address), "a client reaches the Service")
    lost = sorted(workers)[0]
    moment = site.lose(lost)
    await_(lambda: announcing() == {block: workers - {lost}}, f"{lost} is withdrawn")
    await_(lambda: site.reached(address), "a client reaches the Service again")
    print(f"over BGP: reached again {time.monotonic() - moment:.1f} s after a node was lost")
    return workers - {lost}


def _by_arp(site: Site, nodes: set[str]) -> None:
    """One of the nodes answers for a Service's address; when it is lost, another one does."""
    address = site.expose("near", "own")
    assert ipaddress.ip_address(address) in ipaddress.ip_network(NEAR["addresses"][0])
    await_(lambda: site.reached(address), "a client reaches the Service", 60)
    owner = site.answering(address)
    assert owner in nodes
    moment = site.lose(owner)
    await_(lambda: site.reached(address), "a client reaches the Service again")
    print(f"by ARP: reached again {time.monotonic() - moment:.1f} s after a node was lost")
    assert {site.answering(address)} == nodes - {owner}


def _no_password_in_clear(project: Project) -> None:
    (session,) = project.account()["bgp_configs"]
    if session["md5"] is None:
        return  # this kernel signs no TCP segments, so the lab's sessions have no password
    texts = {path: path.read_text(errors="replace") for path in secrets.files(project)}
    assert [path for path, text in texts.items() if session["md5"] in text] == []
