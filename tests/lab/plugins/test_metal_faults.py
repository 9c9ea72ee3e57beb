"""The API misbehaves: what is retried, what is not, and that nothing is ordered twice."""

from __future__ import annotations

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
import trustme
from pulumi.provider.experimental import provider as api

from lab.plugins.base import InitFailed, PluginError
from lab.plugins.equinix_metal import watch
from lab.plugins.equinix_metal.client import Client, Gone, Unreachable
from lab.plugins.equinix_metal.device import Device
from lab.plugins.equinix_metal.inputs import Settings
from lab.plugins.values import plain, wrap_map
from tests.lab.plugins.fake_metal import PROJECT, FakeMetal, Fault, serve
from tests.lab.plugins.harness import Heard, opened, run
from tests.lab.plugins.test_metal_resources import INPUTS, metal, quick_polls

__all__ = ["metal", "quick_polls"]


OURS = wrap_map({"projectId": PROJECT})


class Waits:
    """Pauses that take no time, and are remembered."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def client(waits: Waits, retries: int = 3) -> Client:
    made = Client(waits)
    opened.append(made)
    made.configure(Settings(auth_token="token", max_retries=retries, max_retry_wait_seconds=30))
    return made


async def create(made: Client) -> str:
    request = api.CreateRequest("urn:pulumi:s::p::t::n", wrap_map(INPUTS), 5, False)
    return (await Device(made, Heard()).create(request)).resource_id or ""


def clocks(metal: FakeMetal, skew: timedelta = timedelta()) -> None:
    """The API's clock runs, perhaps not with ours."""
    now = datetime.now(UTC) + skew
    metal.now = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    metal.clock = format_datetime(now, usegmt=True)


@pytest.mark.parametrize(
    ("kind", "after"), [("status", True), ("status", False), ("reset", True), ("reset", False), ("half", True)]
)
@pytest.mark.parametrize("skew", [timedelta(hours=-3), timedelta(hours=3)])
def test_an_order_whose_outcome_is_unknown_is_looked_for(
    metal: FakeMetal, kind: str, after: bool, skew: timedelta
) -> None:
    clocks(metal, skew)
    metal.faults.append(Fault("POST", "/devices", kind, after=after))
    identifier = run(create(client(Waits())))
    assert list(metal.devices) == [identifier]
    assert metal.count("POST", "/devices") == (1 if after else 2)
    assert metal.count("GET", f"/projects/{PROJECT}/devices") == 1


def test_only_what_the_order_may_have_made_is_adopted(metal: FakeMetal) -> None:
    clocks(metal, timedelta(hours=-1))
    older = metal.add_device(hostname="lab-worker-0", tags=["a", "b"], state="active")
    clocks(metal)
    other = metal.add_device(hostname="lab-worker-0", tags=["a", "c"], state="active")
    failed = metal.add_device(hostname="lab-worker-0", tags=["a", "b"], state="failed")
    metal.faults.append(Fault("POST", "/devices", "status"))
    assert run(create(client(Waits()))) not in {older["id"], other["id"], failed["id"]}
    assert metal.count("POST", "/devices") == 2


