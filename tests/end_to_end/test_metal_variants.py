"""Each way to order machines has a stack: up, again without a change, and down, with nothing left in any project."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.end_to_end.conftest import SMALL, copies
from tests.end_to_end.project import Project, await_
from tools.containment import python_module, run_leashed
from tools.engine import ensure
from tools.facility import Facility
from tools.layout import Layout

pytestmark = [pytest.mark.lab, pytest.mark.engine, pytest.mark.nightly]
# Every run of the tests has the two in which a machine comes about in another way than by an order of its own, or is
# connected in another way. What a stack orders is tested without an installation: tests/stacks/test_wiring.py.

_PATIENCE = 240.0
_TIMES = ("created_at", "termination_time")


class Variant:
    """A variant's stack, up."""

    def __init__(self, project: Project) -> None:
        self.project = project
        project.make("up")
        self.output = project.output()
        self.devices: dict[str, dict[str, Any]] = {}
        self.look()

    def look(self) -> None:
        """Ask the API what devices there are."""
        found = self.project.holdings()["devices"]
        stack = f"{self.project.stack}-"
        self.devices = {device["hostname"].removeprefix(stack): device for device in found}

    def call(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """One call of the Metal API."""
        return json.loads(self.project.inside("call", method, path, *([] if body is None else [json.dumps(body)])))

    def inputs(self, type_: str) -> list[dict[str, Any]]:
        """The inputs of the stack's resources of a type."""
        return [each["inputs"] for each in self.project.deployment()["resources"] if each["type"] == type_]

    def assert_formed(self, *names: str) -> None:
        """These machines and no others, all of them nodes that passed their checks, all with the same marks."""
        stack = self.project.stack
        assert sorted(self.devices) == sorted(names)
        nodes = {node["name"]: node for node in self.output["nodes"]}
        assert set(nodes) == {f"{stack}-{name}.{stack}.facility.test" for name in names}
        for node in nodes.values():
            assert {check["status"] for check in node["checks"]} == {"passed"}, node
        runs: set[str] = set()
        for name, device in self.devices.items():
            role = name.rpartition("-")[0]
            marks = {f"metal-ipi:stack={stack}", f"metal-ipi:name={stack}-{name}", f"metal-ipi:role={role}"}
            assert marks <= set(device["tags"]), device["tags"]
            runs |= {tag for tag in device["tags"] if tag.startswith("metal-ipi:run=")}
        assert len(runs) == 1, runs
        assert self.output["bootstrap"] == {"present": False}

    def assert_nothing_to_do(self) -> None:
        """A second `up`, after a refresh, changes nothing."""
        before = {name: device["id"] for name, device in self.devices.items()}
        self.project.assert_unchanged("refresh", "up")
        self.look()
        assert {name: device["id"] for name, device in self.devices.items()} == before

    def await_gone(self, name: str) -> None:
        """Wait until the API does not list a machine any more."""
        stack = self.project.stack
        await_(lambda: f"{stack}-{name}" not in self.project.devices(), f"{name} is gone", _PATIENCE)
        self.look()

    def reservations(self) -> list[str]:
        """The ids of the hardware reservations that the stack file lists."""
        document = yaml.safe_load((self.project.root / "stacks" / f"Pulumi.{self.project.stack}.yaml").read_text())
        return list(document["config"]["metal-ipi:lab"]["reservations"])

    def reservation(self, name: str) -> str:
        """The id of the reservation that a machine is on."""
        return str(self.devices[name]["hardware_reservation"]["href"]).rpartition("/")[2]

    def file(self, name: str, connection: str) -> str:
        """One of NetworkManager's connections, as a machine has it."""
        root = self.project.layout.state / "machines" / self.devices[name]["id"] / "root"
        return (root / "etc/NetworkManager/system-connections" / f"{connection}.nmconnection").read_text()

    def destroy(self) -> None:
        """Take the stack down, but not the lab; then nothing is left in any project, the official client says."""
        layout = Layout(root=self.project.root, stack=self.project.stack)
        engine, facility = ensure(print), Facility(layout=layout)
        inner = python_module("--root", str(self.project.root), "contain", "engine", "down", "--stack", layout.stack)
        status = run_leashed(
            facility.enter([*inner, "--engine", str(engine.path), "--engine-version", engine.version]),
            cwd=self.project.root,
            env={**self.project.environment(), **facility.environment(facility.facts())},
            started=lambda leash: None,
        )
        assert status == 0
        assert self.project.listing() == {}


Life = Callable[[str], AbstractContextManager[Variant]]


@pytest.fixture
def life(tmp_path: Path) -> Life:
    """Brings a stack up; afterwards it changes nothing, and goes without leaving anything."""

    @contextmanager
    def begin(stack: str) -> Generator[Variant, None, None]:
        for project in copies(tmp_path, stack=stack, variant={} if stack == "elastic" else SMALL):
            variant = Variant(project)
            yield variant
            variant.look()
            variant.assert_nothing_to_do()
            variant.destroy()
            project.assert_down()

    return begin


def _nodes(workers: int, masters: int = 3) -> list[str]:
    return [*(f"control-plane-{n}" for n in range(masters)), *(f"worker-{n}" for n in range(workers))]


def test_a_project_is_made_and_deleted(life: Life) -> None:
    with life("newproject") as stack:
        stack.assert_formed(*_nodes(1))
        assert [project["name"] for project in stack.project.holdings()["projects"]] == ["newproject"]
        assert stack.project.listing()["projects"] == ["newproject"]
        stack.project.keep(platform={"projectName": "renamed"})
        assert "2 updated" in stack.project.make("up").out, "it is renamed in place"
        assert stack.project.listing()["projects"] == ["renamed"]
        machines = stack.project.listing()["devices"]
        other = "52000fb2-ee46-4673-93a8-de2c2bdba33b"
        stack.project.configure(platform={"projectName": None, "projectId": other})
        told = " ".join(stack.project.make("up", fails=True).text.split())
        assert f"a project that exists (platform.projectId {other}): existing resources would stay behind" in told
        stack.project.restore()
        assert stack.project.listing()["devices"] == machines and stack.project.listing()["projects"] == ["renamed"]


def test_three_nodes_run_workloads_as_well(life: Life) -> None:
    with life("compact") as stack:
        stack.assert_formed(*_nodes(0))
        records = stack.project.holdings()["records"]
        served = {record.split()[-1] for record in records if record.startswith("*.apps.compact.facility.test. A")}
        assert served == {node["public_ipv4"] for node in stack.output["nodes"]}


def test_a_single_node_is_formed_by_a_bootstrap_machine(life: Life) -> None:
    with life("single") as stack:
        stack.assert_formed(*_nodes(0, masters=1))
        (device,) = stack.devices.values()
        ordered, ends = (datetime.fromisoformat(device[key].replace("Z", "+00:00")) for key in _TIMES)
        assert timedelta(hours=11.9) < ends - ordered <= timedelta(hours=12)
        assert device["customdata"] == {"owner": "nobody"} and device["tags"][-1] == "rehearsal"
        assert "deletes every machine of this cluster at" in stack.project.make("up").text


def test_machines_of_another_architecture(life: Life) -> None:
    with life("arm64") as stack:
        stack.assert_formed(*_nodes(1))
        assert {device["plan"]["slug"] for device in stack.devices.values()} == {"c3.large.arm64"}
        for node in stack.output["nodes"]:
            assert "karg console=ttyAMA0,115200" in {check["name"] for check in node["checks"]}
        for device in stack.devices.values():
            console = stack.project.layout.state / "machines" / device["id"] / "console.log"
            assert "live-kernel.aarch64" in console.read_text(errors="replace")


def test_elastic_addresses_are_announced_by_workers_with_subnets(kubernetes: None, life: Life) -> None:
    with life("elastic") as stack:
        stack.assert_formed(*_nodes(2))
        (block,) = stack.project.holdings()["reservations"]
        assert stack.output["serviceAddresses"]["pools"] == {"elastic": [block["name"]]}
        sizes = {
            name: address["cidr"]
            for name, device in stack.devices.items()
            for address in device["ip_addresses"]
            if address["public"] and address["address_family"] == 4
        }
        assert sizes == {name: 29 if name.startswith("worker") else 31 for name in stack.devices}


def test_workers_come_from_the_spot_market_and_are_taken_away(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    with life("spot") as stack:
        stack.assert_formed(*_nodes(2))
        spot = {name: device.get("spot_instance") or False for name, device in stack.devices.items()}
        assert spot == {name: name.startswith("worker") for name in stack.devices}
        assert len(stack.project.listing()["spot market requests"]) == 2

        evicted = stack.devices["worker-1"]["id"]
        stack.call("POST", "/lab/spot-evictions", {"id": evicted, "seconds": 0})
        stack.await_gone("worker-1")
        told = stack.project.make("up", fails=True).text
        assert "spot-worker-1 was terminated" in told and "make up REPLACE=spot-worker-1" in told, told
        monkeypatch.setenv("REPLACE", "spot-worker-1")
        stack.project.make("up")
        monkeypatch.delenv("REPLACE")
        stack.look()
        stack.output = stack.project.output()
        stack.assert_formed(*_nodes(2))
        assert stack.devices["worker-1"]["id"] != evicted

        # A request whose machine was taken away can be given back as well.
        stack.call("POST", "/lab/spot-evictions", {"id": stack.devices["worker-1"]["id"], "seconds": 0})
        stack.await_gone("worker-1")
        stack.project.keep(workers={"count": 1})
        stack.project.make("up")
        assert len(stack.project.listing()["spot market requests"]) == 1


def test_machines_are_on_reserved_servers_and_replaced_on_them(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    with life("reserved") as stack:
        stack.assert_formed(*_nodes(1))
        names = [*_nodes(1)]
        servers = {name: stack.reservation(name) for name in names}
        assert servers == dict(zip(names, stack.reservations()[1:], strict=True))
        before = stack.devices["control-plane-1"]["id"]
        monkeypatch.setenv("REPLACE", "reserved-control-plane-1")
        stack.project.make("up")
        monkeypatch.delenv("REPLACE")
        stack.look()
        assert stack.devices["control-plane-1"]["id"] != before
        assert {name: stack.reservation(name) for name in names} == servers


def test_vlans_are_on_hybrid_bonds(life: Life) -> None:
    with life("hybrid") as stack:
        stack.assert_formed(*_nodes(2))
        project = stack.devices["worker-0"]["project"]["href"].rpartition("/")[2]
        gateway = stack.call("GET", f"/projects/{project}/metal-gateways?include=ip_reservation,virtual_network")
        (only,) = gateway["metal_gateways"]
        subnet = ipaddress.ip_network(f"{only['ip_reservation']['network']}/{only['ip_reservation']['cidr']}")
        assert only["virtual_network"]["vxlan"] == 1100 and subnet.num_addresses == 16
        for name, device in stack.devices.items():
            bond = next(port for port in device["network_ports"] if port["name"] == "bond0")
            port = stack.call("GET", f"/ports/{bond['id']}?include=virtual_networks")
            worker = name.startswith("worker")
            assert port["network_type"] == "hybrid-bonded"
            assert {each["vxlan"] for each in port["virtual_networks"]} == ({1100, 1200} if worker else {1100})
            place = int(name[-1]) + (6 if worker else 2)
            assert f"address1={subnet[place]}/28" in stack.file(name, "vlan-storage"), name
            if worker:
                assert f"address1=10.99.0.{place}/24" in stack.file(name, "vlan-backup")
