"""What a change may do to control plane machines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from policy.rules import quorum, state
from policy.rules.base import UNKNOWN, Given, Resource
from policy.rules.machines import GATE, INSTALLATION, IRONIC, REDFISH
from tests.policy.test_rules import device, resource


def _control_plane(count: int = 3) -> list[Resource]:
    return [
        device(f"lab-control-plane-{number}", "control-plane", created=f"2026-01-0{number + 1}")
        for number in range(count)
    ]


def _anew(machine: Resource) -> Resource:
    return replace(machine, properties={**machine.properties, "created": UNKNOWN})


_FORMED = resource(GATE, "bootstrap-complete", kind="bootstrap-complete")


def _messages(before: Sequence[Resource], after: Sequence[Resource], *consent: str, formed: bool = True) -> list[str]:
    configuration = {"metal-ipi:clusterName": "lab", "metal-ipi:reprovision": json.dumps({"consent": list(consent)})}
    given = Given(configuration=configuration, before=lambda: [*before, *([_FORMED] if formed else [])])
    assert quorum.RULE.stack is not None
    return [found.message for found in quorum.RULE.stack(after, given)]


def test_nothing_changes() -> None:
    assert _messages(_control_plane(), _control_plane()) == []


def test_a_machine_that_gets_another_parent_stays() -> None:
    """Its URN is another one then, and the old one an alias."""
    before = _control_plane()
    after = [replace(each, urn=each.urn.replace("::", "::metal-ipi:machines:Former$", 1)) for each in before]
    assert {each.urn for each in before}.isdisjoint(each.urn for each in after)
    assert _messages(before, after) == []
    assert len(_messages(before, [_anew(each) for each in after])) == 4


def test_a_first_up_takes_nothing_away() -> None:
    assert _messages([], [_anew(each) for each in _control_plane()]) == []


@pytest.mark.parametrize("consent", ["lab-control-plane-0", "control-plane-0"])
@pytest.mark.parametrize("deleted", [True, False])
def test_one_goes_by_consent_only(consent: str, *, deleted: bool) -> None:
    first, *others = before = _control_plane()
    after = others if deleted else [_anew(first), *others]
    (message,) = _messages(before, after)
    assert "lab-control-plane-0 would be deleted, or replaced" in message
    assert "name it in `metal-ipi:reprovision.consent`" in message
    assert _messages(before, after, consent) == []


@pytest.mark.parametrize("type_", [REDFISH, IRONIC])
def test_a_server_that_was_claimed_goes_by_consent_only(type_: str) -> None:
    before = [
        resource(type_, f"cp{number}-server", hostname=f"lab-control-plane-{number}", machineId=f"cp-{number}/uuid")
        for number in range(3)
    ]
    another = replace(before[0], properties={**before[0].properties, "machineId": UNKNOWN})
    (message,) = _messages(before, [another, *before[1:]])
    assert "lab-control-plane-0 would be deleted, or replaced" in message
    assert _messages(before, [another, *before[1:]], "control-plane-0") == []


def test_an_arbiter_counts_as_a_member_of_etcd() -> None:
    names = ("control-plane-0", "control-plane-1", "arbiter-0")
    before = [resource(REDFISH, name, hostname=f"lab-{name}", machineId=f"{name}/uuid") for name in names]
    (message,) = _messages(before, before[:2])
    assert "lab-arbiter-0 would be deleted" in message
    *_, most = _messages(before, before[:1], "arbiter-0", "control-plane-1")
    assert "2 of 3 machines with etcd would be lost at once" in most and "survives the loss of 1" in most
    run = resource(
        INSTALLATION, "arbiter-0-installation", hostname="lab-arbiter-0", role="arbiter", generation="a" * 16
    )
    again = replace(run, properties={**run.properties, "generation": "b" * 16})
    assert "lab-arbiter-0 would be installed again" in _messages([run], [again])[0]


@pytest.mark.parametrize(("count", "survives"), [(3, 1), (4, 1), (5, 2)])
def test_never_more_go_at_once_than_etcd_survives(count: int, survives: int) -> None:
    before, consent = _control_plane(count), [f"control-plane-{number}" for number in range(count)]
    for lost in (survives, survives + 1):
        messages = _messages(before, [*map(_anew, before[:lost]), *before[lost:]], *consent)
        told = f"{lost} of {count} machines with etcd would be lost at once"
        assert [message.startswith(told) for message in messages] == [True] * (lost - survives)


def test_the_only_one_never_goes() -> None:
    before = _control_plane(1)
    (message,) = _messages(before, [_anew(before[0])], "control-plane-0")
    assert message.startswith("the only etcd member would be lost (lab-control-plane-0)")


@pytest.mark.parametrize("count", [1, 3])
def test_before_there_is_a_cluster_nothing_is_lost(count: int) -> None:
    """Machines that run from memory are ordered again when the installer's assets are made anew."""
    before = _control_plane(count)
    assert _messages(before, [_anew(each) for each in before], formed=False) == []
    assert _messages(before, [], formed=False) == []


def test_workers_may_go() -> None:
    assert _messages([*_control_plane(), device()], _control_plane()) == []


def test_a_new_installation_needs_consent_and_one_may_follow_the_other() -> None:
    before = [resource(INSTALLATION, f"i{n}", role="control-plane", hostname=f"lab-control-plane-{n}", generation="a")
              for n in range(3)]  # fmt: skip
    after = [replace(each, properties={**each.properties, "generation": "b"}) for each in before]
    assert len(_messages(before, after)) == 3
    assert _messages(before, after, *(f"control-plane-{number}" for number in range(3))) == []


def test_the_state_is_read_as_the_engine_exports_it() -> None:
    old = {"urn": "urn:pulumi:s::p::t:t:T::n", "type": "t:t:T", "id": "7", "protect": True, "outputs": {"a": 1}}
    dying = {**old, "urn": "urn:pulumi:s::p::t:t:T::m", "delete": True}
    (found,) = state.parse(json.dumps({"version": 3, "deployment": {"resources": [old, dying]}}))
    assert (found.name, found.protected, found.properties) == ("n", True, {"a": 1, "id": "7"})
    assert state.parse(json.dumps({"version": 3, "deployment": {}})) == []
