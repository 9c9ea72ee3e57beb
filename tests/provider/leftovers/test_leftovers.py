"""What carries our marks in a project, and in which order it goes. Nothing else is ever named."""

from __future__ import annotations

from collections.abc import Iterable

import httpx
import pytest

from metal_ipi.provider.configuration import MetalSettings
from metal_ipi.provider.leftovers import inventory, removal
from metal_ipi.provider.leftovers.inventory import KINDS, PROJECT, Resource
from metal_ipi.provider.leftovers.removal import Target
from metal_ipi.provider.metal_client import MetalClient
from metal_ipi.provider.platforms.equinix_metal.documents import marks
from tests.provider.metal_answers import Json

pytestmark = pytest.mark.usefixtures("no_waiting")

TAGS = ["metal-ipi", "metal-ipi:stack=t", "metal-ipi:cluster=c.test"]
LABEL = "metal-ipi:t:c.test"
OTHERS = ["web", "metal-ipi-like", "metal-ipi:stack"]


class Project:
    """A project as the API shows it: lists by path, which shrink as things are deleted."""

    def __init__(self, **lists: list[Json]) -> None:
        self.lists = {kind.listed: lists.get(kind.member, []) for kind in KINDS}
        self.deleted: list[str] = []
        self.busy: dict[str, int] = {}
        """How often the deletion of an id is refused before it is taken."""
        self.lingering: dict[str, int] = {}
        """How often an id is still there after its deletion."""
        self.forbidden: dict[str, set[str]] = {"GET": set(), "DELETE": set()}
        """The ids of which the token may not ask so."""
        self.reaches: list[Json] = [{"id": "p", "devices": [{"href": "/metal/v1/devices/d"}]}]
        """The projects that the token reaches."""

    def answer(self, request: httpx.Request) -> httpx.Response:
        parts = request.url.path.removeprefix("/metal/v1/").split("/")
        match (request.method, parts):
            case ("GET", ["projects", "p", *several]):
                listed = "/".join(several)
                kind = next(kind for kind in KINDS if kind.listed == listed)
                assert all(request.url.params.get(key) == value for key, value in kind.params.items())
                return httpx.Response(200, json={kind.member: self.lists[listed], "meta": {"last_page": 1}})
            case ("GET", ["projects", "gone", *_]):
                return httpx.Response(404, json={"errors": ["Not found"]})
            case ("GET", ["projects"]):
                return httpx.Response(200, json={"projects": self.reaches, "meta": {"last_page": 1}})
            case (method, [*_, id]) if id in self.forbidden[method]:
                return httpx.Response(403, json={"errors": ["You are not authorized"]})
            case ("GET", [_, id]):
                left = self.lingering.get(id, 0)
                self.lingering[id] = left - 1
                return httpx.Response(200 if left > 0 else 404, json={"id": id})
            case ("DELETE", [*_, id]) if self.busy.get(id, 0) > 0:
                self.busy[id] -= 1
                return httpx.Response(422, json={"errors": ["it is in use"]})
            case ("DELETE", [*path, id]):
                query = f"?{request.url.params}" if request.url.params else ""
                self.deleted.append(f"{'/'.join(path)}/{id}{query}")
                return httpx.Response(204)
            case _:
                raise AssertionError(f"nobody told what to answer to {request.method} {request.url}")

    def client(self) -> MetalClient:
        settings = MetalSettings(auth_token="token", endpoint="https://api.equinix.com/metal/v1")
        return MetalClient(settings, timeout=1, transport=httpx.MockTransport(self.answer))

    async def found(self) -> list[Resource]:
        return (await self.looked()).ours

    async def looked(self, project: str = "p") -> inventory.Inventory:
        async with self.client() as client:
            return await inventory.inventory(client, project)

    async def remove(self, targets: Iterable[Target], patience: float = 5) -> tuple[bool, dict[str, str]]:
        told: dict[str, str] = {}

        def tell(target: Target, why: str) -> None:
            told[target.id] = why

        async with self.client() as client:
            return await removal.remove(client, targets, tell, patience=patience), told


def test_marks() -> None:
    ours = {"stack": "t", "cluster": "c.test"}
    assert marks(TAGS) == ours and marks([*TAGS, "metal-ipi:run=7", "x"]) == {**ours, "run": "7"}
    assert (
        marks((), LABEL) == ours and marks((), f"{LABEL}:storage") == ours and marks((), f"{LABEL} for disks") == ours
    )
    for foreign in (None, "", "metal-ipi", "metal-ipi:t", f"my {LABEL}", 7):
        assert marks(OTHERS, foreign) == {}


