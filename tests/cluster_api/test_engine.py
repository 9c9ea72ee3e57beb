"""The program of a cluster, carried out without Pulumi's engine: what is ready, what is kept, what goes."""

from __future__ import annotations

import asyncio
import functools
import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pulumi.runtime import MockResourceArgs

from metal_ipi.cluster_api import settings
from metal_ipi.cluster_api.engine import engine as module
from metal_ipi.cluster_api.engine.engine import Declaration, Engine
from metal_ipi.cluster_api.engine.plan import Plan, Step, Unsupported, context, kept, plan, types
from metal_ipi.cluster_api.engine.state import Entry, State, StateError, type_of
from metal_ipi.cluster_api.reconcilers.control_plane import Scale, installed, scale
from metal_ipi.cluster_api.reconcilers.machine import Choice, choose
from metal_ipi.provider.artifacts import Artifacts
from metal_ipi.provider.configuration import Settings
from metal_ipi.provider.dns_records import DnsRecords
from metal_ipi.provider.errors import InitFailed, ProviderError
from metal_ipi.provider.gate import Gate
from metal_ipi.provider.installation.resource import Installation
from metal_ipi.provider.preflight.resource import Preflight
from metal_ipi.provider.resource import Context, Made, ResourceType, Values
from metal_ipi.provider.values import has_unknown
from metal_ipi.stacks.problems import SettingsError
from tests.stacks.answers import ANSWERS, stack_file
from tests.stacks.rack import SECRET, rack

_KEYS = "urn:pulumi:rack::metal-ipi::metal-ipi:index:ClusterKeys::keys"
_PREFLIGHT = "urn:pulumi:rack::metal-ipi::metal-ipi:index:Preflight::preflight"


