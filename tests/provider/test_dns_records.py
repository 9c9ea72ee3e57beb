"""DnsRecords against a real Knot server: RFC 2136 with TSIG."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from provider.configuration import DnsSettings
from provider.dns_service import RecordSet, Rfc2136Service
from provider.errors import DnsConflict, RemoteError
from provider.values import UNKNOWN
from tests.provider import knot
from tests.provider.harness import Harness, Resource

pytestmark = pytest.mark.skipif(not knot.installed(), reason="knotd is not installed (apt: knot)")


@pytest.fixture(scope="module")
def dns(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    folder: Path = tmp_path_factory.mktemp("knot")
    with knot.running(folder) as settings:
        yield settings


def service(dns: dict[str, Any], zone: str = "facility.test") -> Rfc2136Service:
    settings = DnsSettings(
        server=dns["server"],
        port=dns["port"],
        tsig_name=dns["tsig"]["name"],
        tsig_algorithm=dns["tsig"]["algorithm"],
        tsig_secret=dns["tsig"]["secret"],
        propagation_timeout=5,
    )
    return Rfc2136Service(settings, zone)


def a_record(name: str, *values: str, **more: Any) -> dict[str, Any]:
    return {"name": f"{name}.facility.test", "type": "A", "values": list(values), **more}


def inputs(*records: dict[str, Any], ttl: int = 30, **more: Any) -> dict[str, Any]:
    return {"zone": "facility.test", "ttl": ttl, "records": list(records), **more}


async def resource(dns: dict[str, Any]) -> Resource:
    harness = Harness({"dns": dns})
    await harness.configure()
    return Resource(harness, "DnsRecords")


def test_whole_life(dns: dict[str, Any]) -> None:
    async def run() -> None:
        it = await resource(dns)
        first = inputs(a_record("api.one", "198.51.100.1", "198.51.100.3"), a_record("*.apps.one", "198.51.100.5"))
        await it.up(first)
        assert await service(dns).values("api.one.facility.test", "A") == {"198.51.100.1", "198.51.100.3"}
        assert await service(dns).values("x.apps.one.facility.test", "A") == {"198.51.100.5"}
        assert await it.changes(first) == []

        # Somebody else's value in our set stays, through update and delete.
        foreign = RecordSet(name="api.one.facility.test", type="A", values=frozenset({"192.0.2.77"}))
        await service(dns).change([foreign], [], 30)
        second = inputs(a_record("api.one", "198.51.100.1", "198.51.100.7"), a_record("n.one", "198.51.100.9"))
        assert await it.changes(second) == ["records[0].values", "records[1]"]
        await it.up(second)
        assert await service(dns).values("api.one.facility.test", "A") == {"198.51.100.1", "198.51.100.7", "192.0.2.77"}
        assert await service(dns).values("*.apps.one.facility.test", "A") == frozenset()

        await it.delete()
        await it.delete()
        assert await service(dns).values("api.one.facility.test", "A") == {"192.0.2.77"}
        assert await service(dns).values("n.one.facility.test", "A") == frozenset()

    asyncio.run(run())


def test_create_again_after_a_kill_finds_its_own_values(dns: dict[str, Any]) -> None:
    async def run() -> None:
        wanted = inputs(a_record("killed", "198.51.100.1"))
        await (await resource(dns)).up(wanted)
        again = await resource(dns)
        await again.up(wanted)
        assert await service(dns).values("killed.facility.test", "A") == {"198.51.100.1"}

    asyncio.run(run())


def test_foreign_values_are_refused_before_anything_changes(dns: dict[str, Any]) -> None:
    async def run() -> None:
        wanted = inputs(a_record("fresh.lab", "198.51.100.1"), a_record("taken.lab", "198.51.100.1"))
        with pytest.raises(DnsConflict, match=r"taken\.lab\.facility\.test A is 192\.0\.2\.99"):
            await (await resource(dns)).up(wanted)
        assert await service(dns).values("fresh.lab.facility.test", "A") == frozenset()
        # Announced values, and values of ephemeral resources, are no conflict.
        await (await resource(dns)).up(inputs(a_record("taken.lab", "198.51.100.1", alongside=["192.0.2.99"])))
        await (await resource(dns)).up(inputs(a_record("taken.lab", "198.51.100.3"), ephemeral=True))
        seen = await service(dns).values("taken.lab.facility.test", "A")
        assert seen == {"192.0.2.99", "198.51.100.1", "198.51.100.3"}

    asyncio.run(run())


@pytest.mark.parametrize("ephemeral", [False, True])
def test_refresh(dns: dict[str, Any], ephemeral: bool) -> None:
    async def run() -> None:
        wanted = inputs(a_record(f"drift-{ephemeral}", "198.51.100.1", "198.51.100.3"), ephemeral=ephemeral)
        it = await resource(dns)
        await it.up(wanted)
        gone = RecordSet(name=wanted["records"][0]["name"].lower(), type="A", values=frozenset({"198.51.100.3"}))
        await service(dns).change([], [gone], 0)
        await it.refresh()
        assert await it.changes(wanted) == ([] if ephemeral else ["records[0].values"])
        if not ephemeral:
            await it.up(wanted)
            assert await service(dns).values(*gone.key) == {"198.51.100.1", "198.51.100.3"}

    asyncio.run(run())


def test_pointers_texts_and_many_at_once(dns: dict[str, Any]) -> None:
    async def run() -> None:
        zone = "100.51.198.in-addr.arpa"
        records = [
            {"name": f"{n}.{zone}", "type": "PTR", "values": [f"lab-worker-{n}.facility.test."]} for n in range(1, 255)
        ]
        it = await resource(dns)
        await it.up({"zone": zone, "ttl": 30, "records": records})
        assert await service(dns, zone).values(f"254.{zone}", "PTR") == {"lab-worker-254.facility.test"}
        await it.refresh()
        assert await it.changes({"zone": zone, "ttl": 30, "records": records}) == []
        await it.delete()
        assert await service(dns, zone).values(f"1.{zone}", "PTR") == frozenset()

    asyncio.run(run())


def test_a_wrong_key_is_named_and_not_shown(dns: dict[str, Any]) -> None:
    async def run() -> None:
        wrong = {**dns, "tsig": {**dns["tsig"], "secret": "d3Jvbmd3cm9uZ3dyb25nd3Jvbmc="}}
        with pytest.raises(RemoteError, match="TSIG secret is not the server's") as caught:
            await (await resource(wrong)).up(inputs(a_record("wrong", "198.51.100.1")))
        assert "d3Jvbmd3" not in str(caught.value)
        unknown = {**dns, "tsig": {**dns["tsig"], "name": "nobody."}}
        with pytest.raises(RemoteError, match="does not know the TSIG key"):
            await (await resource(unknown)).up(inputs(a_record("wrong", "198.51.100.1")))

    asyncio.run(run())


def test_check_reports_all_problems_and_lets_unknown_values_pass(dns: dict[str, Any]) -> None:
    async def run() -> None:
        it = await resource(dns)
        wrong = inputs(
            a_record("a", "not-an-address"),
            {"name": "b.elsewhere.test", "type": "A", "values": ["198.51.100.1"]},
            a_record("a", "198.51.100.1"),
            {"name": "c.facility.test", "type": "MX", "values": ["x"], "vlaues": []},
            ttl=-1,
        )
        problems = await it.check(wrong)
        assert [problem.split(" ")[0] for problem in problems] == [
            "records[0].values[0]",
            "records[1].name",
            "records[2].name",
            "records[3].vlaues",
            "records[3].type",
            "ttl",
        ]
        assert "did you mean `values`?" in problems[3]
        unknown = inputs(a_record("a", UNKNOWN, "198.51.100.1"), {"name": UNKNOWN, "type": "A", "values": UNKNOWN})  # type: ignore[arg-type]
        assert await it.check(unknown) == []

    asyncio.run(run())
