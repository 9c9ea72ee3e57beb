"""Machines that are held in their live systems come together, and go on or are held back together."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest

from metal_ipi.provider.errors import InitFailed, ProviderError
from metal_ipi.provider.failures import Failures
from metal_ipi.provider.gates.ssh import CommandFailed, NotYet
from metal_ipi.provider.installation import Installation, meeting
from metal_ipi.provider.installation.inputs import Job
from metal_ipi.provider.resources.gate_kinds import GateNode
from metal_ipi.provider.resources.live_system import LiveChecksArgs
from tests.provider.installation_site import CONTROL_PLANE, NEW, PACE, UNFINISHED, Site
from tests.provider.test_live_checks import GOOD

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("no_waiting")]
_ALL = ("cp-0", "cp-1", "cp-2")


class _Hosts:
    """What answers SSH: each host tells the same, but for what is wrong with it."""

    def __init__(self) -> None:
        self.wrong: dict[str, dict[str, Any]] = {}
        self.once: dict[str, dict[str, Any]] = {}
        """The same, of its first answer."""
        self.raises: dict[str, list[Exception]] = {}
        """What its next probes end with."""
        self.probes: list[str] = []
        self.verdicts: dict[str, str] = {}
        self.order: list[str] = []
        """Probes and verdicts, as they came."""
        self.takes = 0.0
        """How many seconds a probe takes."""

    async def run(self, node: GateNode, _access: Any, command: str, given: str = "", *, timeout: float = 0) -> str:
        if command.startswith("date"):
            return f"{time.time():.3f}"
        if "verdict" in command:
            self.verdicts[node.name] = given
            self.order.append(f"verdict {node.name}")
            return ""
        await meeting.backoff.clock.sleep(self.takes)
        self.probes.append(node.name)
        self.order.append(f"probe {node.name}")
        if self.raises.get(node.name):
            raise self.raises[node.name].pop(0)
        told = {
            **json.loads(GOOD.model_dump_json(by_alias=True)),
            **self.wrong.get(node.name, {}),
            **self.once.pop(node.name, {}),
        }
        return json.dumps(told)


@pytest.fixture
def hosts(monkeypatch: pytest.MonkeyPatch) -> _Hosts:
    found = _Hosts()
    monkeypatch.setattr(meeting, "run", found.run)
    return found


def _job(name: str, overrides: dict[str, str] | None = None, *, checked: bool = True) -> Job:
    node = GateNode(name=name, address="192.0.2.1", host_key="ssh-ed25519 A")
    checks = LiveChecksArgs(release="4.19.0", overrides=overrides or {}) if checked else None
    values = {
        "hostname": name, "node": f"{name}.lab.test", "address": "192.0.2.1", "role": "control-plane",
        "members": tuple(f"{each}.lab.test" for each in _ALL), "live_checks": checks, "host_key": node.host_key,
        "live_host_key": node.host_key, "port": None, "user": "core", "private_key": "key", "log_directory": None,
    }  # fmt: skip
    return Job.model_construct(None, **values)


async def _install(place: meeting.Meeting, job: Job, said: list[str], later: float = 0.0) -> str:
    """One machine's way: it is held `later`, and asked again while it cannot be asked."""

    async def say(text: str) -> None:
        said.append(text)

    try:
        async with place.expecting(job):
            await meeting.backoff.clock.sleep(later)
            while True:
                try:
                    await place.attend(job, say)
                except NotYet:
                    await meeting.backoff.clock.sleep(1)
                else:
                    return "installed"
    except ProviderError as error:
        return str(error)


async def _all(hosts: _Hosts, said: list[str], overrides: dict[str, str] | None = None) -> list[str]:
    place = meeting.Meeting(gather=10, look=0.5)
    return list(
        await asyncio.gather(
            *(_install(place, _job(name, overrides), said, 30.0 * number) for number, name in enumerate(_ALL))
        )
    )


async def test_all_are_checked_once_when_the_last_is_held(hosts: _Hosts) -> None:
    said: list[str] = []
    assert await _all(hosts, said) == ["installed"] * 3
    assert sorted(hosts.probes) == list(_ALL) and set(hosts.verdicts.values()) == {"go\n"} and not said


async def test_an_error_of_one_holds_all_back(hosts: _Hosts) -> None:
    hosts.wrong["cp-1"] = {"routes": []}
    first, *others = await _all(hosts, [])
    assert first.startswith("live checks: nothing is installed, because of cp-1\ncp-1:\n  error    default-route: ")
    assert all(text.startswith("live checks: nothing is installed, because of cp-1\nCorrect it") for text in others)
    assert {text.splitlines()[0] for text in hosts.verdicts.values()} == {first.splitlines()[0]}
    assert len(hosts.verdicts) == 3, "each is told, and says so itself"


async def test_an_overridden_error_is_told_once_with_its_reason(hosts: _Hosts) -> None:
    hosts.wrong["cp-1"] = {"routes": []}
    said: list[str] = []
    found = await _all(hosts, said, {"default-route": "the site has none"})
    assert found == ["installed"] * 3
    (told,) = said
    assert "warning  default-route: it has no default route (overridden: the site has none)" in told