def full() -> Project:
    """One of each kind that is ours, and of each one that is not."""
    return Project(
        devices=[
            {"id": "d", "hostname": "w", "tags": TAGS, "state": "active", "created_at": "2026-06-01T00:00:00Z"},
            {"id": "d-spot", "hostname": "s", "tags": TAGS},
            {"id": "d-x", "hostname": "x", "tags": OTHERS},
        ],
        spot_market_requests=[
            {"id": "s", "instance_parameters": {"hostname": "s", "tags": TAGS}},
            {"id": "s-by-machine", "devices": [{"href": "/metal/v1/devices/d-spot"}]},
            {"id": "s-x", "instance_parameters": {"tags": OTHERS}, "devices": [{"href": "/metal/v1/devices/d-x"}]},
        ],
        bgp_sessions=[
            {"id": "b", "address_family": "ipv4", "device": {"href": "/metal/v1/devices/d"}},
            {"id": "b-x", "address_family": "ipv4", "device": {"href": "/metal/v1/devices/d-x"}},
        ],
        virtual_networks=[
            {"id": "v", "vxlan": 1000, "description": f"{LABEL}:storage"},
            {"id": "v-x", "vxlan": 1001, "description": "storage"},
        ],
        ip_addresses=[
            {"id": "i", "network": "198.51.100.0", "cidr": 29, "tags": TAGS},
            {"id": "i-own", "network": "198.51.100.8", "cidr": 31, "tags": TAGS, "management": True},
            {"id": "i-x", "network": "198.51.100.16", "cidr": 29, "tags": []},
        ],
        metal_gateways=[
            {"id": "g", "virtual_network": {"id": "v", "vxlan": 1000}},
            {"id": "g-by-block", "virtual_network": {"id": "v-x"}, "ip_reservation": {"id": "i"}},
            {"id": "g-x", "virtual_network": {"id": "v-x"}, "ip_reservation": {"id": "i-x"}},
        ],
        ssh_keys=[{"id": "k", "label": LABEL}, {"id": "k-x", "label": "laptop"}],
        api_keys=[{"id": "a", "description": f"{LABEL} cloud controller"}, {"id": "a-x", "description": "ci"}],
    )


async def test_everything_of_ours_is_found_and_nothing_else() -> None:
    found = await full().found()
    assert [(each.kind, each.id, each.name) for each in found] == [
        ("machine", "d", "w"),
        ("machine", "d-spot", "s"),
        ("spot market request", "s", "s"),
        ("spot market request", "s-by-machine", "s-by-machine"),
        ("BGP session", "b", "ipv4"),
        ("VLAN", "v", f"{LABEL}:storage"),
        ("reserved address", "i", "198.51.100.0/29"),
        ("gateway", "g", "1000"),
        ("gateway", "g-by-block", "g-by-block"),
        ("SSH key", "k", LABEL),
        ("API key", "a", f"{LABEL} cloud controller"),
    ]
    assert {(each.marks["stack"], each.marks["cluster"]) for each in found} == {("t", "c.test")}
    assert (found[0].created, found[0].state, found[1].created) == ("2026-06-01T00:00:00Z", "active", None)
    assert (await full().looked()).others == 8
    assert await full().looked("gone") == inventory.Inventory(ours=[], others=0)


async def test_what_others_need_goes_last() -> None:
    project = full()
    targets = [Target(kind=each.kind, id=each.id) for each in reversed(await project.found())]
    clean, told = await project.remove([Target(kind=PROJECT, id="p"), *targets])
    assert clean and set(told.values()) == {""}
    assert project.deleted == [
        "spot-market-requests/s-by-machine?force_termination=true",
        "spot-market-requests/s?force_termination=true",
        "devices/d-spot?force_delete=true",
        "devices/d?force_delete=true",
        "bgp/sessions/b",
        "metal-gateways/g-by-block",
        "metal-gateways/g",
        "ips/i",
        "virtual-networks/v",
        "ssh-keys/k",
        "api-keys/a",
        "projects/p",
    ]


async def test_what_is_busy_is_asked_for_again_and_what_lingers_is_waited_for() -> None:
    project = full()
    project.busy, project.lingering = {"d": 2, "v": 1}, {"d": 2, "g": 1}
    targets = [Target(kind="machine", id="d"), Target(kind="gateway", id="g"), Target(kind="VLAN", id="v")]
    assert await project.remove(targets) == (True, {"d": "", "g": "", "v": ""})


@pytest.mark.parametrize(("busy", "why"), [({"d": 99}, "it is in use"), ({}, "it was deleted, but still exists")])
async def test_what_does_not_go_is_told_and_the_rest_goes(busy: dict[str, int], why: str) -> None:
    project = full()
    project.busy, project.lingering = busy, {"d": 99}
    clean, told = await project.remove([Target(kind="machine", id="d"), Target(kind="SSH key", id="k")], patience=0.3)
    assert not clean and told["d"].endswith(f"does not delete it for 0.3 s: {why}") and told["k"] == ""


@pytest.mark.parametrize("kind", removal.ORDER)
async def test_a_token_that_may_not_delete_deletes_nothing(kind: str) -> None:
    project = full()
    project.forbidden["DELETE"], project.lingering = {"d"}, {"d": 99}
    clean, told = await project.remove([Target(kind=kind, id="d"), Target(kind="SSH key", id="k")])
    assert not clean and told["k"] == ""
    assert "the API token may not do this: it needs to read and write the project" in told["d"]


async def test_a_gateway_that_may_not_be_looked_at_is_not_gone() -> None:
    project = full()
    project.forbidden["GET"] = {"g"}
    clean, told = await project.remove([Target(kind="gateway", id="g")])
    assert not clean and "(HTTP 403)" in told["g"]


async def test_a_machine_that_metal_removed_itself_is_gone_when_no_project_lists_it() -> None:
    project = full()
    project.forbidden = {"GET": {"d"}, "DELETE": {"d"}}
    clean, told = await project.remove([Target(kind="machine", id="d")])
    assert not clean and "(HTTP 403)" in told["d"], "it is listed"
    project.reaches = []
    assert not (await project.remove([Target(kind="machine", id="d")]))[0], "nobody can tell"
    project.reaches = [{"id": "p", "devices": [{"href": "/metal/v1/devices/other"}]}]
    assert await project.remove([Target(kind="machine", id="d")]) == (True, {"d": ""})


def test_everything_that_is_listed_has_its_turn_to_be_deleted() -> None:
    assert sorted(removal.ORDER) == sorted([*(kind.name for kind in KINDS), PROJECT])
