"""What the settings of Equinix Metal refuse, all of it at once, with a remedy each."""

from __future__ import annotations

from typing import Any

import pytest

from metal_ipi.stacks.platforms.equinix_metal.settings import EquinixMetal
from metal_ipi.stacks.problems import Problem
from metal_ipi.stacks.settings import Settings, parse
from tests.mocks import config_text
from tests.stacks.answers import problems, tells
from tests.stacks.test_settings import _COMPLETE  # pyright: ignore[reportPrivateUsage]

_IDS = [f"7d2c4f6e-000{number}-4c35-9d5e-5a0f3c1b2a00" for number in range(5)]
_VLAN = {"name": "storage", "vlan": 1100, "roles": ["worker"], "gateway": {"size": 16}}
_POOLS = {"type": "metallb-bgp", "pools": [{"name": "e", "reserve": 4}]}


def _values(platform: dict[str, Any], **sections: Any) -> dict[str, str]:
    merged = {key: value for key, value in {**_COMPLETE["platform"], **platform}.items() if value is not None}
    return config_text({**_COMPLETE, **sections, "platform": merged})


def _parsed(platform: dict[str, Any], **sections: Any) -> Settings:
    return parse(_values(platform, **sections), "s1")


def _problems(platform: dict[str, Any], **sections: Any) -> tuple[Problem, ...]:
    return problems(_values(platform, **sections))


_WRONG: list[tuple[dict[str, Any], str, str, str]] = [
    # platform's settings, where the problem is, why, remedy
    ({"facility": "da11"}, "facility", "there is no such setting", "did you mean 'facilities'?"),
    ({"metro": None, "facilities": ["Dallas"]}, "facilities[0]", "it is not a facility's code", "codes such as da11"),
    ({"tags": ["metal-ipi:mine"]}, "tags[0]", "are reserved", "choose another name"),
    ({"tags": [" "]}, "tags[0]", "is not a tag", "printable characters"),
    ({"reservations": {"bootstrap": "spare"}}, "reservations.bootstrap", "it is not a UUID", "copy the id"),
    ({"reservations": {"worker": _IDS[0]}}, "reservations.worker", "not a list of reservations", "or next-available"),
    ({"reservations": {"worker": ["x", _IDS[0]]}}, "reservations.worker", "it is not a UUID", "copy the id"),
    ({"reservations": {"worker": _IDS[:1]}}, "reservations.worker", "there are 2 machines", "name as many"),
    (
        {"reservations": {"bootstrap": _IDS[1], "controlPlane": _IDS[:3]}},
        "reservations.controlPlane[1]",
        "platform.reservations.bootstrap is the same",
        "a reservation of its own",
    ),
    ({"reservations": {"controlPlane": _IDS[:3], "worker": "next-available"}}, "reservations.worker",
     "it could use a server that platform.reservations.controlPlane names", "give ids to both"),
    ({"spot": {"maxPrice": 0}}, "spot.maxPrice", "greater than 0", "USD per hour"),
    ({"spot": {"maxPrice": 1}, "reservations": {"worker": _IDS[:2]}}, "reservations.worker", "nothing is reserved",
     "set one of them"),
    ({"spot": {"maxPrice": 1}, "machineSubnets": {"worker": 29}}, "machineSubnets.worker", "spot market", "remove it"),
    ({"spot": {"maxPrice": 1}, "metro": None, "facilities": ["da11", "any"]}, "facilities", "named places",
     "name facilities"),
    ({"spot": {"maxPrice": 1}, "lifetimeHours": 5}, "lifetimeHours", "they would stay, and be billed", "remove it"),
    ({"lifetimeHours": 0}, "lifetimeHours", "greater than or equal to 1", "for test installations"),
    ({"machineSubnets": {"worker": 27}}, "machineSubnets.worker", "28, 29, 30 or 31", "not set: 31"),
    ({"machineSubnets": {"workers": 29}}, "machineSubnets.workers", "no such setting", "did you mean 'worker'"),
    ({"customData": ["x"]}, "customData", "valid dictionary", "an object for the metadata"),
    ({"workerPlan": "c3.large.arm64"}, "workerPlan", "machines of this plan are aarch64", "choose a plan of x86_64"),
    ({"networks": [{**_VLAN, "roles": ["storage"]}]}, "networks[0].roles[0]", "'control-plane' or 'worker'", "whose"),
    ({"networks": [{**_VLAN, "roles": ["bootstrap"]}]}, "networks[0].roles[0]", "'control-plane' or 'worker'", ""),
    ({"networks": [{**_VLAN, "roles": []}]}, "networks[0].roles", "it is empty", "list at least one"),
    ({"bondInterfaces": ["eth 0"]}, "bondInterfaces[0]", "neither an interface's name nor", "such as en*"),
    ({"networks": [{**_VLAN, "vlan": 4000}]}, "networks[0].vlan", "less than or equal to 3999", "its number"),
    ({"networks": [{**_VLAN, "vlan": None}]}, "networks[0].vlan", "must know the number", "choose a number"),
    ({"networks": [{**_VLAN, "gateway": {"size": 12}}]}, "networks[0].gateway.size", "8, 16, 32, 64 or 128", "number"),
    ({"networks": [{**_VLAN, "subnet": "10.0.0.0/24"}]}, "networks[0]", "gateway and subnet are both", "set gateway"),
    ({"networks": [{**_VLAN, "name": "No"}]}, "networks[0].name", "a network cannot have this name", "such as storage"),
    ({"networks": [{**_VLAN, "gateway": {"size": 8}}]}, "networks[0].gateway.size", "9 are needed", "make it larger"),
    ({"networks": [{"name": "a", "vlan": 5, "roles": ["worker"], "subnet": "10.0.0.1/24"}]}, "networks[0].subnet",
     "has host bits set", "write it as"),
    ({"networks": [{"name": "a", "vlan": 5, "roles": ["worker"], "subnet": "10.0.0.0/30"}]}, "networks[0].subnet",
     "no room for machines", "8 addresses at least"),
    ({"networks": [_VLAN], "networkType": "layer3"}, "networkType", "be in a VLAN", "hybrid-bonded"),
    ({"networks": [_VLAN], "networkType": "hybrid"}, "networkType", "out of the bond", "hybrid-bonded"),
    ({"networks": [_VLAN], "networkType": "layer2-bonded"}, "networkType", "have no address", "hybrid-bonded"),
    ({"networkType": "hybrid-bonded"}, "networkType", "once a VLAN is on it", "list a network"),
    ({"networks": [_VLAN], "networkType": "bonded"}, "networkType", "it should be 'layer3'", "not set: hybrid-bonded"),
    ({"metro": None, "facilities": ["da11"], "networks": [_VLAN]}, "networks", "belong to a metro", "platform.metro"),
]  # fmt: skip


