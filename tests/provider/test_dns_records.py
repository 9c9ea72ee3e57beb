"""DnsRecords against a real Knot server: RFC 2136 with TSIG."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import dns.message
import dns.query
import dns.rcode
import dns.rdatatype
import dns.tsigkeyring
import dns.update
import dns.zone
import pytest

from metal_ipi.provider.dns_ownership import Owner, digest, is_place, place_of, texts
from metal_ipi.provider.dns_services import Key, authorities, rfc2136
from metal_ipi.provider.dns_services.authorities import Server
from metal_ipi.provider.errors import InitFailed, RemoteError
from metal_ipi.provider.values import UNKNOWN
from tests.provider import dns_life, knot
from tests.provider.dns_life import DOMAIN, a, inputs, resource
from tests.provider.harness import Harness, Resource

pytestmark = [
    pytest.mark.skipif(not knot.installed(), reason="knotd is not installed (apt: knot)"),
    pytest.mark.usefixtures("no_waiting"),
]


class Knot:
    """The server, as somebody else with a key of the zone sees it."""

    def __init__(self, config: dict[str, Any], zone: str = "facility.test") -> None:
        self.config = config
        self._zone = zone
        key = config["tsig"]
        self._keys = dns.tsigkeyring.from_text({key["name"]: (key["algorithm"], key["secret"])})

    def _answer(self, name: str, type_: str) -> dns.message.Message:
        query = dns.message.make_query(name + ".", type_)
        return dns.query.tcp(query, self.config["server"], 5, self.config["port"])

    def values(self, name: str, type_: str) -> set[str]:
        wanted = dns.rdatatype.from_text(type_)
        sets = [rrset for rrset in self._answer(name, type_).answer if rrset.rdtype == wanted]
        return {rdata.to_text().strip('"') for rrset in sets for rdata in rrset}

    def ttl(self, name: str, type_: str) -> int:
        return int(self._answer(name, type_).answer[0].ttl)

    def add(self, name: str, type_: str, value: str) -> None:
        update = dns.update.UpdateMessage(self._zone, keyring=self._keys)
        update.add(name + ".", 60, type_, value)
        self._send(update)

    def remove(self, name: str, type_: str, value: str) -> None:
        update = dns.update.UpdateMessage(self._zone, keyring=self._keys)
        update.delete(name + ".", type_, f'"{value}"' if type_ == "TXT" else value)
        self._send(update)

    def _send(self, update: dns.update.UpdateMessage) -> None:
        assert dns.query.tcp(update, self.config["server"], 5, self.config["port"]).rcode() == dns.rcode.NOERROR

    def everything(self) -> set[tuple[str, str, str]]:
        zone = dns.zone.Zone(self._zone, relativize=False)
        dns.query.inbound_xfr(self.config["server"], zone, port=self.config["port"])
        return {
            (name.to_text(omit_final_dot=True), dns.rdatatype.to_text(rdata.rdtype), rdata.to_text().strip('"'))
            for name, _, rdata in zone.iterate_rdatas()
            if rdata.rdtype not in (dns.rdatatype.SOA, dns.rdatatype.NS)
        }


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    folder: Path = tmp_path_factory.mktemp("knot")
    with knot.running(folder) as settings:
        yield settings


@pytest.mark.parametrize("story", dns_life.STORIES, ids=dns_life.named)
async def test_life(server: dict[str, Any], story: dns_life.Story) -> None:
    await story(Knot(server))


async def test_a_value_that_is_gone_comes_back(server: dict[str, Any]) -> None:
    zone, wanted = Knot(server), inputs(a("drift", "198.51.100.1", "198.51.100.3"))
    it = await resource(zone)
    await it.up(wanted)
    zone.remove(f"drift.{DOMAIN}", "A", "198.51.100.3")
    await it.refresh()
    assert await it.changes(wanted) == [f'records["drift.{DOMAIN} A"].values']
    await it.up(wanted)
    assert zone.values(f"drift.{DOMAIN}", "A") == {"198.51.100.1", "198.51.100.3"}
    await it.delete()


async def test_pointers_and_many_at_once(server: dict[str, Any]) -> None:
    """Several messages; and records of other reverse zones are passed over, for addresses are only known late."""
    zone = "100.51.198.in-addr.arpa"
    records = {
        f"lab-worker-{n}.{DOMAIN} PTR": {
            "name": f"{n}.{zone}",
            "type": "PTR",
            "values": [f"lab-worker-{n}.{DOMAIN}."],
        }
        for n in range(1, 255)
    }
    elsewhere = {"name": "1.113.0.203.in-addr.arpa", "type": "PTR", "values": [f"other.{DOMAIN}"]}
    wanted = {"zone": zone, "ttl": 30, "records": {**records, f"other.{DOMAIN} PTR": elsewhere}}
    it, seen = await resource(Knot(server)), Knot(server, zone)
    await it.up(wanted)
    assert seen.values(f"254.{zone}", "PTR") == {f"lab-worker-254.{DOMAIN}."}
    assert len(seen.everything()) == 254 + len(dns_life.markers(seen))
    await it.refresh()
    assert await it.changes(wanted) == []
    seen.remove(f"7.{zone}", "PTR", f"lab-worker-7.{DOMAIN}.")
    await it.refresh()
    assert await it.changes(wanted) == [f'records["lab-worker-7.{DOMAIN} PTR"]']
    await it.delete()
    assert seen.everything() == set()


async def test_what_a_pool_writes_between_two_answers_is_no_conflict(
    server: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its values are in the answers, and its markers, which were asked for before, are not."""
    zone, key, value = Knot(server), (f"apps.{DOMAIN}", "A"), "198.51.100.2"
    (marker,) = texts(Owner(stack="metal-ipi/test-b", resource="it"), frozenset({digest(key, value)}))
    reads: list[bool] = []

    async def torn(primary: Server, keys: Iterable[Key]) -> dict[Key, dict[str, int]]:
        asked = set(keys)
        places = {each for each in asked if is_place(each)}
        found = await authorities.ask_all(primary, places)
        if places and not reads:
            zone.add(place_of(DOMAIN), "TXT", marker)
            zone.add(*key, value)
        reads.append(bool(places))
        return {**found, **await authorities.ask_all(primary, asked - places)}

    monkeypatch.setattr(rfc2136, "ask_all", torn)
    it = await resource(zone, stack="test-a")
    await it.up(inputs(a("apps", "198.51.100.1"), beside="metal-ipi/test"))
    assert zone.values(*key) == {"198.51.100.1", value} and sum(reads) == 2
    await it.delete()
    zone.remove(place_of(DOMAIN), "TXT", marker)
    zone.remove(*key, value)


