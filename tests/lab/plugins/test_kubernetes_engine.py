"""MetalLB's component under the real engine, with the stand-in for `kubernetes`, on a real API server."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pulumi
import pytest
from pulumi import automation

from components.endpoints.metallb import BgpArgs, BgpNodeArgs, L2Args, MetalLb, MetalLbArgs, PoolArgs
from components.machines.contract import BgpNeighbour
from lab.kubernetes.access import Access, send
from tests.lab.kubernetes.support import cluster
from tests.lab.plugins.harness import PLUGINS, engine, needs_engine

pytestmark = [needs_engine, pytest.mark.engine]

PASSWORD = "hunter2-bgp"
POOLS = "/apis/metallb.io/v1beta1/namespaces/metallb-system/ipaddresspools"
PEERS = "/apis/metallb.io/v1beta2/namespaces/metallb-system/bgppeers"


class Lab:
    """A stack in a directory of its own, and what was said about it."""

    def __init__(self, directory: Path, access: Access) -> None:
        self._directory = directory
        self.access = access
        self.said: list[str] = []
        self._environment = {
            "PATH": f"{Path(str(engine)).parent}:{PLUGINS}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PULUMI_HOME": str(directory / "home"),
            "PULUMI_CONFIG_PASSPHRASE": "passphrase",
            "PULUMI_SKIP_UPDATE_CHECK": "1",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "1",
        }

    def stack(self, program: Callable[[], None]) -> automation.Stack:
        backend = automation.ProjectBackend(f"file://{self._directory}")
        settings = automation.ProjectSettings("endpoints", "python", backend=backend)
        options = automation.LocalWorkspaceOptions(
            work_dir=str(self._directory), project_settings=settings, env_vars=self._environment
        )
        return automation.create_or_select_stack("lab", "endpoints", program, opts=options)

    def _options(self) -> dict[str, Any]:
        return {"on_output": self.said.append, "on_error": self.said.append, "color": "never"}

    def preview(self, program: Callable[[], None]) -> dict[str, int]:
        result = self.stack(program).preview(**self._options(), diff=True)
        return {str(getattr(name, "value", name)): count for name, count in result.change_summary.items()}

    def up(self, program: Callable[[], None]) -> dict[str, int]:
        result = self.stack(program).up(**self._options(), diff=True)
        return {str(name): count for name, count in (result.summary.resource_changes or {}).items()}

    def refresh(self, program: Callable[[], None]) -> None:
        self.stack(program).refresh(**self._options())

    def destroy(self, program: Callable[[], None]) -> None:
        self.stack(program).destroy(**self._options())

    def everything_written(self) -> str:
        files = [path for path in (self._directory / ".pulumi").rglob("*") if path.is_file()]
        return "\n".join([*(path.read_text(errors="replace") for path in files), *self.said])

    def get(self, path: str) -> dict[str, Any]:
        with self.access.client() as client:
            return send(client, "GET", path)

    def patch(self, path: str, change: dict[str, Any]) -> None:
        with self.access.client() as client:
            headers = {"Content-Type": "application/merge-patch+json"}
            send(client, "PATCH", path, content=json.dumps(change), headers=headers)


@pytest.fixture
def lab(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Generator[Lab]:
    made: list[asyncio.AbstractEventLoop] = []
    make = asyncio.new_event_loop

    def remember() -> asyncio.AbstractEventLoop:
        made.append(make())
        return made[-1]

    with cluster(tmp_path_factory.mktemp("cluster")) as access:
        # The Automation API looks for the engine on the PATH of this process, and never closes its event loops.
        monkeypatch.setenv("PATH", f"{Path(str(engine)).parent}:{os.environ['PATH']}")
        monkeypatch.setattr(asyncio, "new_event_loop", remember)
        yield Lab(tmp_path, access)
        for loop in made:
            if not loop.is_running():
                loop.close()


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
    assert lab.up(program(lab.access, addresses="203.0.113.224/28", workers=1)) == {
        "same": 7,
        "update": 1,
        "delete": 2,
    }
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
        cluster = kubernetes.core.v1.ConfigMap("cluster", metadata={"name": "cluster"}, opts=options)
        pools = (PoolArgs(name="public", addresses=["203.0.113.240/28"]),)
        MetalLb("lb", MetalLbArgs(kubeconfig=kubeconfig, pools=pools, announce=L2Args(), cluster=cluster))

    lab.up(with_cluster)
    lab.destroy(with_cluster)
    assert "cluster" not in {item["metadata"]["name"] for item in lab.get("/api/v1/configmaps")["items"]}
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


def test_a_refused_value_fails_the_preview_and_is_told(lab: Lab) -> None:
    def refused() -> None:
        import pulumi_kubernetes as kubernetes

        provider = kubernetes.Provider("provider", kubeconfig=pulumi.Output.secret(lab.access.kubeconfig()))
        kubernetes.apiextensions.CustomResource(
            "pool",
            api_version="metallb.io/v1beta1",
            kind="IPAddressPool",
            metadata={"name": "a", "namespace": "default"},
            spec={"addresses": "192.0.2.0/30"},
            opts=pulumi.ResourceOptions(provider=provider),
        )

    with pytest.raises(automation.CommandError):
        lab.preview(refused)
    said = "".join(lab.said)
    assert "IPAddressPool default/a is refused" in said
    assert "Traceback" not in said