@pytest.mark.parametrize(("masters", "workers", "needed"), [(3, 1, 8), (4, 1, 8), (5, 0, 8), (5, 1, 9), (5, 2, 10)])
def test_subnets_have_room_for_all(masters: int, workers: int, needed: int) -> None:
    roles = ["control-plane", *(["worker"] if workers else [])]
    size = {"controlPlane": {"count": masters}, "workers": {"count": workers}}
    network = {**_VLAN, "roles": roles, "gateway": {"size": 8}}
    if needed <= 8:
        assert _parsed({"networks": [network]}, **size)
    else:
        why = f"it has 8 addresses, and {needed} are needed"
        assert tells(_problems({"networks": [network]}, **size), "platform.networks[0].gateway.size", why)


@pytest.mark.parametrize(("platform", "path", "why", "remedy"), _WRONG)
def test_what_is_wrong_is_told(platform: dict[str, Any], path: str, why: str, remedy: str) -> None:
    assert tells(_problems(platform), f"platform.{path}", why, remedy)


def test_all_conflicts_are_told_at_once() -> None:
    second = {**_VLAN, "gateway": None, "subnet": "10.0.0.0/24"}
    third = {"name": "third", "vlan": 7, "roles": ["control-plane", "worker"], "subnet": "10.0.0.128/25"}
    platform = {
        "spot": {"maxPrice": 1},
        "reservations": {"bootstrap": _IDS[0], "controlPlane": [_IDS[0], _IDS[1], _IDS[1]]},
        "networks": [_VLAN, {key: value for key, value in second.items() if value}, third],
        "networkType": "layer3",
        "controlPlanePlan": "c3.large.arm64",
    }
    found = [problem.path.removeprefix("metal-ipi:platform.") for problem in _problems(platform, workers={"count": 0})]
    assert found == [
        "controlPlanePlan", "networkType", "networks[0].roles[0]", "networks[1].name", "networks[1].roles[0]",
        "networks[1].vlan", "networks[2].roles[1]", "networks[2].subnet", "reservations.controlPlane[0]",
        "reservations.controlPlane[2]", "spot",
    ]  # fmt: skip


@pytest.mark.parametrize("facilities", [["any"], ["da11", "any"]])
@pytest.mark.parametrize(
    "sections", [{"serviceAddresses": _POOLS}, {"apiAddress": {"type": "kube-vip"}}], ids=["pool", "API"]
)
def test_reserved_addresses_belong_to_one_metro(facilities: list[str], sections: dict[str, Any]) -> None:
    found = _problems({"metro": None, "facilities": facilities}, **sections)
    assert tells(found, "platform.facilities", "in one metro")
    assert _parsed({"metro": None, "facilities": facilities})
    # Codes do not tell the metro: preflight asks.
    assert _parsed({"metro": None, "facilities": ["da6", "da11"]}, **sections)
    assert _parsed({"metro": None, "facilities": ["sl1", "dc13"]}, **sections)


def test_what_is_right_is_taken() -> None:
    settings = _parsed(
        {
            "reservations": {"bootstrap": "next-available", "controlPlane": _IDS[:3], "worker": "next-available"},
            "workerPlan": "m3.large.x86",
            "networks": [{"name": "a", "vlan": 1000, "roles": ["control-plane", "worker"], "gateway": {"size": 16}}],
            "networkType": "hybrid-bonded",
            "machineSubnets": {"bootstrap": 28, "controlPlane": 30, "worker": 29},
            "lifetimeHours": 12,
            "customData": {"a": {"b": [1]}},
            "tags": ["team"],
        },
        workers={"count": 9},
    )
    platform = settings.platform
    assert isinstance(platform, EquinixMetal)
    assert platform.reservations.of("control-plane") == tuple(_IDS[:3])
    assert platform.reservations.of("worker") == ("next-available",) and platform.reservations.of("bootstrap")
    assert [platform.machine_subnets.of(role) for role in ("bootstrap", "control-plane", "worker")] == [28, 30, 29]


def test_spot_price_may_be_a_whole_number() -> None:
    platform = _parsed({"spot": {"maxPrice": 1}}).platform
    assert isinstance(platform, EquinixMetal) and platform.spot is not None and platform.spot.max_price == 1.0


def test_a_new_project_needs_its_owner_but_not_in_a_rehearsal() -> None:
    (problem,) = _problems({"projectId": None, "projectName": "ocp"})
    assert (problem.path, problem.value) == ("metal-ipi:platform.organizationId", "(not set)")
    assert _parsed({"projectId": None, "projectName": "ocp"}, rehearsal=True)