class Memory:
    """A store that keeps everything in memory."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.written: list[tuple[str, bool]] = []

    async def load(self) -> State:
        return State(entries=dict(self.entries))

    async def save(self, urn: str, entry: Entry | None) -> None:
        self.written.append((urn, entry is not None))
        if entry is None:
            self.entries.pop(urn)
        else:
            self.entries[urn] = entry


class Fussy(Preflight):
    """A preflight that says no as often as it is told to, and leaves something unfinished before."""

    def __init__(self, errors: list[ProviderError]) -> None:
        self._errors = errors
        self.updated = 0

    async def create(self, context: Context, inputs: Values) -> Made:
        if self._errors:
            raise self._errors.pop(0)
        return Made(id="seen", outputs={"findings": []})

    async def update(self, context: Context, resource_id: str, old: Values, new: Values) -> Values:
        self.updated += 1
        return {"findings": []}


@functools.cache
def _declaration() -> Declaration:
    return settings.declaration(rack())


@functools.cache
def _first() -> Plan:
    """The plan of a cluster of which there is nothing yet; read only."""
    found = _declaration()
    return plan(found.program, State(), types(), found.stack)


def _names(found: Plan) -> set[str]:
    return {step.name for step in found.ready()}


def _entry_of(found: Plan, step: Step, *, begun: bool = False) -> Entry:
    """What the state has of a step that is done, or begun: of its outputs what a preview knows, and what is answered
    for the rest."""
    token = type_of(step.urn)
    kind = types()[token]
    answered = ANSWERS[token](MockResourceArgs(token, step.name, step.inputs, None, None, True))
    previewed = kept(kind, {}, kind.preview(context(step.urn, found.settings), None, step.inputs))
    outputs = {**answered, **{name: value for name, value in previewed.items() if not has_unknown(value)}}
    return Entry(
        urn=step.urn,
        id="" if begun else f"{step.name}-id",
        inputs=step.inputs,
        outputs=kept(kind, step.inputs, {} if begun else outputs),
        dependencies=step.dependencies,
        unfinished="begun" if begun else "",
        order=step.order,
    )


def _told(found: Plan) -> tuple[Any, ...]:
    """What is done by a plan. Whether there is a cluster, by which a machine is disposable, a program asks once."""
    ready = {step.name: {**step.inputs, "disposable": None} for step in found.ready()}
    return {step.name: step.action for step in found.steps.values()}, ready


def test_a_plan_stays_until_the_program_has_more_to_tell() -> None:
    """From the first step to the last, each begun and done alone."""
    declaration, found, entries, plans = _declaration(), _first(), dict[str, Entry](), 1

    def anew() -> Plan:
        return plan(declaration.program, State(entries=dict(entries)), types(), declaration.stack)

    while ready := sorted(found.ready(), key=lambda step: step.order):
        begun = found.after(ready[0], _entry_of(found, ready[0], begun=True))
        assert begun is not None and _told(begun) == _told(found)
        done = _entry_of(found, ready[0])
        stays = begun.after(ready[0], done)
        if stays is None:  # as long as plans stayed, what they said was right
            assert _told(begun) == _told(anew()), ready[0].name
            plans += 1
        entries[done.urn] = done
        found = stays or anew()
    assert len(entries) == len(found.steps) == len(_first().steps) and found.waiting(lambda name: True) == []
    assert (found.outputs, found.secrets) == (anew().outputs, anew().secrets) and None not in found.outputs.values()
    assert plans < len(entries) / 4


def test_a_plan_does_not_stay_for_a_step_of_another_or_an_unfinished_one() -> None:
    (step,) = _first().ready()
    done = _entry_of(_first(), step)
    assert _first().after(replace(step, inputs={"other": 1}), done) is None
    assert _first().after(replace(step, urn=f"{step.urn}-other"), done) is None
    assert _first().after(step, replace(done, unfinished="it stopped")) is None
    begun = _first().after(step, _entry_of(_first(), step, begun=True))
    assert begun is not None and [each.name for each in begun.ready()] == ["keys"] and not begun.settled("keys")
    # Whether there was a cluster when the program ran is no other step.
    disposable = replace(step, inputs={**step.inputs, "disposable": True})
    assert _first().after(disposable, _entry_of(_first(), step, begun=True)) is not None


def test_what_others_are_made_of_comes_first() -> None:
    assert _names(_first()) == {"keys"}
    assert {step.action for step in _first().steps.values()} == {"create"}
    assert _first().steps[_PREFLIGHT].dependencies == (_KEYS,)
    # The URNs are those of `up`: ids, directories and what was made are found by them.
    assert _KEYS in _first().steps


def test_what_the_program_calls_secret_is_known() -> None:
    assert any(SECRET in each for each in _first().secrets)


@pytest.mark.usefixtures("collected")
@pytest.mark.filterwarnings(
    r"ignore:Exception ignored in. <coroutine object Output\.:pytest.PytestUnraisableExceptionWarning"
)
def test_what_only_plug_ins_of_pulumi_make_is_refused_by_name() -> None:
    """The SDK leaves coroutines of outputs unawaited where a program is refused; nothing else is forgiven."""
    found = settings.declaration({**stack_file("da11"), "rehearsal": True})
    with pytest.raises(
        Unsupported, match=r"pulumi:providers:equinix-metal, which the Cluster API providers cannot make"
    ):
        plan(found.program, State(), types(), found.stack)
    plan(dict, State(), types(), found.stack)  # what the SDK kept of the program before is let go


def _with(monkeypatch: pytest.MonkeyPatch, fussy: Fussy) -> None:
    made = {**types(), Fussy.token: fussy}
    monkeypatch.setattr(module, "types", lambda: made)
    monkeypatch.setattr(module, "_FIRST_PAUSE", 0.01)


async def _until(engine: Engine, name: str) -> Plan:
    for _ in range(50):
        found = await engine.look(_declaration())
        if found.settled(name):
            return found
        engine.advance(found, lambda step: step.name in ("keys", "preflight"))
        await engine.changed(0.1)
    raise AssertionError(f"{name} did not come about: {engine.failures(lambda _: True)}")


def test_a_step_that_fails_is_told_without_secrets_and_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    _with(monkeypatch, Fussy([ProviderError(f"the BMC takes no {SECRET}")]))
    store, told = Memory(), list[str]()

    async def whole() -> None:
        engine = Engine(store)  # what the provider is told is all that says which texts are secret
        for _ in range(50):
            engine.advance(await engine.look(_declaration()), lambda step: step.name in ("keys", "preflight"))
            await engine.changed(0.1)
            if found := engine.failures(lambda name: name == "preflight"):
                told.extend(each.message for each in found)
                break
        found = await _until(engine, "preflight")
        assert engine.failures(lambda _: True) == []
        assert "install-assets-create" in _names(found)

    asyncio.run(whole())
    assert told == ["the BMC takes no [secret]"]
    assert [urn for urn, _ in store.written] == [_KEYS, _PREFLIGHT]
    # Another process goes on from there: nothing is to be done about what was made.
    found = plan(_declaration().program, State(entries=store.entries), types(), "rack")
    assert found.settled("keys") and found.settled("preflight")
    assert Entry.unpacked(store.entries[_KEYS].packed()) == store.entries[_KEYS]


def test_what_was_begun_is_in_the_state_and_is_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    fussy = Fussy([InitFailed("interrupted", "seen", {})])
    _with(monkeypatch, fussy)
    store = Memory()
    asyncio.run(_until(Engine(store), "preflight"))
    assert fussy.updated == 1
    assert store.written.count((_PREFLIGHT, True)) == 2 and not store.entries[_PREFLIGHT].unfinished


def test_a_plan_is_of_the_state_that_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where steps are finished again and again while it is made: what is done must not be done once more."""

    async def whole() -> None:
        engine, loop, calls = Engine(Memory()), asyncio.get_running_loop(), list[int]()

        def slow(program: Any, state: State, *_: Any) -> Any:
            calls.append(len(state.entries))
            if len(calls) < 3:
                entry = Entry(urn=f"a::b::c::{len(calls)}", id="x", inputs={}, outputs={})
                keep = engine._keep(entry.urn, entry)  # pyright: ignore[reportPrivateUsage]
                asyncio.run_coroutine_threadsafe(keep, loop).result()
            return Plan(steps={}, settings=Settings(), outputs={"entries": len(state.entries)})

        monkeypatch.setattr(module, "plan", slow)
        declaration = Declaration(stack="rack", fingerprint="x", program=dict)
        found = [(await engine.look(declaration)).outputs for _ in range(2)]
        assert found == [{"entries": 2}] * 2 and calls == [0, 1, 2]

    asyncio.run(whole())


