"""What machines must have: of a rack by their BMCs, of Metal by the plan, of a virtual machine by the settings."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from provider import configuration, sizes
from provider.orders import BOOTSTRAP, CONTROL_PLANE
from provider.preflight import running
from provider.preflight.findings import Report
from provider.preflight.plan import Plan
from tests.provider import fake_bmc
from tests.provider.fake_bmc import UUID, FakeBmc
from tests.provider.metal_answers import PLANS, Api, plan
from tests.provider.preflight.asking import TAGS, of, report, the

LIVE = "from 4.19 on the node image is unpacked in memory (openshift/installer PR 10133: 9.4 GiB in half of the memory)"
DOCUMENTED = "the least that OpenShift's documentation asks for"
SYSTEM = f"/redfish/v1/Systems/{UUID}"


@pytest.fixture
def bmc() -> Iterator[FakeBmc]:
    with fake_bmc.running() as server:
        yield server


def server(name: str = "worker-0", **more: Any) -> dict[str, Any]:
    return {"name": name, "role": name.rpartition("-")[0] or "bootstrap", "bmc": name, **more}


def rack(bmc: FakeBmc, *servers: dict[str, Any], again: bool = False, **more: Any) -> Report:
    """The report about a rack, whose servers all are behind one BMC."""
    bmcs = {str(each["bmc"]): bmc.settings(**each.pop("settings", {})) for each in servers if "bmc" in each}
    settings, problems = configuration.parse({"bmcs": bmcs})
    values = {"stack": "t", "domain": "c.facility.test", "architecture": "x86_64", "version": "4.19.0", **more}
    found = Plan.read({**values, "servers": list(servers)})
    assert problems == []
    return asyncio.run(running.run(found, settings, again=again))


def tells(bmc: FakeBmc, gib: Any, **processors: Any) -> None:
    bmc.machine.extra = {"MemorySummary": {"TotalSystemMemoryGiB": gib}, "ProcessorSummary": processors}


# --- the figures


@pytest.mark.parametrize(
    ("role", "release", "live", "memory", "cpus"),
    [
        ("worker", "4.19.0", False, 8, 2),
        ("control-plane", "4.21.3", False, 16, 4),
        ("bootstrap", "4.18.9", True, 16, 4),
        ("bootstrap", "4.19.0", True, 19, 4),
        ("bootstrap", "4.20.0-okd-scos.5", True, 19, 4),
        ("worker", "4.21.3", True, 19, 4),
        ("bootstrap", "", True, 19, 4),
    ],
)
def test_what_machines_need(role: str, release: str, live: bool, memory: int, cpus: int) -> None:
    least = sizes.least(role, release, live=live)
    assert (least.memory_mib, least.cpus) == (memory * 1024, cpus)


def test_a_single_node_needs_the_processors_of_one() -> None:
    assert sizes.least(CONTROL_PLANE, "4.19.0", live=True, alone=True).cpus == 8


def test_the_default_of_a_virtual_machine_is_enough() -> None:
    assert sizes.least(BOOTSTRAP, "4.21.0", live=True).memory_mib <= sizes.LOCAL_VM_MIB


# --- servers with BMCs


def test_a_server_that_is_too_small_to_bootstrap_is_refused(bmc: FakeBmc) -> None:
    tells(bmc, 16, LogicalProcessorCount=4)
    text = the(rack(bmc, server(live=True)), "hardware", "error")
    assert text == (
        f"server worker-0 (BMC {bmc.address}) has 16.0 GiB of memory: it needs 19 GiB, {LIVE}\n"
        "lend another server (platform.bootstrap.server), put in memory, or take a virtual machine "
        "(platform.bootstrap.type local-vm)"
    )
    assert bmc.machine.resets == [] and bmc.bodies == [], "nothing was changed"


def test_the_same_server_is_large_enough_as_a_worker(bmc: FakeBmc) -> None:
    tells(bmc, 16, LogicalProcessorCount=4)
    found = rack(bmc, server())
    assert the(found, "hardware", "ok").startswith("enough memory: server worker-0")
    assert the(found, "bmcs", "ok").startswith("the BMCs of worker-0 answer")


def test_a_release_without_a_node_image_needs_less(bmc: FakeBmc) -> None:
    tells(bmc, 16, LogicalProcessorCount=4)
    assert rack(bmc, server(live=True), version="4.18.2").errors == []


def test_a_single_node_bootstraps_in_its_own_memory(bmc: FakeBmc) -> None:
    tells(bmc, 16, LogicalProcessorCount=4)
    found = rack(bmc, server("control-plane-0", live=True))
    memory, processors = of(found, "hardware")
    assert memory.level == "error" and memory.what.endswith(LIVE) and memory.remedy.startswith("take another server")
    assert processors.level == "warning"
    assert processors.what.endswith("has 4 CPUs, and OpenShift's documentation asks for 8")


def test_the_documented_minimum_is_asked_of_all(bmc: FakeBmc) -> None:
    tells(bmc, 12, CoreCount=2)
    memory, processors = of(rack(bmc, server("control-plane-0"), server("worker-0")), "hardware")[:2]
    assert memory.level == "error" and memory.what.endswith(f"has 12.0 GiB of memory: it needs 16 GiB, {DOCUMENTED}")
    assert processors.level == "warning" and "has 2 CPUs" in processors.what


@pytest.mark.parametrize("told", [18.5, 17.9, "18"])
def test_gigabytes_that_were_taken_for_powers_of_ten_only_warn(bmc: FakeBmc, told: Any) -> None:
    tells(bmc, told)
    text = the(rack(bmc, server(live=True)), "hardware", "warning")
    assert "some BMCs report 7 % too little" in text


@pytest.mark.parametrize("summary", [None, {}, {"TotalSystemMemoryGiB": 0}, {"TotalSystemMemoryGiB": None},
                                     {"TotalSystemMemoryGiB": 0.25}])  # fmt: skip
def test_a_bmc_that_does_not_tell_only_warns(bmc: FakeBmc, summary: Any) -> None:
    bmc.machine.extra = {"MemorySummary": summary, "ProcessorSummary": None, "Memory": None}
    text = the(rack(bmc, server(live=True)), "hardware", "warning")
    assert "does not tell how much memory it has: it needs 19 GiB" in text and "look at its memory yourself" in text


@pytest.mark.parametrize(
    ("modules", "level"),
    [
        ([{"CapacityMiB": 16384}, {"CapacityMiB": 16384}, {"Status": {"State": "Absent"}}], "ok"),
        ([{"CapacityMiB": 8192}], "error"),
        ([{"CapacityMiB": 8192}, {}], "warning"),
    ],
    ids=["enough", "too little", "one does not tell"],
)
def test_modules_are_counted_where_there_is_no_sum(bmc: FakeBmc, modules: list[dict[str, Any]], level: str) -> None:
    bmc.machine.extra = {"MemorySummary": {"TotalSystemMemoryGiB": 0}, "Memory": {"@odata.id": f"{SYSTEM}/Memory"}}
    bmc.documents = {f"{SYSTEM}/Memory/D{number}": module for number, module in enumerate(modules)}
    bmc.documents[f"{SYSTEM}/Memory"] = {"Members": [{"@odata.id": path} for path in bmc.documents]}
    the(rack(bmc, server(live=True)), "hardware", level)


@pytest.mark.parametrize("listed", [["nonsense"], [{}], [{"@odata.id": f"{SYSTEM}/Memory/none"}], [None], 5])
def test_a_list_of_modules_that_is_none_only_warns(bmc: FakeBmc, listed: Any) -> None:
    bmc.machine.extra = {"MemorySummary": None, "Memory": {"@odata.id": f"{SYSTEM}/Memory"}}
    bmc.documents = {f"{SYSTEM}/Memory": {"Members": listed}, f"{SYSTEM}/Memory/none": {}}
    assert "does not tell how much memory" in the(rack(bmc, server(live=True)), "hardware", "warning")


def test_it_can_be_excused(bmc: FakeBmc) -> None:
    tells(bmc, 4)
    found = rack(bmc, server(live=True), excused=["hardware"])
    assert found.errors == [] and "(excused)" in the(found, "hardware", "warning")


def test_a_server_that_runs_already_is_only_warned_of(bmc: FakeBmc) -> None:
    tells(bmc, 4)
    bmc.machine.power = "On"
    assert "and it runs already" in the(rack(bmc, server(), again=True), "hardware", "warning")
    bmc.machine.power = "Off"
    the(rack(bmc, server(), again=True), "hardware", "error")


@pytest.mark.parametrize(("again", "level"), [(False, "error"), (True, "warning")])
def test_a_bmc_that_does_not_let_us_in_is_told_once(bmc: FakeBmc, again: bool, level: str) -> None:
    bmc.password = "another"
    found = rack(bmc, server(), again=again)
    assert "worker-0: server worker-0" in the(found, "bmcs", level) and of(found, "hardware") == []
    assert of(found, "secure-boot") == []


# --- the virtual machine


def test_a_virtual_machine_that_is_too_small(bmc: FakeBmc) -> None:
    tells(bmc, 64)
    vm = {"name": "bootstrap", "role": "bootstrap", "live": True, "memoryMib": 16384, "cpus": 2}
    memory, processors, fine = of(rack(bmc, server(), vm), "hardware")
    assert memory.what == f"platform.bootstrap (a virtual machine) has 16.0 GiB of memory: it needs 19 GiB, {LIVE}"
    assert memory.level == "error" and memory.remedy == "raise platform.bootstrap.memory (MiB), to 24576 for instance"
    assert (processors.level, fine.level) == ("warning", "ok")


# --- Equinix Metal


def test_a_plan_that_is_too_small_is_refused() -> None:
    small = [plan("c3.small.x86", 0.75, "8GB"), *PLANS[1:]]
    found = report(Api({"GET /plans": {"plans": small}}), version="4.19.0")
    (problem,) = found.errors
    assert problem.what == f"bootstrap machines (plan c3.small.x86) has 8.0 GiB of memory: it needs 19 GiB, {LIVE}"
    assert problem.remedy == "take a larger plan" and problem.check == "hardware"


@pytest.mark.parametrize("told", ["", "much", None])
def test_a_plan_that_does_not_tell_only_warns(told: Any) -> None:
    found = report(Api({"GET /plans": {"plans": [plan("c3.small.x86", 0.75, told), *PLANS[1:]]}}))
    warning, fine = of(found, "hardware")
    assert (warning.level, fine.level, found.errors) == ("warning", "ok", [])


def test_plans_of_machines_that_are_there_do_not_matter() -> None:
    small = [plan("c3.small.x86", 0.75), plan("c3.medium.x86", 1.5, "4 GB"), PLANS[2]]
    devices = [
        {"id": f"d{number}", "hostname": f"c-control-plane-{number}", "tags": TAGS, "plan": {"slug": "c3.medium.x86"}}
        for number in range(3)
    ]
    api = Api({"GET /plans": {"plans": small}})
    api.answers |= {path: {"devices": devices} for path in api.answers if path.endswith("/devices")}
    assert [each.what.split(" has ")[0] for each in report(api).errors] == ["worker machines (plan c3.medium.x86)"]
