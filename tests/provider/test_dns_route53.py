"""DnsRecords in Route 53, as moto's server emulates it; throttling, expired keys and races are put before it."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest

from metal_ipi.provider.dns_services import canonical, spelled
from metal_ipi.provider.errors import DnsConflict, RemoteError
from tests.provider import dns_life
from tests.provider.dns_life import DOMAIN, a, inputs, resource

pytestmark = pytest.mark.usefixtures("no_waiting")

if TYPE_CHECKING:
    from mypy_boto3_route53 import Route53Client

    from tests.provider.moto_server import Faults

moto = pytest.importorskip("moto.server", reason="moto's server is not installed: Route 53 is not tested")


_NAMESPACE = "{https://route53.amazonaws.com/doc/2013-04-01/}"


class HostedZone:
    """The zone, as somebody else with keys of the account sees it."""

    def __init__(self, url: str, faults: Faults) -> None:
        import boto3

        self.faults = faults
        self.client: Route53Client = boto3.client(
            "route53",
            region_name="us-east-1",
            aws_access_key_id="somebody",
            aws_secret_access_key="else",
            endpoint_url=url,
        )
        made = self.client.create_hosted_zone(Name="facility.test", CallerReference=str(id(self)))
        self.id = made["HostedZone"]["Id"].rpartition("/")[2]
        self.race: Callable[[], None] | None = None
        faults.before = self._checked
        self.config: dict[str, Any] = {
            "service": "route53",
            "accessKeyId": "AKIAIOSFODNN7EXAMPLE",
            "secretAccessKey": "a-secret-nobody-may-see",
            "endpoint": url,
            "propagationTimeout": 5,
        }

    def _sets(self) -> dict[tuple[str, str], dict[str, Any]]:
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for page in self.client.get_paginator("list_resource_record_sets").paginate(HostedZoneId=self.id):
            for item in page["ResourceRecordSets"]:
                name = item["Name"].rstrip(".").replace("\\052", "*")
                values = {canonical(item["Type"], each["Value"]) for each in item.get("ResourceRecords", [])}
                found[(name, str(item["Type"]))] = {"values": values, "ttl": item.get("TTL")}
        return found

    def values(self, name: str, type_: str) -> set[str]:
        return set(self._sets().get((name, type_), {"values": set[str]()})["values"])

    def ttl(self, name: str, type_: str) -> int:
        return int(self._sets()[(name, type_)]["ttl"])

    def _set(self, name: str, type_: str, values: set[str], action: Any) -> None:
        records = [{"Value": spelled(type_, value)} for value in sorted(values)]
        ttl = self._sets().get((name, type_), {"ttl": 60})["ttl"]
        record: Any = {"Name": name + ".", "Type": type_, "TTL": ttl, "ResourceRecords": records}
        batch: Any = {"Changes": [{"Action": action, "ResourceRecordSet": record}]}
        self.client.change_resource_record_sets(HostedZoneId=self.id, ChangeBatch=batch)

    def add(self, name: str, type_: str, value: str) -> None:
        self._set(name, type_, self.values(name, type_) | {canonical(type_, value)}, "UPSERT")

    def remove(self, name: str, type_: str, value: str) -> None:
        left = self.values(name, type_) - {canonical(type_, value)}
        self._set(name, type_, left or self.values(name, type_), "UPSERT" if left else "DELETE")

    def everything(self) -> set[tuple[str, str, str]]:
        return {
            (name, kind, value)
            for (name, kind), found in self._sets().items()
            if kind not in ("SOA", "NS")
            for value in found["values"]
        }

    def _checked(self, method: str, body: bytes) -> str | None:
        """What moto leaves out: a set is only deleted with exactly the values it has (ChangeResourceRecordSets)."""
        if method != "POST" or b"ChangeResourceRecordSetsRequest" not in body:
            return None
        race, self.race = self.race, None
        if race is not None:
            race()
        there = self._sets()
        for change in ElementTree.fromstring(body).iter(f"{_NAMESPACE}Change"):
            texts = {element.tag.removeprefix(_NAMESPACE): element.text or "" for element in change.iter()}
            kind = texts["Type"]
            values = {canonical(kind, element.text or "") for element in change.iter(f"{_NAMESPACE}Value")}
            known = there.get((texts["Name"].rstrip("."), kind))
            wanted = {"values": values, "ttl": int(texts.get("TTL") or 0)}
            if texts["Action"] == "DELETE" and known != wanted:
                return "InvalidChangeBatch"
        return None

    def close(self) -> None:
        self.faults.before = None
        self.client.close()


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, Faults]]:
    from tests.provider import moto_server

    with moto_server.running() as running:
        yield running


@pytest.fixture
def zone(server: tuple[str, Faults]) -> Iterator[HostedZone]:
    url, faults = server
    urllib.request.urlopen(urllib.request.Request(f"{url}/moto-api/reset", method="POST")).close()
    made = HostedZone(url, faults)
    try:
        yield made
        assert faults.waiting == [], "faults that never came"
    finally:
        made.close()
        faults.waiting.clear()


@pytest.mark.parametrize("story", dns_life.STORIES, ids=dns_life.named)
async def test_life(zone: HostedZone, story: dns_life.Story) -> None:
    await story(zone)


async def test_a_batch_is_one_request(zone: HostedZone) -> None:
    it = await resource(zone)
    zone.faults.asked.clear()
    await it.up(inputs(*(a(f"n{n}", f"198.51.100.{n}") for n in range(1, 100))))
    changes = [asked for asked in zone.faults.asked if asked.startswith("POST")]
    assert len(changes) == 1, changes
    await it.delete()


async def test_more_than_a_batch_holds(zone: HostedZone) -> None:
    it = await resource(zone)
    await it.up(inputs(*(a(f"n{n}", f"198.51.{100 + n // 250}.{n % 250}") for n in range(900))))
    assert len([name for name, kind, _ in zone.everything() if kind == "A"]) == 900
    await it.delete()
    assert zone.everything() == set()


async def test_throttling_is_borne(zone: HostedZone) -> None:
    it = await resource(zone)
    zone.faults.waiting += [
        ("GET", 400, "Throttling", {}),
        ("POST", 400, "PriorRequestNotComplete", {}),
        ("POST", 429, "Throttling", {"Retry-After": "1"}),
    ]
    await it.up(inputs(a("api", "198.51.100.1")))
    assert zone.values(f"api.{DOMAIN}", "A") == {"198.51.100.1"}
    assert any("limits requests" in message for message in it.harness.log.messages)
    zone.faults.waiting += [("GET", 400, "Throttling", {})] * 2
    await it.delete()


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("ExpiredToken", r"have expired; set dns\.sessionToken"),
        ("InvalidClientTokenId", r"are not known; correct dns\.accessKeyId"),
        ("SignatureDoesNotMatch", r"correct dns\.secretAccessKey"),
        ("AccessDenied", r"may not do this"),
    ],
)
async def test_credentials_that_are_refused_are_named(zone: HostedZone, code: str, told: str) -> None:
    zone.faults.waiting.append(("GET", 403, code, {}))
    with pytest.raises(RemoteError, match=told) as caught:
        await (await resource(zone)).up(inputs(a("api", "198.51.100.1")))
    assert "nobody-may-see" not in str(caught.value)
    zone.faults.waiting.append(("POST", 403, code, {}))
    with pytest.raises(RemoteError, match=told):
        await (await resource(zone)).up(inputs(a("api", "198.51.100.1")))
    assert zone.everything() == set()


async def test_a_set_that_somebody_changes_meanwhile_is_read_again(zone: HostedZone) -> None:
    """What is read and what is replaced are one batch: a value that came in between is not lost."""
    it = await resource(zone)
    await it.up(inputs(a("api", "198.51.100.1")))
    zone.race = lambda: zone.add(f"api.{DOMAIN}", "A", "192.0.2.77")
    await it.up(inputs(a("api", "198.51.100.1", "198.51.100.3")))
    assert zone.race is None and zone.values(f"api.{DOMAIN}", "A") == {"198.51.100.1", "198.51.100.3", "192.0.2.77"}


async def test_zones_are_found_by_name_or_id(zone: HostedZone) -> None:
    await (await resource(zone, zoneId=zone.id)).up(inputs(a("api", "198.51.100.1")))
    with pytest.raises(RemoteError, match=r"has no hosted zone ZNOSUCH; correct dns\.zoneId"):
        await (await resource(zone, zoneId="ZNOSUCH")).up(inputs(a("b", "198.51.100.1")))
    elsewhere = {**inputs(a("api", "198.51.100.1")), "zone": "lab.facility.test"}
    with pytest.raises(RemoteError, match=r"has no hosted zone lab\.facility\.test; check dns\.zone"):
        await (await resource(zone)).up(elsewhere)
    zone.client.create_hosted_zone(Name="facility.test", CallerReference="twin")
    with pytest.raises(RemoteError, match=r"has 2 zones facility\.test .*set dns\.zoneId"):
        await (await resource(zone)).up(inputs(a("c", "198.51.100.1")))


async def test_alias_records_are_clashes(zone: HostedZone) -> None:
    target: Any = {"HostedZoneId": "Z2FDTNDATAQYW2", "DNSName": "d1.cloudfront.net.", "EvaluateTargetHealth": False}
    record: Any = {"Name": f"api.{DOMAIN}.", "Type": "A", "AliasTarget": target}
    batch: Any = {"Changes": [{"Action": "CREATE", "ResourceRecordSet": record}]}
    zone.client.change_resource_record_sets(HostedZoneId=zone.id, ChangeBatch=batch)
    with pytest.raises(DnsConflict, match=r"is alias of d1\.cloudfront\.net"):
        await (await resource(zone)).up(inputs(a("api", "198.51.100.1")))
