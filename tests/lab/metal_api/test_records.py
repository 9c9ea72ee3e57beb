"""The saved tables and their journal."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lab.machines.base import Address
from lab.metal_api.exceptions import NotFound
from lab.metal_api.records import Record, Tables, registered, saved
from lab.metal_api.store import Store, read
from tests.lab.metal_api.harness import PROJECT, PUBLIC_KEY, SAVED, world
from tests.lab.metal_api.test_spot_market import BID


@saved("tests_things", indexed=("owner", "labels"))
@dataclass(kw_only=True)
class Thing(Record):
    """What these tests save."""

    id: str
    owner: str | None = None
    labels: list[str] = field(default_factory=list[str])
    places: list[Address] = field(default_factory=list[Address])


def _ids(tables: Tables, name: str, key: str) -> list[str]:
    return [thing.id for thing in tables.table(Thing).where(name, key)]


def test_records_are_found_by_what_they_are_indexed_by() -> None:
    tables = Tables()
    things = tables.table(Thing)
    a, b = things.add(Thing(id="a", owner="x", labels=["one", "two"])), things.add(Thing(id="b", owner="x"))
    things.add(Thing(id="c"))
    assert (_ids(tables, "owner", "x"), _ids(tables, "labels", "two"), _ids(tables, "owner", "None")) == (
        ["a", "b"],
        ["a"],
        [],
    )
    a.owner, b.labels = "y", ["two"]
    assert (_ids(tables, "owner", "x"), _ids(tables, "owner", "y"), _ids(tables, "labels", "two")) == (
        ["b"],
        ["a"],
        ["a", "b"],
    )
    del things["a"]
    a.owner = "x"
    assert (_ids(tables, "owner", "x"), _ids(tables, "owner", "y"), things.has("labels", "one")) == (["b"], [], False)
    with pytest.raises(NotFound):
        things.find("a")


def test_a_kind_is_registered_once() -> None:
    with pytest.raises(TypeError, match="two kinds of records are saved as tests_things: Thing, Other"):

        @saved("tests_things")
        @dataclass(kw_only=True)
        class Other(Record):  # pyright: ignore[reportUnusedClass]
            id: str


def _stored(directory: Path, change: Callable[[Tables, Store], None]) -> None:
    """Load what is there, and change it."""

    async def run() -> None:
        tables = Tables()
        store = Store(directory / "saved", tables, delay=1000)
        store.load()
        change(tables, store)
        store.close()

    asyncio.run(run())


def test_only_what_changed_is_written_and_all_of_it_comes_back(tmp_path: Path) -> None:
    place = Address(address="198.51.100.1", prefix=31, gateway="198.51.100.0", public=True)

    def begin(tables: Tables, store: Store) -> None:
        for name in "abc":
            tables.table(Thing).add(Thing(id=name, places=[place]))
        store.commit()
        before = (tmp_path / "saved").stat().st_size
        tables.table(Thing)["b"].owner = "x"
        del tables.table(Thing)["c"]
        store.commit()
        written = (tmp_path / "saved").read_text()[before:]
        assert [change[1] for change in json.loads(written)] == ["b", "c"]
        store.commit()
        assert (tmp_path / "saved").read_text()[before:] == written

    def again(tables: Tables, store: Store) -> None:
        things = tables.table(Thing)
        assert list(things) == ["a", "b"]
        assert (things["a"].places, _ids(tables, "owner", "x")) == ([place], ["b"])

    _stored(tmp_path, begin)
    _stored(tmp_path, again)


def test_a_line_that_is_not_whole_was_never_written(tmp_path: Path) -> None:
    def begin(tables: Tables, store: Store) -> None:
        tables.table(Thing).add(Thing(id="a"))
        store.commit()

    _stored(tmp_path, begin)
    with (tmp_path / "saved").open("a") as stream:
        stream.write('[["tests_things","b",{"id":"b"')
    assert read(tmp_path / "saved")["tests_things"].keys() == {"a"}

    def again(tables: Tables, store: Store) -> None:
        tables.table(Thing).add(Thing(id="c"))
        store.commit()

    _stored(tmp_path, again)
    assert read(tmp_path / "saved")["tests_things"].keys() == {"a", "c"}


def test_a_journal_that_has_grown_is_written_anew(tmp_path: Path) -> None:
    def change(tables: Tables, store: Store) -> None:
        thing = tables.table(Thing).add(Thing(id="a"))
        for number in range(40):
            thing.owner = f"{number}" * 50_000
            store.commit()

    _stored(tmp_path, change)
    assert (tmp_path / "saved").stat().st_size < 1_500_000
    assert read(tmp_path / "saved")["tests_things"]["a"]["owner"] == "39" * 50_000


async def test_every_kind_of_record_comes_back(tmp_path: Path) -> None:
    """The account as a whole, after orders and settings of every service."""
    async with world(tmp_path) as lab:
        device = await lab.order(tags=["a"], customdata={"b": [1]})
        await lab.booted(device["id"])
        await lab.post(f"{PROJECT}/ssh-keys", {"label": "k", "key": PUBLIC_KEY})
        await lab.call("PUT", "/lab/capacity", json={"metro": "da", "plan": "c3.small.x86", "servers": 3}, status=200)
        await lab.post("/lab/hardware-reservations", {"plan": "c3.small.x86", "facility": "lab1"})
        await lab.post(f"{PROJECT}/ips", {"type": "public_ipv4", "quantity": 1, "metro": "lb", "tags": ["a"]})
        await lab.post(f"{PROJECT}/bgp-configs", {"deployment_type": "local", "asn": 65000}, status=204)
        await lab.post(f"{device['href']}/bgp/sessions", {"address_family": "ipv4"})
        network = await lab.post(f"{PROJECT}/virtual-networks", {"metro": "lb"})
        path = f"{device['network_ports'][0]['href']}/vlan-assignments/batches"
        await lab.post(path, {"vlan_assignments": [{"vlan": network["id"]}]})
        lab.elapse(1)
        wanted = {"virtual_network_id": network["id"], "private_ipv4_subnet_size": 8}
        await lab.post(f"{PROJECT}/metal-gateways", wanted)
        await lab.post(f"{PROJECT}/spot-market-requests", BID)
        await lab.post("/lab/faults", {"kind": "never_boots", "match": {"hostname": "x"}})
        before = read(tmp_path / SAVED)
        kinds = set(registered()) - {"tests_things"}
        assert kinds == before.keys()
    async with world(tmp_path) as lab:
        lab.store.commit()
        assert read(tmp_path / SAVED) == before


def test_what_an_earlier_version_saved_and_this_one_does_not_know_is_left_out(tmp_path: Path) -> None:
    changes = [["tests_nothing", "a", {"id": "a"}], ["tests_things", "a", {"id": "a", "odd": 1, "owner": "x"}]]
    (tmp_path / "saved").write_text(json.dumps(changes) + "\n")

    def look(tables: Tables, _: Store) -> None:
        assert tables.table(Thing)["a"] == Thing(id="a", owner="x")

    _stored(tmp_path, look)
