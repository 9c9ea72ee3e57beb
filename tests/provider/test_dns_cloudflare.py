"""DnsRecords at Cloudflare, through dns-lexicon, against an emulation of the documented calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from metal_ipi.provider.errors import InvalidInputs, RemoteError
from tests.provider import dns_cloudflare, dns_life
from tests.provider.dns_cloudflare import TOKEN, ZONE_ID, Cloudflare, Refused
from tests.provider.dns_life import DOMAIN, a, inputs, resource
from tests.provider.harness import configured

pytestmark = pytest.mark.usefixtures("no_waiting")


class CloudZone:
    """The zone, as somebody else at Cloudflare's dashboard sees it."""

    def __init__(self, url: str, cloud: Cloudflare) -> None:
        self.cloud = cloud
        self.config: dict[str, Any] = {
            "service": "cloudflare",
            "authToken": TOKEN,
            "endpoint": url,
            "propagationTimeout": 5,
        }

    def values(self, name: str, type_: str) -> set[str]:
        return {value for known, kind, value in self.everything() if (known, kind) == (name, type_)}

    def ttl(self, name: str, type_: str) -> int:
        (ttl,) = {each["ttl"] for each in self._of(name, type_) if not each["content"].startswith("192.0.2.")}
        return int(ttl)

    def _of(self, name: str, type_: str) -> list[dict[str, Any]]:
        return [each for each in self.cloud.records.values() if (each["name"], each["type"]) == (name, type_)]

    def add(self, name: str, type_: str, value: str) -> None:
        identity = f"by-hand-{len(self.cloud.asked)}-{value}"
        content = value.rstrip(".") if type_ == "CNAME" else value
        self.cloud.records[identity] = {
            "id": identity,
            "name": name,
            "type": type_,
            "content": content,
            "ttl": 1,
            "proxied": False,
        }

    def remove(self, name: str, type_: str, value: str) -> None:
        (record,) = [
            each for each in self._of(name, type_) if each["content"].strip('"').rstrip(".") == value.rstrip(".")
        ]
        del self.cloud.records[record["id"]]

    def everything(self) -> set[tuple[str, str, str]]:
        return {(each["name"], each["type"], each["content"].strip('"')) for each in self.cloud.records.values()}


@pytest.fixture
def zone() -> Iterator[CloudZone]:
    with dns_cloudflare.running() as (url, cloud):
        yield CloudZone(url, cloud)


@pytest.mark.parametrize("story", dns_life.STORIES, ids=dns_life.named)
async def test_life(zone: CloudZone, story: dns_life.Story) -> None:
    await story(zone)


async def test_many_records_over_several_pages(zone: CloudZone) -> None:
    zone.cloud.page = 7
    it = await resource(zone, zoneId=ZONE_ID)
    wanted = inputs(*(a(f"n{n}", f"198.51.100.{n}") for n in range(1, 31)))
    await it.up(wanted)
    await it.refresh()
    assert await it.changes(wanted) == []
    await it.delete()
    assert zone.everything() == set()


@pytest.mark.parametrize("changes", range(7))
async def test_killed_within_an_update_and_run_again(zone: CloudZone, changes: int) -> None:
    """One call after the other: whichever was the last one, the next run finishes, and nothing is left unclaimed."""
    it = await resource(zone)
    await it.up(inputs(a("api", "198.51.100.1"), a("n", "198.51.100.3")))
    wanted = inputs(a("api", "198.51.100.7", "198.51.100.9"), a("m", "198.51.100.3"))
    zone.cloud.killed_after = changes
    with pytest.raises(RemoteError, match="the caller is dead"):
        await it.up(wanted)
    zone.cloud.killed_after = None
    again = await resource(zone)  # not even the state is left
    await again.up(wanted)
    assert zone.values(f"api.{DOMAIN}", "A") == {"198.51.100.7", "198.51.100.9"}
    await it.up(wanted)  # the first state, which is older than what is there
    assert zone.values(f"n.{DOMAIN}", "A") == set()
    await again.refresh()
    assert await again.changes(wanted) == []
    await again.delete()
    assert zone.everything() == set()