async def test_one_that_cannot_be_asked_now_is_waited_for(hosts: _Hosts) -> None:
    hosts.raises["cp-2"] = [NotYet("no answer")]
    assert await _all(hosts, []) == ["installed"] * 3
    assert sorted(hosts.probes) == ["cp-0", "cp-1", "cp-2", "cp-2"], "the others have told already"


async def test_who_lost_packets_to_one_that_was_away_is_asked_again(hosts: _Hosts) -> None:
    hosts.raises["cp-2"] = [NotYet("no answer")]
    lossy = {"192.0.2.1": {"mtu": 1500, "whole": False, "lost": 100, "ms": None}}
    hosts.once["cp-0"] = {"peers": {**json.loads(GOOD.model_dump_json(by_alias=True))["peers"], **lossy}}
    assert await _all(hosts, []) == ["installed"] * 3
    assert sorted(hosts.probes) == ["cp-0", "cp-0", "cp-1", "cp-2", "cp-2"]


async def test_one_that_does_not_tell_holds_all_back(hosts: _Hosts) -> None:
    hosts.raises["cp-2"] = [CommandFailed("jq: not found")]
    first, *_ = await _all(hosts, [])
    assert "because of cp-2" in first and "hosts: it does not report what was requested: jq: not found" in first


async def test_one_that_failed_on_its_way_holds_the_others_back(hosts: _Hosts) -> None:
    place = meeting.Meeting(gather=10, look=0.5)

    async def fail() -> None:
        async with place.expecting(_job("cp-2")):
            await meeting.backoff.clock.sleep(60)
            raise ProviderError("no boot")

    first, _, failed = await asyncio.gather(
        _install(place, _job("cp-0"), []), _install(place, _job("cp-1"), []), fail(), return_exceptions=True
    )
    assert isinstance(failed, ProviderError)
    assert "because of cp-2\ncp-2:\n  error    hosts: it failed before it could be checked" in str(first)


async def test_nobody_waits_for_one_that_is_not_begun_with(hosts: _Hosts) -> None:
    assert await _install(meeting.Meeting(gather=10, look=0.5), _job("cp-0"), []) == "installed"


async def test_one_that_is_not_to_be_checked_any_more_goes_on(hosts: _Hosts) -> None:
    place = meeting.Meeting(gather=10, look=0.5)
    assert await _install(place, _job("cp-0", checked=False), []) == "installed"
    assert hosts.verdicts == {"cp-0": "go\n"} and not hosts.probes


async def test_nobody_waits_for_a_check_that_broke(hosts: _Hosts) -> None:
    hosts.raises["cp-0"] = [RuntimeError("broken")]
    with pytest.raises(RuntimeError, match="broken"):
        await _install(meeting.Meeting(gather=10, look=0.5), _job("cp-0"), [])


_CHECKED: dict[str, Any] = {**CONTROL_PLANE, "disposable": True, "liveChecks": {"release": "4.19.0"}}


async def test_one_that_is_silent_when_an_up_goes_on_is_waited_for(site: Site, hosts: _Hosts) -> None:
    machines = [await site.machine(f"control-plane-{number}") for number in range(2)]
    held, silent = machines
    for machine in machines:
        machine.statuses.insert(1, {"state": "held"})
        hosts.wrong[machine.name] = {"peers": None}
        site.states[machine.name] = dict(UNFINISHED)
    await held.start("live")
    await silent.start("silent")
    await asyncio.gather(*(site.up(machine, **_CHECKED) for machine in machines))
    assert [site.states[machine.name]["generation"] for machine in machines] == [NEW] * 2
    assert sorted(hosts.order[:2]) == [f"probe {machine.name}" for machine in machines], hosts.order


@pytest.mark.parametrize("formed", [False, True])
async def test_only_before_there_is_a_cluster_nobody_waits_for_one_once_it_is_refused(
    site: Site, hosts: _Hosts, formed: bool
) -> None:
    machine = await site.machine("control-plane-0")
    machine.statuses.insert(1, {"state": "held"})
    hosts.wrong[machine.name] = {"routes": []}
    failures = Failures()
    site.item = Installation(PACE, site.opener, failures)
    with pytest.raises(InitFailed, match="nothing is installed, because of control-plane-0"):
        await site.up(machine, **{**_CHECKED, "disposable": not formed})
    assert (failures.no_cluster is None) == formed


async def test_the_time_that_it_is_held_is_not_its_own(site: Site, hosts: _Hosts) -> None:
    machine = await site.machine("control-plane-0")
    machine.statuses.insert(1, {"state": "held"})
    hosts.wrong[machine.name], hosts.takes = {"peers": None}, 300.0
    site.states[machine.name] = dict(UNFINISHED)
    await machine.start("live")
    assert (await site.up(machine, **_CHECKED, timeoutSeconds=200))["generation"] == NEW