def test_an_order_without_a_hostname_is_not_repeated_blindly(metal: FakeMetal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(INPUTS, "hostname")
    metal.faults.append(Fault("POST", "/devices", "status"))
    with pytest.raises(PluginError, match="a device without a hostname cannot be looked for"):
        run(create(client(Waits())))
    assert metal.count("POST", "/devices") == 1


def test_too_many_requests_are_repeated_when_the_api_says(metal: FakeMetal) -> None:
    metal.faults.append(Fault("POST", "/devices", "status", status=429, headers={"Retry-After": "7"}, count=2))
    metal.faults.append(Fault("GET", "", "status", status=429, headers={"Retry-After": "600"}))
    waits = Waits()
    run(create(client(waits)))
    assert waits.seconds == [7.0, 7.0, 30.0]
    assert metal.count("GET", f"/projects/{PROJECT}/devices") == 0
    assert len(metal.devices) == 1


def test_refusals_are_not_repeated(metal: FakeMetal) -> None:
    metal.faults.append(Fault("POST", "/devices", "status", status=422))
    with pytest.raises(PluginError, match=f"POST /projects/{PROJECT}/devices: 422 told to fail"):
        run(create(client(Waits())))
    assert len(metal.requests) == 1


def test_attempts_are_bounded_and_wait_longer_each_time(metal: FakeMetal) -> None:
    metal.faults.append(Fault("GET", "/devices/x", "status", count=99))
    waits = Waits()
    with pytest.raises(Unreachable, match=r"GET /devices/x: 503 .* after 4 attempts"):
        run(client(waits).get("/devices/x"))
    assert metal.count("GET", "/devices/x") == 4
    assert len(waits.seconds) == 3
    assert waits.seconds[0] < waits.seconds[1] < waits.seconds[2]
    metal.faults.append(Fault("POST", "/devices", "status", status=429, count=99))
    with pytest.raises(Unreachable, match="after 4 attempts"):
        run(create(client(Waits())))
    assert metal.devices == {}


@pytest.mark.parametrize("kind", ["status", "reset"])
def test_polling_and_release_survive_faults(metal: FakeMetal, kind: str) -> None:
    metal.faults += [Fault("GET", "", kind, count=2), Fault("DELETE", "", kind, after=True)]

    async def scenario() -> None:
        made = client(Waits())
        identifier = await create(made)
        await Device(made, Heard()).delete(api.DeleteRequest("urn", identifier, OURS, 5))

    run(scenario())
    assert metal.devices == {}


def test_an_api_that_stays_away_while_waiting_loses_no_device(metal: FakeMetal) -> None:
    metal.faults.append(Fault("GET", "", "status", count=99))
    with pytest.raises(InitFailed, match="after 4 attempts") as failure:
        run(create(client(Waits())))
    assert [failure.value.resource_id] == list(metal.devices)


def test_a_404_that_is_not_the_api_speaking_is_no_proof(metal: FakeMetal, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = FakeMetal.answer
    monkeypatch.setattr(FakeMetal, "answer", lambda *_: (404, "a page of something in between"))
    with pytest.raises(PluginError, match="404") as failure:
        run(client(Waits()).get("/devices/x"))
    assert not isinstance(failure.value, Gone)
    monkeypatch.setattr(FakeMetal, "answer", answer)
    with pytest.raises(Gone):
        run(client(Waits()).get("/devices/x"))


def test_release_waits_for_a_device_that_is_being_installed(metal: FakeMetal) -> None:
    made = metal.add_device()
    metal.faults.append(Fault("DELETE", "", "status", status=422, count=2))
    run(Device(client(Waits()), Heard()).delete(api.DeleteRequest("urn", made["id"], OURS, 5)))
    assert metal.devices == {}
    stuck = metal.add_device()
    metal.faults.append(Fault("DELETE", "", "status", status=422, count=10**6))
    with pytest.raises(PluginError, match=r"cannot be released: .*422"):
        run(Device(client(Waits()), Heard()).delete(api.DeleteRequest("urn", stuck["id"], OURS, 0.05)))


def test_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METAL_API_URL", "http://127.0.0.1:1/metal/v1")
    with pytest.raises(Unreachable, match="cannot connect"):
        run(create(client(Waits())))


def test_certificates_are_verified(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    fake = FakeMetal()
    with serve(fake, context) as url:
        monkeypatch.setenv("METAL_API_URL", url)
        monkeypatch.delenv("SSL_CERT_FILE", raising=False)
        with pytest.raises(Unreachable, match="certificate is not trusted"):
            run(create(client(Waits())))
        assert fake.requests == []
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        assert run(create(client(Waits()))) in fake.devices


def test_polls_are_one_to_two_seconds() -> None:
    import importlib

    fresh = importlib.reload(watch)
    assert 1.0 <= fresh.FEW_EVERY_SECONDS <= fresh.MANY_EVERY_SECONDS <= 2.0


def test_many_are_waited_for_with_one_request_at_a_time(metal: FakeMetal) -> None:
    """An order each, and looks that all share: what 40 devices take grows with the time, not with their number."""
    metal.listed_settle = True

    async def scenario() -> None:
        made = Device(client(Waits()), Heard())

        async def live(number: int) -> None:
            inputs = wrap_map({**INPUTS, "hostname": f"lab-worker-{number}"})
            answer = await made.create(api.CreateRequest("urn:pulumi:s::p::t::n", inputs, 20, False))
            assert plain(answer.properties["state"]) == "active"
            assert plain(answer.properties["hostname"]) == f"lab-worker-{number}"
            await made.delete(api.DeleteRequest("urn", answer.resource_id or "", answer.properties, 20))

        await asyncio.gather(*(live(number) for number in range(40)))

    run(scenario())
    assert metal.devices == {}
    looks = metal.count("GET", f"/projects/{PROJECT}/devices")
    assert 1 <= looks <= 20
    assert len(metal.requests) - looks <= 40 * 4


def test_one_that_disappears_is_told_to_who_waits_for_it_only(metal: FakeMetal) -> None:
    metal.polls_until_active = 10**6

    async def scenario() -> None:
        looks = watch.Watch(client(Waits()), "project")
        ids = [metal.add_device(state="provisioning")["id"] for _ in range(6)]
        asked = [asyncio.ensure_future(looks.look(PROJECT, identifier)) for identifier in ids]
        del metal.devices[ids[0]]
        gone, *there = await asyncio.gather(*asked, return_exceptions=True)
        assert isinstance(gone, Gone)
        assert [document["id"] for document in there if isinstance(document, dict)] == ids[1:]

    run(scenario())


def test_a_list_that_cannot_be_had_is_told_to_all(metal: FakeMetal) -> None:
    metal.faults.append(Fault("GET", "/devices", "status", count=99))

    async def scenario() -> None:
        looks = watch.Watch(client(Waits()), "project")
        asked = [looks.look(PROJECT, metal.add_device()["id"]) for _ in range(6)]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(answer) for answer in answers] == [Unreachable] * 6

    run(scenario())