async def test_what_a_wildcard_answers_is_no_clash(server: dict[str, Any]) -> None:
    zone = Knot(server)
    zone.add("*.facility.test", "A", "192.0.2.42")
    zone.add("*.facility.test", "TXT", "hello")
    it = await resource(zone)
    await it.up(inputs(a("wild", "198.51.100.1")))
    assert ("A", "198.51.100.1") in {(kind, value) for _, kind, value in zone.everything()}
    await it.delete()
    zone.remove("*.facility.test", "A", "192.0.2.42")
    zone.remove("*.facility.test", "TXT", "hello")


async def test_a_wrong_key_is_named_and_not_shown(server: dict[str, Any]) -> None:
    wrong = {**server["tsig"], "secret": "d3Jvbmd3cm9uZ3dyb25nd3Jvbmc="}
    with pytest.raises(RemoteError, match=r"has another TSIG secret: correct dns\.tsig\.secret") as caught:
        await (await resource(Knot(server), tsig=wrong)).up(inputs(a("wrong", "198.51.100.1")))
    assert "d3Jvbmd3" not in str(caught.value)
    unknown = {**server["tsig"], "name": "nobody."}
    with pytest.raises(RemoteError, match="does not know the TSIG key"):
        await (await resource(Knot(server), tsig=unknown)).up(inputs(a("wrong", "198.51.100.1")))


