"""The checks that ask the Metal API: each passes, warns and fails when it should."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest

from tests.provider.metal_answers import ORGANIZATION, PLANS, PROJECT, TOKEN, Api, Json, enough, plan
from tests.provider.preflight.asking import TAGS, machines, of, report, the

RESERVED = "aaaaaaaa-0000-4000-8000-00000000000{}"


def device(hostname: str, *tags: str, slug: str = "c3.medium.x86") -> Json:
    return {"id": f"device-{hostname}", "hostname": hostname, "tags": list(tags), "plan": {"slug": slug}}


def test_a_good_stack_has_nothing_but_good_news_and_orders_nothing() -> None:
    api = Api()
    found = report(api)
    assert [str(finding) for finding in found.findings if finding.level != "ok"] == []
    assert {finding.check for finding in found.findings} == {
        "token", "plans", "capacity", "limits", "runs", "names", "hardware", "addresses", "clock",
    }  # fmt: skip
    assert str(found).endswith("9 checks, all is well")
    written = [(asked, body) for asked, body in api.asked if not asked.startswith("GET ")]
    assert written == [
        (f"POST /projects/{PROJECT}/ssh-keys", {}),
        (
            "POST /capacity/metros",
            {
                "servers": [
                    {"metro": "da", "plan": "c3.small.x86", "quantity": "1"},
                    {"metro": "da", "plan": "c3.medium.x86", "quantity": "5"},
                ]
            },
        ),
    ]


# --- token


@pytest.mark.parametrize(
    ("path", "status", "told"),
    [
        (f"GET /projects/{PROJECT}", 401, "the API token is not valid"),
        (f"GET /projects/{PROJECT}", 404, "does not see project"),
        (f"GET /projects/{PROJECT}", 403, "does not see project"),
        (f"POST /projects/{PROJECT}/ssh-keys", 403, "may read project .* and not write it"),
        (f"POST /projects/{PROJECT}/ssh-keys", 401, "may read project .* and not write it"),
    ],
)
def test_a_token_that_does_not_do_is_told_once(path: str, status: int, told: str) -> None:
    found = report(Api({path: status}), networks={"a": "10.0.0.0/8", "b": "10.1.0.0/16"})
    text = the(found, "token", "error")
    assert re.search(told, text) and "platform." in text and TOKEN not in str(found)
    # What needs no token is told at the same time; what needs it is said not to have been looked at.
    assert "a (10.0.0.0/8) overlaps b (10.1.0.0/16)" in the(found, "addresses", "error")
    assert the(found, "capacity", "warning").startswith("not looked at")


def test_a_project_to_be_created_is_looked_for_in_its_organization() -> None:
    new: dict[str, Any] = {"projectId": None, "projectName": "new", "organizationId": ORGANIZATION}
    organization = f"/organizations/{ORGANIZATION}"
    answers: dict[str, Any] = {
        f"GET {organization}": {"id": ORGANIZATION},
        f"POST {organization}/projects": 422,
        f"GET {organization}/projects": {"projects": [{"id": "p-1", "name": "old"}]},
    }
    assert report(Api(answers), **new).errors == []

    taken = {"projects": [{"id": "p-2", "name": "new"}]}
    empty = {
        path.replace(PROJECT, "p-2"): answer for path, answer in Api().answers.items() if path.startswith("GET /pr")
    }
    api = Api({**empty, **answers, f"GET {organization}/projects": taken})
    text = the(report(api, **new), "names", "error")
    assert "has a project new (p-2) already" in text and "platform.projectId" in text

    ours = {"ssh_keys": [{"label": "metal-ipi:t:c.facility.test"}]}
    made = {
        "GET /projects/p-2": {"id": "p-2", "max_devices": {"c3.medium.x86": 5}},
        "GET /projects/p-2/ssh-keys": ours,
        "GET /projects/p-2/devices": {"devices": [device("c-control-plane-0", *TAGS), device("c-worker-0", "web")]},
        "GET /projects/p-2/ips": {"ip_addresses": []},
    }
    # What an earlier run made is looked into, like any project that exists.
    found = report(Api({**api.answers, **made}), **new)
    assert [str(each.what) for each in found.errors] == [
        "the project may have 5 x c3.medium.x86: it has 2, and 4 more are ordered",
        "the project has a machine c-worker-0 (device-c-worker-0) that is not this stack's",
    ]
    assert [each.what for each in of(found, "capacity")] == ["da has 1 x c3.small.x86", "da has 4 x c3.medium.x86"]

    another = {"ssh_keys": [{"id": "k", "label": "metal-ipi:t:c.facility.test run=r2"}]}
    found = report(Api({**api.answers, "GET /projects/p-2/ssh-keys": another}), **new)
    assert "project p-2 has SSH key metal-ipi:t:c.facility.test run=r2 (k)" in the(found, "runs", "error") and the(
        found, "names", "ok"
    )

    read_only = report(Api({**answers, f"POST {organization}/projects": 403}), **new)
    assert "may read organization" in the(read_only, "token", "error")


# --- plans


def test_plans_that_do_not_exist_or_do_not_fit_are_all_told() -> None:
    orders = {
        "machines": [
            machines("bootstrap", 1, "c9.small.x86"),
            machines("control-plane", 3, "c3.large.arm64"),
            machines("worker", 2, operatingSystem="windows"),
        ]
    }
    told = [f"{finding.what} {finding.remedy}" for finding in of(report(Api(), orders=orders), "plans")]
    assert len(told) == 3
    assert "platform.bootstrapPlan c9.small.x86: Metal has no such plan" in told[0]
    assert "platform.controlPlanePlan c3.large.arm64: its processors are aarch64, and x86_64 is to be booted" in told[1]
    assert "platform.workerPlan c3.medium.x86: windows cannot be provisioned on it" in told[2]


def test_plans_of_machines_that_are_there_do_not_matter() -> None:
    orders = {
        "machines": [
            machines("bootstrap", 1, "c9.small.x86"),
            machines("control-plane", 3, "c3.large.arm64"),
            machines("worker", 2, "c9.small.x86"),
        ]
    }
    there = [device(f"c-control-plane-{n}", *TAGS) for n in range(3)] + [device("c-worker-0", *TAGS)]
    api = Api({f"GET /projects/{PROJECT}/devices": {"devices": there}})
    assert "platform.workerPlan c9.small.x86: Metal has no such plan" in the(
        report(api, orders=orders), "plans", "error"
    )
    api = Api({f"GET /projects/{PROJECT}/devices": {"devices": [*there, device("c-worker-1", *TAGS)]}})
    assert the(report(api, orders=orders), "plans", "ok") == "no machine is to be ordered\n"


def test_an_arm_plan_is_right_with_arm() -> None:
    orders = {"machines": [machines("control-plane", 1, "c3.large.arm64")]}
    assert report(Api(), orders=orders, architecture="aarch64").errors == []
    told = of(report(Api(), architecture="aarch64"), "plans")
    assert ["its processors are x86_64, and aarch64 is to be booted" in each.what for each in told] == [True] * 3


def test_a_place_that_does_not_offer_a_plan() -> None:
    elsewhere = plan("c3.medium.x86", 1.5, available_in_metros=[{"href": "/metal/v1/locations/metros/metro-lb"}])
    api = Api({"GET /plans": {"plans": [PLANS[0], elsewhere]}})
    told = [finding.what for finding in of(report(api), "plans")]
    assert told == ["platform.controlPlanePlan c3.medium.x86: da does not offer it",
                    "platform.workerPlan c3.medium.x86: da does not offer it"]  # fmt: skip
    assert "one of lb" in of(report(api), "plans")[0].remedy


def test_places_that_do_not_exist() -> None:
    wrong = of(report(Api({"POST /capacity/metros": enough({})}), orders={"metro": "xx"}), "plans")
    assert wrong[0].what == "Metal has no metro xx" and "da, lb" in wrong[0].remedy
    wrong = of(report(Api(), orders={"metro": None, "facilities": ["da11", "zz1"]}), "plans")
    assert [finding.what for finding in wrong] == ["Metal has no facility zz1"]


# --- capacity


def test_no_capacity_is_an_error_for_the_plan() -> None:
    found = report(Api({"POST /capacity/metros": enough({"da": 4})}))
    assert [(each.level, each.what) for each in of(found, "capacity")] == [
        ("ok", "da has 1 x c3.small.x86"),
        ("error", "da does not have 5 x c3.medium.x86 at the moment"),
    ]


def test_the_spot_market_is_no_matter_of_capacity() -> None:
    orders = {"machines": [machines("control-plane", 3), machines("worker", 2, spotMaxPrice=1)]}
    api = Api({"POST /capacity/metros": enough({"da": 3})})
    assert the(report(api, orders=orders), "capacity", "ok") == "da has 3 x c3.medium.x86\n"
    workers = {"machines": [machines("worker", 2, spotMaxPrice=1)]}
    api = Api({"POST /capacity/metros": 500})
    assert the(report(api, orders=workers), "capacity", "ok").startswith("no machine is to be ordered on demand")


def test_what_is_there_already_is_not_asked_for_again() -> None:
    there = [device(f"c-control-plane-{n}", *TAGS) for n in range(3)] + [device("c-worker-0", *TAGS)]
    api = Api({f"GET /projects/{PROJECT}/devices": {"devices": there}, "POST /capacity/metros": enough({"da": 1})})
    assert the(report(api), "capacity", "ok") == "da has 1 x c3.medium.x86\n"

    everything = [*there, device("c-worker-1", *TAGS)]
    api = Api({f"GET /projects/{PROJECT}/devices": {"devices": everything}, "POST /capacity/metros": 500})
    assert the(report(api), "capacity", "ok").startswith("no machine is to be ordered")


def test_facilities_are_taken_in_order_and_together() -> None:
    orders: dict[str, Any] = {"metro": None, "facilities": ["da11", "da6"], "machines": [machines("worker", 3)]}

    def told(**there: int) -> tuple[str, str]:
        (finding,) = of(report(Api({"POST /capacity": enough(there)}), orders=orders), "capacity")
        return finding.level, finding.what

    assert told() == ("ok", "da11 has 3 x c3.medium.x86")
    assert told(da11=1) == ("ok", "da6 has 3 x c3.medium.x86")
    level, what = told(da11=2, da6=2)
    assert level == "warning" and "there are some in da11, da6" in what
    assert told(da11=0, da6=0) == ("error", "da11, da6 does not have 3 x c3.medium.x86 at the moment")
    anywhere = report(Api(), orders={**orders, "facilities": ["any"]})
    assert "left to Metal" in the(anywhere, "capacity", "ok")


# --- reservations


def reserved(number: int, **more: Any) -> Json:
    place = {"facility": {"code": "da11", "metro": {"code": "da"}}, "plan": {"slug": "c3.medium.x86"}}
    return {"id": RESERVED.format(number), "provisionable": True, "device": None, **place, **more}


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"device": {"href": "/metal/v1/devices/d-1"}}, "is in use by device d-1"),
        ({"device": {"id": "d-1", "state": "active"}}, "is in use by device d-1"),
        ({"provisionable": False, "spare": True}, "cannot be provisioned: it is a spare"),
        ({"provisionable": False, "need_of_service": True}, "cannot be provisioned"),
        ({"plan": {"slug": "c3.small.x86"}}, "is a c3.small.x86, and c3.medium.x86 is ordered"),
        ({"facility": {"metro": {"code": "ny"}}}, "is in ny, not in da"),
    ],
)
def test_reserved_servers_that_cannot_be_used(more: Json, why: str) -> None:
    path = f"GET /projects/{PROJECT}/hardware-reservations"
    orders = {"machines": [machines("worker", 2, reservations=[RESERVED.format(1), RESERVED.format(2)])]}
    good = Api({path: {"hardware_reservations": [reserved(1), reserved(2)]}})
    assert the(report(good, orders=orders), "reservations", "ok") == "2 reserved servers are free\n"
    # Reserved servers are no matter of capacity.
    assert not [asked for asked, _ in good.asked if "capacity" in asked]
    bad = Api({path: {"hardware_reservations": [reserved(1), reserved(2, **more)]}})
    assert f"c-worker-1: reservation {RESERVED.format(2)} {why}" in the(
        report(bad, orders=orders), "reservations", "error"
    )
    gone = Api({path: {"hardware_reservations": [reserved(1)]}})
    assert "the project has no reservation" in the(report(gone, orders=orders), "reservations", "error")


def test_the_next_available_ones_must_be_enough() -> None:
    path = f"GET /projects/{PROJECT}/hardware-reservations"
    orders = {
        "machines": [
            machines("control-plane", 1, reservations=[RESERVED.format(1)]),
            machines("worker", 2, reservations=["next-available"]),
        ]
    }
    enough_of_them = Api({path: {"hardware_reservations": [reserved(1), reserved(2), reserved(3)]}})
    assert report(enough_of_them, orders=orders).errors == []
    text = the(
        report(Api({path: {"hardware_reservations": [reserved(1), reserved(2)]}}), orders=orders),
        "reservations",
        "error",
    )
    assert "2 x c3.medium.x86 are wanted" in text and "1 are free" in text


@pytest.mark.parametrize("device", [None, {"id": "d-1", "state": "deprovisioning"}])
def test_reserved_servers_that_are_being_cleared_are_worth_waiting_for(device: Json | None) -> None:
    path = f"GET /projects/{PROJECT}/hardware-reservations"
    cleared = reserved(2, provisionable=False, device=device)
    api = Api({path: {"hardware_reservations": [reserved(1), cleared]}})
    named = {"machines": [machines("worker", 2, reservations=[RESERVED.format(1), RESERVED.format(2)])]}
    text = the(report(api, orders=named), "reservations", "warning")
    assert f"c-worker-1: reservation {RESERVED.format(2)} is still being cleared" in text and "wait until" in text
    any_of_them = {"machines": [machines("worker", 2, reservations=["next-available"])]}
    text = the(report(api, orders=any_of_them), "reservations", "warning")
    assert "and 1 are free there; 1 are still being cleared" in text and "wait until" in text
    more = {"machines": [machines("worker", 3, reservations=["next-available"])]}
    assert "3 x c3.medium.x86 are wanted" in the(report(api, orders=more), "reservations", "error")


# --- installer


def test_the_installer_is_not_needed_any_more_once_there_are_machines() -> None:
    installer: dict[str, Any] = {"installer": "no-such-installer", "version": "4.21.3"}
    assert "there is no program" in the(report(Api(), **installer), "installer", "error")
    assert "there is no program" in the(report(Api(), again=True, **installer), "installer", "error")
    api = Api({f"GET /projects/{PROJECT}/devices": {"devices": [device("c-control-plane-0", *TAGS)]}})
    assert the(report(api, **installer), "installer", "ok").startswith("it is not needed any more")
    foreign = Api({f"GET /projects/{PROJECT}/devices": {"devices": [device("web", "web")]}})
    assert "there is no program" in the(report(foreign, **installer), "installer", "error")


# --- spot market


@pytest.mark.parametrize(
    ("bid", "level", "told"),
    [(0.5, "ok", "costs 0.4 USD per hour, 0.5 are bid"), (0.3, "warning", "costs 0.4 USD per hour on the spot market")],
)
def test_bids_are_held_against_the_market(bid: float, level: str, told: str) -> None:
    orders = {"machines": [machines("worker", 1, spotMaxPrice=bid)]}
    assert told in the(report(Api(), orders=orders), "spot", level)


def test_a_plan_that_the_spot_market_does_not_have() -> None:
    on_demand = plan("c3.medium.x86", 1.5, deployment_types=["on_demand"])
    nothing = {"spot_market_prices": {"da": {}}}
    api = Api({"GET /plans": {"plans": [on_demand]}, "GET /market/spot/prices/metros": nothing})
    found = report(api, orders={"machines": [machines("worker", 1, spotMaxPrice=1)]})
    assert "the spot market does not have it" in the(found, "plans", "error")
    assert "has no price for c3.medium.x86 in da" in the(found, "spot", "warning")


# --- limits


def test_what_the_project_may_have() -> None:
    def told(limit: object) -> tuple[str, str]:
        there = {"devices": [device("other", slug="c3.medium.x86")]}
        limits = {"id": PROJECT, "max_devices": limit}
        api = Api({f"GET /projects/{PROJECT}": limits, f"GET /projects/{PROJECT}/devices": there})
        (finding,) = of(report(api), "limits")
        return finding.level, finding.what

    assert told(None) == ("ok", "the API names no limit of these plans")
    assert told({"c3.medium.x86": 6}) == ("ok", "within what the project may have of c3.medium.x86")
    assert told({"c3.medium.x86": 5}) == (
        "error",
        "the project may have 5 x c3.medium.x86: it has 1, and 5 more are ordered",
    )


# --- names


def test_machines_of_others_with_our_names_are_in_the_way() -> None:
    there = [device("c-worker-0"), device("c-worker-1", *TAGS), device("web", "metal-ipi:stack=other")]
    api = Api({f"GET /projects/{PROJECT}/devices": {"devices": there}})
    text = the(report(api), "names", "error")
    assert "a machine c-worker-0 (device-c-worker-0) that is not this stack's" in text


def of_run(run: str) -> list[str]:
    return [*TAGS, f"metal-ipi:run={run}"]


def _left_by(run: str) -> dict[str, Any]:
    """A project that holds something of each kind of a run."""
    spot = {"id": "s-1", "instance_parameters": {"hostname": "c-worker-1", "tags": of_run(run)}}
    return {
        f"GET /projects/{PROJECT}/devices": {"devices": [{**device("c-worker-0", *of_run(run)), "state": "active"}]},
        f"GET /projects/{PROJECT}/spot-market-requests": {"spot_market_requests": [spot]},
        f"GET /projects/{PROJECT}/ips": {"ip_addresses": [block("198.51.100.8", 29, tags=of_run(run))]},
        f"GET /projects/{PROJECT}/virtual-networks": {
            "virtual_networks": [{"id": "v-1", "vxlan": 9, "description": f"metal-ipi:t:c.facility.test:a run={run} x"}]
        },
        f"GET /projects/{PROJECT}/ssh-keys": {
            "ssh_keys": [{"id": "k-1", "label": f"metal-ipi:t:c.facility.test run={run}"}]
        },
    }


def test_what_another_run_ordered_is_listed_and_nothing_is_ordered_beside_it() -> None:
    text = the(report(Api(_left_by("r2"))), "runs", "error")
    listed = (
        "machine c-worker-0 (device-c-worker-0)", "spot market request c-worker-1 (s-1)",
        "reserved address 198.51.100.8 (198.51.100.8)", "VLAN 9 (v-1)",
        "SSH key metal-ipi:t:c.facility.test run=r2 (k-1)",
    )  # fmt: skip
    assert f"project {PROJECT} has {', '.join(listed)}\n" in text
    assert "the checkout (or the backend) that has its state" in text and "`make sweep STACK=t OF=t`" in text
    # A machine of the same name is told once; and none of it is taken for what is there already.
    found = report(Api(_left_by("r2")))
    assert the(found, "names", "ok") and "da has 5 x c3.medium.x86" in str(found)
    # Nothing was ever ordered from here: whatever there is, is another run's.
    assert "(k-1)" in the(report(Api(_left_by("r2")), run=None), "runs", "error")


def test_what_is_our_own_or_unmarked_or_on_its_way_out_is_in_nobodys_way() -> None:
    assert the(report(Api(_left_by("r1"))), "runs", "ok")
    unmarked: dict[str, Any] = {f"GET /projects/{PROJECT}/devices": {"devices": [device("c-worker-0", *TAGS)]}}
    assert the(report(Api(unmarked)), "runs", "ok"), "it was ordered before there were runs"
    leaving = {"devices": [{**device("c-worker-0", *of_run("r2")), "state": "deprovisioning"}]}
    assert the(report(Api({f"GET /projects/{PROJECT}/devices": leaving})), "runs", "ok")


def block(network: str, cidr: int, **more: Any) -> Json:
    return {
        "id": network,
        "network": network,
        "cidr": cidr,
        "address_family": 4,
        "public": True,
        "type": "public_ipv4",
        **more,
    }


@pytest.mark.parametrize(
    ("blocks", "level", "told"),
    [
        ([block("198.51.100.8", 29)], "ok", "no machine, project or address"),
        ([], "warning", "is in no block of the project"),
        ([{"id": "waits", "type": "public_ipv4", "state": "pending"}], "warning", "is in no block of the project"),
        ([block("198.51.100.8", 30, management=True)], "error", "belongs to a machine's own subnet"),
        (
            [
                block(
                    "198.51.100.8",
                    29,
                    assignments=[{"network": "198.51.100.9", "cidr": 32, "assigned_to": {"href": "/d/x"}}],
                )
            ],
            "error",
            "is assigned to device x",
        ),
    ],
)
def test_the_apis_address(blocks: list[Json], level: str, told: str) -> None:
    api = Api({f"GET /projects/{PROJECT}/ips": {"ip_addresses": blocks}})
    assert told in the(report(api, apiAddress="198.51.100.9"), "names", level)


# --- addresses


def test_networks_that_overlap() -> None:
    inside = {"pods": "10.128.0.0/14", "services": "172.30.0.0/16"}
    assert the(report(Api(), networks=inside), "addresses", "ok").startswith("no networks overlap")
    private = block("10.130.4.0", 25, public=False, type="private_ipv4")
    api = Api({f"GET /projects/{PROJECT}/ips": {"ip_addresses": [private]}})
    orders = {"networks": [{"name": "storage", "subnet": "172.30.8.0/24"}]}
    told = [finding.what for finding in of(report(api, networks=inside, orders=orders), "addresses")]
    assert told == [
        "services (172.30.0.0/16) overlaps VLAN storage (172.30.8.0/24)",
        "pods (10.128.0.0/14) overlaps the project's private addresses (10.130.4.0/25)",
    ]


@pytest.mark.parametrize(
    ("facilities", "reserved", "level", "told"),
    [
        (["da11", "sl1"], True, "ok", ""),
        (["da11", "ny5"], True, "error", "da11 is in da, ny5 is in ny"),
        (["da11", "ny5"], False, "ok", ""),
    ],
    ids=["of one metro, whatever it is called", "of two metros", "nothing is reserved"],
)
def test_addresses_are_reserved_where_all_machines_are(
    facilities: list[str], reserved: bool, level: str, told: str
) -> None:
    metros = {"da11": "da", "sl1": "da", "ny5": "ny"}
    listed = [{"code": code, "id": f"facility-{code}", "metro": {"code": metro}} for code, metro in metros.items()]
    orders = {"metro": None, "facilities": facilities, "addresses": [{"name": "a", "quantity": 1}] if reserved else []}
    found = report(Api({"GET /facilities": {"facilities": listed}}), orders=orders)
    assert told in the(found, "addresses", level)


def test_vlans_of_others_and_a_quota_that_is_used_up() -> None:
    vlans = [
        {"vxlan": 1000, "metro_code": "da", "description": "somebody's"},
        {"vxlan": 1001, "metro_code": "da", "description": "metal-ipi:t:c.facility.test:storage"},
        {"vxlan": 1002, "metro_code": "ny", "description": "somebody's"},
    ]
    blocks = [block("198.51.100.8", 29), {"id": "waits", "type": "public_ipv4", "state": "pending"}]
    answers: dict[str, Any] = {
        f"GET /projects/{PROJECT}/virtual-networks": {"virtual_networks": vlans},
        f"GET /projects/{PROJECT}/ips": {"ip_addresses": blocks},
    }
    api = Api(answers)
    networks = [{"name": f"n{number}", "vlan": number} for number in (1000, 1001, 1002)]
    orders = {"networks": networks, "addresses": [{"name": "api", "quantity": 1}]}
    told = [(each.level, each.what) for each in of(report(api, orders=orders), "addresses")]
    assert told == [
        ("error", "the project has a VLAN 1000 in da that is not this stack's"),
        ("warning", "1 of the project's blocks wait for a review, so its quota is used up: api would wait as well"),
    ]


# --- clock, and what goes wrong with asking


@pytest.mark.parametrize(
    ("seconds", "level", "told"),
    [
        (3, "ok", "within"),
        (-90, "warning", "is 90 s ahead of"),
        (600, "error", "is 600 s behind that of the Metal API"),
    ],
)
def test_clocks(seconds: int, level: str, told: str) -> None:
    text = the(report(Api(skew=timedelta(seconds=seconds))), "clock", level)
    assert told in text.replace("89 s", "90 s").replace("599 s", "600 s").replace("91 s", "90 s")


def test_a_part_of_the_api_that_refuses_fails_its_check_alone() -> None:
    found = report(Api({"GET /plans": 418}))
    assert "refuses GET /plans: told to say 418" in the(found, "plans", "error")
    assert [finding.check for finding in found.errors] == ["plans"]


def test_an_error_that_is_excused_is_a_warning() -> None:
    found = report(Api({"POST /capacity/metros": enough({"da": 0})}), excused=["capacity"])
    assert found.errors == [] and [each.check for each in found.warnings] == ["capacity", "capacity"]
    assert found.warnings[0].what.endswith("(excused)")