@pytest.mark.parametrize("changes", range(4))
async def test_killed_within_a_creation_or_a_deletion(zone: CloudZone, changes: int) -> None:
    wanted = inputs(a("api", "198.51.100.1"), a("n", "198.51.100.3"), a("m", "198.51.100.5"))
    zone.cloud.killed_after = changes
    with pytest.raises(RemoteError, match="the caller is dead"):
        await (await resource(zone)).up(wanted)
    zone.cloud.killed_after = None
    it = await resource(zone)
    await it.up(wanted)
    zone.cloud.killed_after = changes
    with pytest.raises(RemoteError, match="the caller is dead"):
        await it.delete()
    zone.cloud.killed_after = None
    assert dns_life.markers(zone), "values go before their marker"
    await it.delete()
    assert zone.everything() == set()


async def test_throttling_is_borne_as_long_as_is_asked(zone: CloudZone) -> None:
    it = await resource(zone, propagationTimeout=1)
    slow = Refused(429, 971, "Please wait and consider throttling your request speed", Retry_After="2")
    zone.cloud.faults += [("GET", slow), ("POST", slow), ("POST", Refused(429, 10013, "slow down"))]
    await it.up(inputs(a("api", "198.51.100.1")))
    assert zone.values(f"api.{DOMAIN}", "A") == {"198.51.100.1"}
    assert any("limits requests (HTTP 429)" in message for message in it.harness.log.messages)


async def test_a_service_that_only_throttles_is_given_up(zone: CloudZone) -> None:
    it = await resource(zone, propagationTimeout=1)
    zone.cloud.faults += [("GET", Refused(429, 10013, "slow down"))] * 40
    with pytest.raises(RemoteError, match=r"limits requests \(HTTP 429\)"):
        await it.up(inputs(a("api", "198.51.100.1")))
    zone.cloud.faults.clear()


@pytest.mark.parametrize(("status", "code"), [(401, 10000), (403, 9109), (400, 6003)])
async def test_credentials_that_are_refused_are_named_and_not_shown(zone: CloudZone, status: int, code: int) -> None:
    told = rf"does not accept the credentials \({status}: {code} no\).*set dns\.authToken anew"
    for method in ("GET", "POST"):
        zone.cloud.faults.append((method, Refused(status, code, "no")))
        with pytest.raises(RemoteError, match=told) as caught:
            await (await resource(zone)).up(inputs(a("api", "198.51.100.1")))
        assert TOKEN not in str(caught.value)
    with pytest.raises(RemoteError, match=r"401: 10000 Authentication error"):
        await (await resource(zone, authToken="expired-token")).up(inputs(a("api", "198.51.100.1")))
    assert zone.everything() == set()


async def test_what_the_service_refuses_is_told_in_its_words(zone: CloudZone) -> None:
    with pytest.raises(RemoteError, match="400: 1004 DNS Validation Error: TTL must be between 60 and 86400"):
        await (await resource(zone)).up(inputs(a("api", "198.51.100.1"), ttl=30))
    elsewhere = {**inputs(a("api", "198.51.100.1")), "zone": "lab.facility.test"}
    with pytest.raises(RemoteError, match=r"gives no access to zone lab\.facility\.test: No domain found"):
        await (await resource(zone)).up(elsewhere)


async def test_an_answer_that_makes_no_sense_is_told_as_such(zone: CloudZone) -> None:
    zone.cloud.faults.append(("GET", Refused(200, 0, "an error that calls itself a success")))
    with pytest.raises(RemoteError, match="DNS service cloudflare gave an answer that dns-lexicon cannot use"):
        await (await resource(zone)).up(inputs(a("api", "198.51.100.1")))


async def test_services_that_lexicon_does_not_have() -> None:
    for name, told in (("nosuchservice", "has no service nosuchservice"), ("auto", "has no service auto")):
        it = await configured("DnsRecords", dns={"service": "lexicon", "name": name, "options": {"auth_token": "x"}})
        with pytest.raises(InvalidInputs, match=told):
            await it.up(inputs(a("api", "198.51.100.1")))


def test_a_call_that_is_not_emulated_fails() -> None:
    with pytest.raises(AssertionError, match="calls that are not emulated"), dns_cloudflare.running() as (url, _):
        import requests

        answer = requests.get(f"{url}/accounts", headers={"Authorization": f"Bearer {TOKEN}"}, timeout=5)
        assert answer.status_code == 501
