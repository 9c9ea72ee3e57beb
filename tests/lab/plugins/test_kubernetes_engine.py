"""MetalLB's component under the real engine, with the stand-in for `kubernetes`, on a real API server."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pulumi
import pytest
from pulumi import automation

from lab.kubernetes.access import Access, send
from metal_ipi.components.endpoints.metallb import BgpArgs, BgpNodeArgs, L2Args, MetalLb, MetalLbArgs, PoolArgs
from metal_ipi.components.machines.contract import BgpNeighbour
from tests.lab.kubernetes.support import cluster
from tests.lab.plugins.stack import Stack
from tests.real_engine import needs_engine

pytestmark = needs_engine

PASSWORD = "hunter2-bgp"
POOLS = "/apis/metallb.io/v1beta1/namespaces/metallb-system/ipaddresspools"
PEERS = "/apis/metallb.io/v1beta2/namespaces/metallb-system/bgppeers"


class Lab(Stack):
    """A stack, and the cluster that it is about."""

    def __init__(self, directory: Path, access: Access) -> None:
        super().__init__(directory)
        self.access = access

    def get(self, path: str) -> dict[str, Any]:
        with self.access.client() as client:
            return send(client, "GET", path)

    def patch(self, path: str, change: dict[str, Any]) -> None:
        with self.access.client() as client:
            headers = {"Content-Type": "application/merge-patch+json"}
            send(client, "PATCH", path, content=json.dumps(change), headers=headers)


@pytest.fixture
def lab(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[Lab]:
    with cluster(tmp_path_factory.mktemp("cluster")) as access:
        yield Lab(tmp_path, access)


def neighbour(ip: str) -> BgpNeighbour:
    return BgpNeighbour(
        customer_as=65000,
        customer_ip=ip,
        peer_as=65530,
        peer_ips=("169.254.255.1", "169.254.255.2"),
        md5_password=PASSWORD,
        multihop=True,
    )


def program(access: Access, *, addresses: str = "203.0.113.240/28", workers: int = 2) -> Callable[[], None]:
    def run() -> None:
        nodes = {
            f"lab-worker-{number}": BgpNodeArgs(neighbours=pulumi.Output.secret([neighbour(f"192.0.2.{number + 1}")]))
            for number in range(workers)
        }
        metallb = MetalLb(
            "lb",
            MetalLbArgs(
                kubeconfig=access.kubeconfig(),
                pools=(PoolArgs(name="public", addresses=[addresses], aggregation_length=28),),
                announce=BgpArgs(nodes=nodes, hold_time=3),
            ),
        )
        pulumi.export("pools", metallb.pools)

    return run


def test_the_component_lives_its_life(lab: Lab) -> None:
    # The stack, the component, its provider; Secret, pool, advertisement and four peers.
    assert lab.preview(program(lab.access)) == {"create": 10}
    assert lab.up(program(lab.access)) == {"create": 10}
    assert lab.up(program(lab.access)) == {"same": 10}
    peers = {item["metadata"]["name"]: item["spec"] for item in lab.get(PEERS)["items"]}
    assert sorted(peers) == [f"lab-worker-{node}-peer-{peer}" for node in (0, 1) for peer in (0, 1)]
    assert peers["lab-worker-1-peer-0"]["sourceAddress"] == "192.0.2.2"
    lab.refresh(program(lab.access))
    assert lab.up(program(lab.access)) == {"same": 10}
    assert lab.up(program(lab.access, addresses="203.0.113.224/28", workers=1)) == {"same": 7, "update": 1, "delete": 2}
    assert lab.get(f"{POOLS}/public")["spec"]["addresses"] == ["203.0.113.224/28"]
    assert len(lab.get(PEERS)["items"]) == 2
    written = lab.everything_written()
    assert PASSWORD not in written
    assert base64.b64encode(PASSWORD.encode()).decode() not in written
    assert json.loads(lab.access.kubeconfig())["users"][0]["user"]["client-key-data"] not in written
    lab.destroy(program(lab.access))
    assert not lab.get(POOLS)["items"] and not lab.get(PEERS)["items"]


def test_objects_go_with_their_cluster_and_nobody_is_asked(lab: Lab) -> None:
    def with_cluster() -> None:
        import pulumi_kubernetes as kubernetes

        kubeconfig = pulumi.Output.secret(lab.access.kubeconfig())
        provider = kubernetes.Provider("provider", kubeconfig=kubeconfig)
        options = pulumi.ResourceOptions(provider=provider)
        cluster = kubernetes.core.v1.Namespace("cluster", metadata={"name": "cluster"}, opts=options)
        pools = (PoolArgs(name="public", addresses=["203.0.113.240/28"]),)
        MetalLb("lb", MetalLbArgs(kubeconfig=kubeconfig, pools=pools, announce=L2Args(), cluster=cluster))

    lab.up(with_cluster)
    lab.destroy(with_cluster)
    assert "cluster" not in {item["metadata"]["name"] for item in lab.get("/api/v1/namespaces")["items"]}
    assert [item["metadata"]["name"] for item in lab.get(POOLS)["items"]] == ["public"]


def test_what_somebody_changed_shows_and_is_not_overwritten_without_a_word(lab: Lab) -> None:
    lab.up(program(lab.access, workers=1))
    lab.patch(f"{POOLS}/public", {"spec": {"addresses": ["198.51.100.0/28"]}})
    lab.refresh(program(lab.access, workers=1))
    with pytest.raises(automation.CommandError):
        lab.up(program(lab.access, workers=1))
    said = "".join(lab.said)
    assert "others own what is to be changed" in said
    assert "patchForce" in said
    assert lab.get(f"{POOLS}/public")["spec"]["addresses"] == ["198.51.100.0/28"]
    # The program takes the change over, and all is well.
    assert lab.up(program(lab.access, addresses="198.51.100.0/28", workers=1))["same"] >= 5
    lab.destroy(program(lab.access, workers=1))