async def test_every_authoritative_server_is_waited_for(
    server: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The zone's NS set names 192.0.2.53, where nobody answers: what was made is kept, and the next run goes on."""
    monkeypatch.setattr(authorities, "_TIMEOUT", 0.2)
    zone = Knot(server)
    it = await resource(zone, propagation="authoritative", propagationTimeout=1)
    wanted = inputs(a("slow", "198.51.100.1"))
    with pytest.raises(InitFailed, match=r"ns1\.facility\.test \(192\.0\.2\.53\) port 53 does not answer"):
        await it.up(wanted)
    assert zone.values(f"slow.{DOMAIN}", "A") == {"198.51.100.1"}
    it.harness = (await resource(zone)).harness
    await it.up(wanted)
    assert await it.changes(wanted) == []
    await it.delete()


async def test_a_zone_is_delegated_by_hand(server: dict[str, Any], tmp_path: Path) -> None:
    """What to set in the parent zone is told; once somebody has set it, the run goes on."""
    parent = Knot(server)
    with knot.running(tmp_path, zone="sub.facility.test") as own:
        settings = {"timeout": 8, "parentServers": [f"127.0.0.1#{server['port']}"]}
        child = Knot(own, "sub.facility.test")
        it = await resource(child, delegation=settings)
        wanted = {"zone": "sub.facility.test", "ttl": 30, "records": []}
        wanted["records"] = [{"name": "api.sub.facility.test", "type": "A", "values": ["198.51.100.1"]}]
        running = asyncio.create_task(it.up(wanted))
        while not it.harness.log.messages:
            assert not running.done(), running.result()
            await asyncio.sleep(0.05)
        told = next(message for message in it.harness.log.messages if " to delegate " in message)
        assert "sub.facility.test. NS ns1.sub.facility.test." in told
        assert "ns1.sub.facility.test. A 192.0.2.53" in told
        assert not running.done()
        parent.add("sub.facility.test", "NS", "ns1.sub.facility.test.")
        await asyncio.wait_for(running, 10)
        parent.remove("sub.facility.test", "NS", "ns1.sub.facility.test.")
        impatient = await resource(child, delegation={**settings, "timeout": 1})
        with pytest.raises(InitFailed, match=r"not delegated within 1 s.* does not name ns1\.sub\.facility\.test"):
            await impatient.up(wanted)
        await it.delete()


async def test_check_reports_all_problems_and_lets_unknown_values_pass(server: dict[str, Any]) -> None:
    it = await resource(Knot(server))
    wrong = {
        "zone": "facility.test",
        "domain": "lab.elsewhere.test",
        "ttl": -1,
        "records": [
            a("a", "not-an-address"),
            {"name": "b.elsewhere.test", "type": "A", "values": ["198.51.100.1"]},
            a("a", "198.51.100.1"),
            {"name": "c.facility.test", "type": "MX", "values": ["x"], "vlaues": []},
        ],
    }
    problems = await it.check(wrong)
    assert sorted(problem.split(" ")[0] for problem in problems) == [
        "domain",
        "records[0].values[0]",
        "records[1].name",
        "records[2].name",
        "records[3].type",
        "records[3].vlaues",
        "ttl",
    ]
    assert any("did you mean `values`?" in problem for problem in problems)
    (problem,) = await it.check(inputs(a("a", "x")))
    assert problem == f'records["a.{DOMAIN} A"].values[0] must be an IPv4 address'
    unknown = inputs(a("a", UNKNOWN, "198.51.100.1"))  # type: ignore[arg-type]
    unknown["records"]["b PTR"] = {"name": UNKNOWN, "type": "PTR", "values": UNKNOWN}
    assert await it.check(unknown) == []
    it.id, it.state = "x", {**inputs(a("a", "198.51.100.1")), "marked": True}
    assert await it.changes(unknown) == [f'records["a.{DOMAIN} A"].values', 'records["b PTR"]']


async def test_a_list_of_records_is_told_by_name_and_type() -> None:
    it = Resource(Harness(), "DnsRecords")
    old = {"zone": "facility.test", "ttl": 30, "records": [a("a", "198.51.100.1"), a("b", "198.51.100.3")]}
    it.id, it.state = "x", {**old, "marked": True}
    assert await it.changes(old) == []
    new = {**old, "records": [a("b", "198.51.100.4"), a("c", "198.51.100.5")]}
    assert await it.changes(new) == [
        f'records["a.{DOMAIN} A"]',
        f'records["b.{DOMAIN} A"].values',
        f'records["c.{DOMAIN} A"]',
    ]
    it.state = dict(old)
    assert await it.changes(old) == ["marked"], "values from before there were markers get one"