def test_a_plan_stays_for_steps_that_were_done_while_it_was_made(monkeypatch: pytest.MonkeyPatch) -> None:
    (step,) = _first().ready()
    calls = list[int]()

    async def looked(entry: Entry) -> Plan:
        engine, loop = Engine(Memory()), asyncio.get_running_loop()

        def slow(*of: Any) -> Plan:
            calls.append(1)
            if len(calls) == 1:
                keep = engine._keep(entry.urn, entry, step)  # pyright: ignore[reportPrivateUsage]
                asyncio.run_coroutine_threadsafe(keep, loop).result()
            return plan(*of)

        monkeypatch.setattr(module, "plan", slow)
        return await engine.look(_declaration())

    begun = asyncio.run(looked(_entry_of(_first(), step, begun=True)))
    assert len(calls) == 1 and begun.steps[step.urn].entry is not None
    # What the others need of it is not in a plan of before.
    calls.clear()
    done = asyncio.run(looked(_entry_of(_first(), step)))
    assert len(calls) == 2 and _PREFLIGHT in {each.urn for each in done.ready()}


def test_what_goes_goes_after_what_depends_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    _with(monkeypatch, Fussy([]))
    store = Memory()

    async def whole() -> None:
        engine = Engine(store)
        await _until(engine, "preflight")
        for _ in range(50):
            if engine.remove(list((await engine.state()).entries), Settings(), given_up=False):
                return
            await engine.changed(0.1)

    asyncio.run(whole())
    assert store.written[-2:] == [(_PREFLIGHT, False), (_KEYS, False)] and not store.entries


