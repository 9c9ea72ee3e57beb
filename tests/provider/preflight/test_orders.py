"""The checks that ask the Metal API: each passes, warns and fails when it should."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest

from tests.provider.metal_answers import ORGANIZATION, PLANS, PROJECT, TOKEN, Answer, Api, Json, enough, plan
from tests.provider.preflight.asking import TAGS, machines, of, report, the

RESERVED = [f"aaaaaaaa-0000-4000-8000-00000000000{number}" for number in range(4)]
_PLACES = {"ip_addresses": "ips"}


def device(hostname: str, *tags: str, **more: Any) -> Json:
    return {
        "id": f"device-{hostname}",
        "hostname": hostname,
        "tags": list(tags),
        "plan": {"slug": "c3.medium.x86"},
        **more,
    }


def having(project: str = PROJECT, **lists: list[Any]) -> dict[str, Answer]:
    """What a project answers that has these things."""
    return {
        f"GET /projects/{project}/{_PLACES.get(kind, kind.replace('_', '-'))}": {kind: items}
        for kind, items in lists.items()
    }


def ordering(*orders: Json, **more: Any) -> dict[str, Any]:
    """Inputs of a stack with these orders."""
    return {"orders": {**({"machines": list(orders)} if orders else {}), **more}}


THERE = [device(f"c-control-plane-{number}", *TAGS) for number in range(3)] + [device("c-worker-0", *TAGS)]
ALL_THERE = [*THERE, device("c-worker-1", *TAGS)]


def test_a_good_stack_has_nothing_but_good_news_and_orders_nothing() -> None:
    api = Api()
    found = report(api)
    assert [str(finding) for finding in found.findings if finding.level != "ok"] == []
    assert {finding.check for finding in found.findings} == {
        "token", "plans", "capacity", "limits", "runs", "names", "hardware", "addresses", "clock",
    }  # fmt: skip
    assert str(found).endswith("9 checks, all is well")
    quantities = [{"metro": "da", "plan": "c3.small.x86", "quantity": "1"},
                  {"metro": "da", "plan": "c3.medium.x86", "quantity": "5"}]  # fmt: skip
    assert [(asked, body) for asked, body in api.asked if not asked.startswith("GET ")] == [
        (f"POST /projects/{PROJECT}/ssh-keys", {}),
        ("POST /capacity/metros", {"servers": quantities}),
    ]


# --- what one check says ------------------------------------------------------------------------------------------


def of_run(run: str) -> list[str]:
    return [*TAGS, f"metal-ipi:run={run}"]


def left_by(run: str) -> dict[str, Answer]:
    """A project that holds something of each kind of a run."""
    spot = {"id": "s-1", "instance_parameters": {"hostname": "c-worker-1", "tags": of_run(run)}}
    return having(
        devices=[device("c-worker-0", *of_run(run), state="active")],
        spot_market_requests=[spot],
        ip_addresses=[block("198.51.100.8", 29, tags=of_run(run))],
        virtual_networks=[{"id": "v-1", "vxlan": 9, "description": f"metal-ipi:t:c.facility.test:a run={run} x"}],
        ssh_keys=[{"id": "k-1", "label": f"metal-ipi:t:c.facility.test run={run}"}],
    )


def block(network: str, cidr: int, **more: Any) -> Json:
    block = {"id": network, "network": network, "cidr": cidr, "address_family": 4, "public": True}
    return {**block, "type": "public_ipv4", **more}


def reserved(number: int, **more: Any) -> Json:
    place = {"facility": {"code": "da11", "metro": {"code": "da"}}, "plan": {"slug": "c3.medium.x86"}}
    return {"id": RESERVED[number], "provisionable": True, "device": None, **place, **more}


def reservations(*numbers: int, **more: Any) -> dict[str, Answer]:
    """So many reserved servers; the last is as told."""
    return having(hardware_reservations=[reserved(n, **(more if n == numbers[-1] else {})) for n in numbers])


_WAITS = {"id": "waits", "type": "public_ipv4", "state": "pending"}
_ASSIGNED = {"assignments": [{"network": "198.51.100.9", "cidr": 32, "assigned_to": {"href": "/d/x"}}]}
_ADDRESS = {"apiAddress": "198.51.100.9"}
_INSTALLER = {"installer": "no-such-installer", "version": "4.21.3"}
_BOTH = ordering(machines("worker", 2, reservations=RESERVED[1:3]))
_NEXT = ordering(machines("worker", 2, reservations=["next-available"]))
_MORE = ordering(machines("worker", 3, reservations=["next-available"]))
_MIXED = ordering(
    machines("control-plane", 1, reservations=[RESERVED[1]]), machines("worker", 2, reservations=["next-available"])
)
_CLEARED = {"provisionable": False, "device": {"id": "d-1", "state": "deprovisioning"}}
_SPOT = ordering(machines("worker", 1, spotMaxPrice=1))
_FACILITIES: dict[str, Any] = ordering(machines("worker", 3), metro=None, facilities=["da11", "da6"])
_ANYWHERE = ordering(machines("worker", 3), metro=None, facilities=["any"])
_OF_METROS = {"da11": "da", "sl1": "da", "ny5": "ny"}
_LISTED: dict[str, Answer] = {
    "GET /facilities": {
        "facilities": [{"code": code, "id": code, "metro": {"code": metro}} for code, metro in _OF_METROS.items()]
    }
}


def _addresses(*facilities: str, count: int = 1) -> dict[str, Any]:
    return ordering(metro=None, facilities=list(facilities), addresses=[{"name": "a", "quantity": 1}][:count])


def _limit(limit: object) -> dict[str, Answer]:
    return {f"GET /projects/{PROJECT}": {"id": PROJECT, "max_devices": limit}, **having(devices=[device("other")])}


# Answers of the API, inputs of the stack; the only finding of a check: its level, and words of it or of its remedy.
_CASES: list[tuple[dict[str, Answer], dict[str, Any], str, str, list[str]]] = [
    (having(devices=ALL_THERE), {}, "plans", "ok", ["no machine is ordered\n"]),
    (having(devices=THERE), ordering(machines("bootstrap", 1, "c9.small.x86"), machines("control-plane", 3, "c9.x86"),
     machines("worker", 2, "c9.small.x86")), "plans", "error", ["workerPlan c9.small.x86: Metal has no such plan"]),
    ({}, ordering(machines("control-plane", 1, "c3.large.arm64")) | {"architecture": "aarch64"}, "plans", "ok", []),
    ({"GET /plans": {"plans": [plan("c3.medium.x86", 1.5, deployment_types=["on_demand"])]}}, _SPOT, "plans", "error",
     ["the spot market does not have it", "or remove platform.spot"]),
    # Capacity: the spot market and reserved servers are no matter of it, nor what is there already.
    ({"POST /capacity/metros": enough({"da": 3})},
     ordering(machines("control-plane", 3), machines("worker", 2, spotMaxPrice=1)),
     "capacity", "ok", ["da has 3 x c3.medium.x86\n"]),
    ({"POST /capacity/metros": 500}, _SPOT, "capacity", "ok", ["no machine is ordered on demand"]),
    ({"POST /capacity/metros": 500, **reservations(1, 2)}, _BOTH, "capacity", "ok", ["no machine is ordered"]),
    ({"POST /capacity/metros": enough({"da": 1}), **having(devices=THERE)}, {}, "capacity", "ok",
     ["da has 1 x c3.medium.x86\n"]),
    ({"POST /capacity/metros": 500, **having(devices=ALL_THERE)}, {}, "capacity", "ok",
     ["no machine is ordered"]),
    # Facilities are taken in order, and together.
    ({}, _FACILITIES, "capacity", "ok", ["da11 has 3 x c3.medium.x86"]),
    ({"POST /capacity": enough({"da11": 1})}, _FACILITIES, "capacity", "ok", ["da6 has 3 x c3.medium.x86"]),
    ({"POST /capacity": enough({"da11": 2, "da6": 2})}, _FACILITIES, "capacity", "warning",
     ["there are some in da11, da6", "name more facilities"]),
    ({"POST /capacity": enough({"da11": 0, "da6": 0})}, _FACILITIES, "capacity", "error",
     ["da11, da6 does not have 3 x c3.medium.x86 at the moment"]),
    ({}, _ANYWHERE, "capacity", "ok", ["left to Metal"]),
    # Reserved servers.
    (reservations(1, 2), _BOTH, "reservations", "ok", ["2 reserved servers are free\n"]),
    (reservations(1), _BOTH, "reservations", "error", [f"the project has no reservation {RESERVED[2]}"]),
    (reservations(1), ordering(machines("worker", 2, reservations=[RESERVED[1]])), "reservations", "error",
     ["c-worker-1: there is no reservation of its number"]),
    *((reservations(1, 2, **more), _BOTH, "reservations", "error", [f"c-worker-1: reservation {RESERVED[2]} {why}"])
      for more, why in (
        ({"device": {"href": "/metal/v1/devices/d-1"}}, "is in use by device d-1"),
        ({"device": {"id": "d-1", "state": "active"}}, "is in use by device d-1"),
        ({"provisionable": False, "spare": True}, "cannot be provisioned: it is a spare"),
        ({"provisionable": False, "need_of_service": True}, "cannot be provisioned"),
        ({"plan": {"slug": "c3.small.x86"}}, "is a c3.small.x86, and c3.medium.x86 is ordered"),
        ({"facility": {"metro": {"code": "ny"}}}, "is in ny, not in da"))),
    (reservations(1, 2, 3), _MIXED, "reservations", "ok", ["3 reserved servers are free\n"]),
    (reservations(1, 2), _MIXED, "reservations", "error", ["2 x c3.medium.x86 are wanted", "1 are free"]),
    *((reservations(1, 2, **cleared), stack, "reservations", level, told) for cleared in (_CLEARED, {
        "provisionable": False}) for stack, level, told in (
        (_BOTH, "warning", [f"c-worker-1: reservation {RESERVED[2]} is still being cleared", "wait until"]),
        (_NEXT, "warning", ["and 1 are free there; 1 are still being cleared", "wait until"]),
        (_MORE, "error", ["3 x c3.medium.x86 are wanted"]))),
    # The installer is not needed any more once there are machines.
    ({}, _INSTALLER, "installer", "error", ["there is no program"]),
    ({}, {**_INSTALLER, "again": True}, "installer", "error", ["there is no program"]),
    (having(devices=THERE), _INSTALLER, "installer", "ok", ["it is not needed any more"]),
    (having(devices=[device("web", "web")]), _INSTALLER, "installer", "error", ["there is no program"]),
    # Bids are held against the market.
    ({}, ordering(machines("worker", 1, spotMaxPrice=0.5)), "spot", "ok", ["costs 0.4 USD per hour, 0.5 are bid"]),
    ({}, ordering(machines("worker", 1, spotMaxPrice=0.3)), "spot", "warning", ["costs 0.4 USD per hour on the spot"]),
    ({"GET /market/spot/prices/metros": {"spot_market_prices": {"da": {}}}}, _SPOT, "spot", "warning",
     ["has no price for c3.medium.x86 in da"]),
    # Limits.
    (_limit(None), {}, "limits", "ok", ["the API reports no limit of these plans"]),
    (_limit({"c3.medium.x86": 6}), {}, "limits", "ok", ["within the project's limits of c3.medium.x86"]),
    (_limit({"c3.medium.x86": 5}), {}, "limits", "error",
     ["the project's limit is 5 x c3.medium.x86: it has 1, and 5 more are ordered"]),
    # Names.
    (having(devices=[device("c-worker-0"), device("c-worker-1", *TAGS), device("web", "metal-ipi:stack=other")]), {},
     "names", "error", ["a machine c-worker-0 (device-c-worker-0) that is not this stack's"]),
    (having(ip_addresses=[block("198.51.100.8", 29)]), _ADDRESS, "names", "ok", ["no machine, project or address"]),
    (having(), _ADDRESS, "names", "warning", ["is in no block of the project"]),
    (having(ip_addresses=[_WAITS]), _ADDRESS, "names", "warning", ["is in no block of the project"]),
    (having(ip_addresses=[block("198.51.100.8", 30, management=True)]), _ADDRESS, "names", "error",
     ["belongs to a machine's own subnet"]),
    (having(ip_addresses=[block("198.51.100.8", 29, **_ASSIGNED)]), _ADDRESS, "names", "error",
     ["is assigned to device x"]),
    # What is our own, or unmarked (it was ordered before there were runs), or on its way out, is in nobody's way.
    (left_by("r1"), {}, "runs", "ok", []),
    (having(devices=[device("c-worker-0", *TAGS)]), {}, "runs", "ok", []),
    (having(devices=[device("c-worker-0", *of_run("r2"), state="deprovisioning")]), {}, "runs", "ok", []),
    (left_by("r2"), {}, "names", "ok", []),
    # Nothing was ever ordered from here: whatever there is, is another run's.
    (left_by("r2"), {"run": None}, "runs", "error", ["(k-1)", "`make sweep STACK=t OF=t`"]),
    # Addresses are reserved in one metro, whatever its facilities are called.
    ({}, {"networks": {"pods": "10.128.0.0/14", "services": "172.30.0.0/16"}}, "addresses", "ok",
     ["no networks overlap"]),
    (_LISTED, _addresses("da11", "sl1"), "addresses", "ok", []),
    (_LISTED, _addresses("da11", "ny5"), "addresses", "error", ["da11 is in da, ny5 is in ny"]),
    (_LISTED, _addresses("da11", "ny5", count=0), "addresses", "ok", []),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(_CASES)))
def test_what_a_check_says(number: int) -> None:
    answers, values, check, level, told = _CASES[number]
    text = the(report(Api(answers), **values), check, level)
    assert [words for words in told if words not in text] == []


# --- token --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "status", "told"),
    [
        (f"GET /projects/{PROJECT}", 401, "the API token is not valid"),
        (f"GET /projects/{PROJECT}", 404, "does not see project"),
        (f"GET /projects/{PROJECT}", 403, "does not see project"),
        (f"POST /projects/{PROJECT}/ssh-keys", 403, "may read project .* but not write it"),
        (f"POST /projects/{PROJECT}/ssh-keys", 401, "may read project .* but not write it"),
    ],
)
def test_a_token_that_does_not_do_is_told_once(path: str, status: int, told: str) -> None:
    found = report(Api({path: status}), networks={"a": "10.0.0.0/8", "b": "10.1.0.0/16"})
    text = the(found, "token", "error")
    assert re.search(told, text) and "platform." in text and TOKEN not in str(found)
    # What needs no token is told at the same time; what needs it is said not to have been looked at.
    assert "a (10.0.0.0/8) overlaps b (10.1.0.0/16)" in the(found, "addresses", "error")
    assert the(found, "capacity", "warning").startswith("not checked")


def test_a_project_to_be_created_is_looked_for_in_its_organization() -> None:
    new: dict[str, Any] = {"projectId": None, "projectName": "new", "organizationId": ORGANIZATION}
    organization = f"/organizations/{ORGANIZATION}"
    answers: dict[str, Answer] = {
        f"GET {organization}": {"id": ORGANIZATION},
        f"POST {organization}/projects": 422,
        f"GET {organization}/projects": {"projects": [{"id": "p-1", "name": "old"}]},
    }
    assert report(Api(answers), **new).errors == []
    read_only = report(Api({**answers, f"POST {organization}/projects": 403}), **new)
    assert "may read organization" in the(read_only, "token", "error")

    empty = {key.replace(PROJECT, "p-2"): answer for key, answer in Api().answers.items() if key.startswith("GET /pr")}
    taken: dict[str, Answer] = {
        **empty,
        **answers,
        f"GET {organization}/projects": {"projects": [{"id": "p-2", "name": "new"}]},
    }
    text = the(report(Api(taken), **new), "names", "error")
    assert "has a project new (p-2) already" in text and "platform.projectId" in text

    # What an earlier run made is looked into, like any project that exists.
    ours = having("p-2", ssh_keys=[{"label": "metal-ipi:t:c.facility.test"}], devices=[THERE[0], device("c-worker-0")])
    limit: dict[str, Answer] = {"GET /projects/p-2": {"id": "p-2", "max_devices": {"c3.medium.x86": 5}}}
    found = report(Api({**taken, **ours, **limit}), **new)
    assert [str(each.what) for each in found.errors] == [
        "the project's limit is 5 x c3.medium.x86: it has 2, and 4 more are ordered",
        "the project has a machine c-worker-0 (device-c-worker-0) that is not this stack's",
    ]
    assert [each.what for each in of(found, "capacity")] == ["da has 1 x c3.small.x86", "da has 4 x c3.medium.x86"]

    another = having("p-2", ssh_keys=[{"id": "k", "label": "metal-ipi:t:c.facility.test run=r2"}])
    found = report(Api({**taken, **another}), **new)
    assert "project p-2 has SSH key metal-ipi:t:c.facility.test run=r2 (k)" in the(found, "runs", "error")
    assert the(found, "names", "ok")


# --- several findings ---------------------------------------------------------------------------------------------


def told(check: str, api: Api, **values: Any) -> list[tuple[str, str]]:
    """Level and words of each finding of a check."""
    return [(finding.level, finding.what) for finding in of(report(api, **values), check)]


def test_plans_that_do_not_exist_or_do_not_fit_are_all_told() -> None:
    wrong = ordering(
        machines("bootstrap", 1, "c9.small.x86"),
        machines("control-plane", 3, "c3.large.arm64"),
        machines("worker", 2, operatingSystem="windows"),
    )
    assert told("plans", Api(), **wrong) == [
        ("error", "platform.bootstrapPlan c9.small.x86: Metal has no such plan"),
        ("error", "platform.controlPlanePlan c3.large.arm64: its processors are aarch64, and x86_64 is to be booted"),
        ("error", "platform.workerPlan c3.medium.x86: windows cannot be provisioned on it"),
    ]
    arm = told("plans", Api(), architecture="aarch64")
    assert ["its processors are x86_64, and aarch64 is to be booted" in what for _, what in arm] == [True] * 3


def test_places_that_do_not_offer_a_plan_or_do_not_exist() -> None:
    elsewhere = plan("c3.medium.x86", 1.5, available_in_metros=[{"href": "/metal/v1/locations/metros/metro-lb"}])
    found = of(report(Api({"GET /plans": {"plans": [PLANS[0], elsewhere]}})), "plans")
    whats = [finding.what.removesuffix(" c3.medium.x86: da does not offer it") for finding in found]
    assert whats == ["platform.controlPlanePlan", "platform.workerPlan"]
    assert "one of lb" in found[0].remedy
    wrong = of(report(Api(), **ordering(metro="xx")), "plans")
    assert wrong[0].what == "Metal has no metro xx" and "da, lb" in wrong[0].remedy
    assert told("plans", Api(), **ordering(metro=None, facilities=["da11", "zz1"])) == [
        ("error", "Metal has no facility zz1")
    ]


def test_no_capacity_is_an_error_for_the_plan_unless_it_is_excused() -> None:
    api = Api({"POST /capacity/metros": enough({"da": 4})})
    too_few = "da does not have 5 x c3.medium.x86 at the moment"
    assert told("capacity", api) == [("ok", "da has 1 x c3.small.x86"), ("error", too_few)]
    found = report(api, excused=["capacity"])
    assert found.errors == [] and [each.what for each in found.warnings] == [f"{too_few} (excused)"]


def test_what_another_run_ordered_is_listed_and_nothing_is_ordered_beside_it() -> None:
    found = report(Api(left_by("r2")))
    text = the(found, "runs", "error")
    listed = (
        "machine c-worker-0 (device-c-worker-0)", "spot market request c-worker-1 (s-1)",
        "reserved address 198.51.100.8 (198.51.100.8)", "VLAN 9 (v-1)",
        "SSH key metal-ipi:t:c.facility.test run=r2 (k-1)",
    )  # fmt: skip
    assert f"project {PROJECT} has {', '.join(listed)}\n" in text
    assert "the checkout (or the backend) that has its state" in text and "`make sweep STACK=t OF=t`" in text
    assert "da has 5 x c3.medium.x86" in str(found), "none of it is taken for what is there already"


def test_networks_that_overlap() -> None:
    private = block("10.130.4.0", 25, public=False, type="private_ipv4")
    assert told(
        "addresses",
        Api(having(ip_addresses=[private])),
        networks={"pods": "10.128.0.0/14", "services": "172.30.0.0/16"},
        **ordering(networks=[{"name": "storage", "subnet": "172.30.8.0/24"}]),
    ) == [
        ("error", "services (172.30.0.0/16) overlaps VLAN storage (172.30.8.0/24)"),
        ("error", "pods (10.128.0.0/14) overlaps the project's private addresses (10.130.4.0/25)"),
    ]


def test_vlans_of_others_and_a_quota_that_is_used_up() -> None:
    vlans = [
        {"vxlan": 1000, "metro_code": "da", "description": "somebody's"},
        {"vxlan": 1001, "metro_code": "da", "description": "metal-ipi:t:c.facility.test:storage"},
        {"vxlan": 1002, "metro_code": "ny", "description": "somebody's"},
    ]
    api = Api(having(virtual_networks=vlans, ip_addresses=[block("198.51.100.8", 29), _WAITS]))
    networks = [{"name": f"n{number}", "vlan": number} for number in (1000, 1001, 1002)]
    assert told("addresses", api, **ordering(networks=networks, addresses=[{"name": "api", "quantity": 1}])) == [
        ("error", "the project has a VLAN 1000 in da that is not this stack's"),
        ("warning", "1 of the project's blocks wait for a review, so its quota is used up: api would wait as well"),
    ]


def test_a_part_of_the_api_that_refuses_fails_its_check_alone() -> None:
    found = report(Api({"GET /plans": 418}))
    assert "refuses GET /plans: told to say 418" in the(found, "plans", "error")
    assert [finding.check for finding in found.errors] == ["plans"]


@pytest.mark.parametrize(
    ("seconds", "level", "words"),
    [
        (3, "ok", r"within \d s"),
        (-90, "warning", r"is (89|90|91) s ahead of"),
        (600, "error", r"is (599|600) s behind that of the Metal API"),
    ],
)
def test_clocks(seconds: int, level: str, words: str) -> None:
    assert re.search(words, the(report(Api(skew=timedelta(seconds=seconds))), "clock", level))