def test_what_is_being_done_ends_when_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    class Endless(Fussy):
        async def create(self, context: Context, inputs: Values) -> Made:
            try:
                await asyncio.sleep(60)
            except BaseException as error:
                raise InitFailed("interrupted", "half", {}) from error
            raise AssertionError

    _with(monkeypatch, Endless([]))
    store = Memory()

    async def whole() -> None:
        engine = Engine(store)
        while not engine.running(lambda name: name == "preflight"):
            engine.advance(await engine.look(_declaration()), lambda step: step.name in ("keys", "preflight"))
            await engine.changed(0.05)
        await asyncio.sleep(0)
        await engine.stop(lambda name: name == "preflight")
        assert engine.failures(lambda _: True) == []

    asyncio.run(whole())
    assert store.entries[_PREFLIGHT].unfinished == "interrupted"


@pytest.mark.parametrize("stopped", [False, True])
def test_a_removal_does_not_wait_because_a_creation_failed(stopped: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing(Fussy):
        tried = 0

        async def delete(self, context: Context, resource_id: str, old: Values) -> None:
            Refusing.tried += 1
            if Refusing.tried == 1:
                raise ProviderError("not now")

    _with(monkeypatch, Refusing([InitFailed("no", "half", {})]))
    monkeypatch.setattr(module, "_FIRST_PAUSE", 60.0)
    store = Memory()

    async def whole() -> None:
        engine = Engine(store)
        while not engine.failures(lambda _: True):
            engine.advance(await engine.look(_declaration()), lambda step: step.name in ("keys", "preflight"))
            await engine.changed(0.05)
        monkeypatch.setattr(module, "_FIRST_PAUSE", 0.2)
        began, refused = time.monotonic(), 0
        while not engine.remove(list((await engine.state()).entries), Settings(), given_up=False):
            if stopped:
                await engine.stop()  # as each look at an object that goes does: failed removals stay
            await engine.changed(0.05)
            refused += any(each.leaving and each.times == 1 for each in engine.failures(lambda _: True))
        assert 0.2 <= time.monotonic() - began < 30 and refused

    asyncio.run(whole())
    assert Refusing.tried == 2 and not store.entries


def test_what_is_stopped_before_it_runs_can_be_begun_again() -> None:
    async def whole() -> None:
        engine = Engine(Memory())
        found = await engine.look(_declaration())
        engine.advance(found, lambda step: True)
        await engine.stop()  # at the same moment: the step is cancelled before any of it runs
        assert not engine.running(lambda name: True)
        engine.advance(found, lambda step: True)
        assert engine.running(lambda name: True).keys() == {"keys"}
        await engine.stop()

    asyncio.run(whole())


def test_who_leads_no_longer_takes_nothing_away_either(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(Fussy):
        async def delete(self, context: Context, resource_id: str, old: Values) -> None:
            await asyncio.sleep(60)

    _with(monkeypatch, Slow([]))
    store = Memory()
    store.entries[_PREFLIGHT] = Entry(urn=_PREFLIGHT, id="x", inputs={}, outputs={})

    async def whole() -> None:
        engine = Engine(store)
        assert not engine.remove(list((await engine.state()).entries), Settings(), given_up=True)
        await asyncio.sleep(0)
        assert engine.going() == {"preflight"}
        await asyncio.wait(engine.abandon(), timeout=10)
        assert not engine.running(lambda _: True) and store.entries

    asyncio.run(whole())


def test_what_a_killed_attempt_made_is_found_and_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    class Place(Fussy):
        made, deleted = 0, list[str]()

        async def create(self, context: Context, inputs: Values) -> Made:
            Place.made += 1
            if Place.made == 1:
                raise asyncio.CancelledError  # as a kill: something is there, and nobody wrote down what
            return Made(id="there", outputs={})

        async def delete(self, context: Context, resource_id: str, old: Values) -> None:
            Place.deleted.append(resource_id)

    _with(monkeypatch, Place([]))
    store = Memory()

    async def whole() -> None:
        engine = Engine(store)
        while not Place.made:
            engine.advance(await engine.look(_declaration()), lambda step: step.name in ("keys", "preflight"))
            await engine.changed(0.05)
        assert not store.entries[_PREFLIGHT].id
        # Another process knows that it was begun. As for the program, it is still to be made.
        another = Engine(store)
        assert not (await another.look(_declaration())).settled("preflight")
        while not another.remove(list((await another.state()).entries), Settings(), given_up=False):
            await another.changed(0.05)

    asyncio.run(whole())
    assert Place.deleted == ["there"] and not store.entries


@pytest.mark.parametrize(
    ("kind", "name", "inputs"),
    [
        (Installation, "rack-worker-4-installation", {"hostname": "rack-worker-4"}),
        (Gate, "bootstrap-complete", {"kind": "bootstrap-complete"}),
        (DnsRecords, "dns-api-records", {"zone": "example.com", "records": []}),
        (Artifacts, "workers-installers", {"files": {}, "pathSeed": "x"}),
    ],
)
def test_nothing_is_installed_or_waited_for_in_order_to_be_taken_away(
    kind: type[ResourceType], name: str, inputs: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted, store = list[tuple[str, Any]](), Memory()
    urn = f"urn:pulumi:rack::metal-ipi::{kind.token}::{name}"
    store.entries[urn] = Entry(urn=urn, id="", inputs=inputs, outputs={}, unfinished="begun")

    async def delete(self: ResourceType, context: Context, resource_id: str, old: Values) -> None:
        deleted.append((resource_id, old))
        assert resource_id == context.identity

    async def create(self: ResourceType, context: Context, inputs: Values) -> Made:
        raise AssertionError("it was begun only")

    monkeypatch.setattr(kind, "delete", delete)
    monkeypatch.setattr(kind, "create", create)

    async def whole() -> None:
        engine = Engine(store)
        while not engine.remove(list((await engine.state()).entries), Settings(), given_up=True):
            await engine.changed(0.1)

    asyncio.run(asyncio.wait_for(whole(), 10))
    assert [old for _, old in deleted] == [inputs] and not store.entries


def test_what_installs_a_machine_is_uploaded_again_for_the_next_one() -> None:
    urn = "urn:pulumi:rack::metal-ipi::metal-ipi:index:Artifacts::workers-installers"
    hashes = {f"rack-worker-{number}.ign": "sha512-0" for number in (1, 11)}
    store = Memory()
    store.entries[urn] = Entry(urn=urn, id="x", inputs={}, outputs={"hashes": hashes, "directory": "d"})
    asyncio.run(Engine(store).upload_again("rack-worker-1"))
    assert store.entries[urn].outputs == {"hashes": {"rack-worker-11.ign": "sha512-0"}, "directory": "d"}


def test_a_state_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(StateError, match="cannot be read"):
        Entry.unpacked("bm90aGluZw==")


def test_the_release_that_runs_is_the_one_that_was_installed() -> None:
    assert installed({"stdin": json.dumps({"version": "4.21.2"})}) == "v4.21.2"


# --- settings ------------------------------------------------------------------------------------------------------


def test_secrets_are_put_where_their_keys_say() -> None:
    tree: dict[str, Any] = {"clusterName": "rack", "platform": {"servers": [{"bmc": {}}]}}
    found = settings.merged(tree, {"platform.servers.0.bmc.password": "a", "dns.tsig.secret": "b"})
    assert found["platform"]["servers"] == [{"bmc": {"password": "a"}}] and found["dns"] == {"tsig": {"secret": "b"}}
    assert tree["platform"]["servers"] == [{"bmc": {}}]
    for path in ("platform.servers.1.bmc.password", "platform.servers.x.password", "clusterName.secret"):
        with pytest.raises(SettingsError, match=r"no such setting") as error:
            settings.merged(tree, {path: "hunter2"})
        assert path in str(error.value) and "hunter2" not in str(error.value)


def test_files_are_written_only_where_a_pod_may() -> None:
    install = settings.merged(rack(install__workDirectory="/srv/work"), {})["install"]
    assert all(Path(install[each]).is_relative_to(tempfile.gettempdir()) for each in ("workDirectory", "logDirectory"))
    assert install["pullSecret"] == rack()["install"]["pullSecret"]


def test_workers_that_nobody_has_are_none() -> None:
    found = settings.only(rack(), frozenset())
    assert {each["name"] for each in found["platform"]["servers"]} == {
        *(f"control-plane-{number}" for number in range(3)),
        "worker-0",  # lends its server
    }


# --- decisions -----------------------------------------------------------------------------------------------------

_SERVERS = settings.validated(rack()).platform.servers  # pyright: ignore


@pytest.mark.parametrize(
    ("wanted", "role", "taken", "refused", "expected"),
    [
        (None, "control-plane", {}, (), "control-plane-0"),
        (None, "control-plane", {"control-plane-0": "a"}, ("control-plane-1",), "control-plane-2"),
        (None, "worker", {"worker-0": "a", "worker-4": "b"}, (), "no listed server of role worker is free"),
        ("worker-4", "worker", {"worker-0": "a"}, (), "worker-4"),
        ("worker-4", "worker", {"worker-4": "a"}, (), "server worker-4 is MetalIpiMachine a's"),
        ("worker-4", "control-plane", {}, (), "listed for another role"),
        ("worker-7", "worker", {}, (), "does not list: it lists control-plane-0, control-plane-1, "),
    ],
)
def test_a_machine_takes_a_server_of_its_role(
    wanted: str | None, role: str, taken: dict[str, str], refused: tuple[str, ...], expected: str
) -> None:
    servers = {each.name: each for each in _SERVERS}
    found = choose(wanted=wanted, role=role, servers=servers, taken=taken, refused=frozenset(refused))
    assert found == Choice(server=expected) or (not found.server and expected in found.message)


@pytest.mark.parametrize(
    ("wanted", "machines", "formed", "missing"),
    [
        (3, {}, False, ("c-0", "c-1", "c-2")),
        (3, {"c-1": False}, False, ("c-0", "c-2")),
        (3, {"c-0": True, "c-1": True}, True, ("c-2",)),
        (3, {"c-0": True}, True, ("c-1",)),  # one by one
        (3, {"c-0": False, "c-1": True}, True, ()),  # one is away: nothing more is changed
        (3, {"c-0": True, "c-1": True, "c-2": True}, True, ()),
    ],
)
def test_machines_of_a_control_plane_that_stands_join_one_by_one(
    wanted: int, machines: dict[str, bool], formed: bool, missing: tuple[str, ...]
) -> None:
    assert scale("c", wanted=wanted, listed=3, machines=machines, formed=formed) == Scale(missing=missing)


def test_a_machine_that_goes_has_its_name_until_it_is_gone() -> None:
    found = scale("c", wanted=3, listed=3, machines={"c-1": True, "c-2": True}, formed=True, going=["c-0"])
    assert found == Scale(missing=("c-3",))


def test_a_control_plane_has_the_number_that_is_listed() -> None:
    assert "lists 3" in scale("c", wanted=4, listed=3, machines={}, formed=False).refused
    four = {f"c-{number}": True for number in range(4)}
    assert "cannot shrink" in scale("c", wanted=3, listed=3, machines=four, formed=True).refused
