"""What machines must have: of a rack by their BMCs, of Metal by the plan, of a virtual machine by the settings."""

from __future__ import annotations

from typing import Any

import pytest

from metal_ipi.provider import sizes
from tests.provider.fake_bmc import UUID, FakeBmc
from tests.provider.metal_answers import PLANS, Api, plan
from tests.provider.preflight.asking import TAGS, of, rack, report, server, tells, the

pytestmark = pytest.mark.usefixtures("no_waiting")

LIVE = "from 4.19 on the node image is unpacked in memory (openshift/installer PR 10133: 9.4 GiB in half of the memory)"
DOCUMENTED = "the least that OpenShift's documentation asks for"
MEMORY = f"/redfish/v1/Systems/{UUID}/Memory"
LENT = server(live=True)


@pytest.mark.parametrize(
    ("role", "release", "live", "alone", "memory", "cpus"),
    [
        ("worker", "4.19.0", False, False, 8, 2),
        ("control-plane", "4.21.3", False, False, 16, 4),
        ("control-plane", "4.19.0", True, True, 19, 8),
        ("bootstrap", "4.18.9", True, False, 16, 4),
        ("bootstrap", "4.19.0", True, False, 19, 4),
        ("bootstrap", "4.20.0-okd-scos.5", True, False, 19, 4),
        ("worker", "4.21.3", True, False, 19, 4),
        ("bootstrap", "", True, False, 19, 4),
    ],
)
def test_what_machines_need(*, role: str, release: str, live: bool, alone: bool, memory: int, cpus: int) -> None:
    least = sizes.least(role, release, live=live, alone=alone)
    assert (least.memory_mib, least.cpus) == (memory * 1024, cpus)
    assert least.memory_mib <= sizes.LOCAL_VM_MIB, "the default of a virtual machine is enough"


# --- servers with BMCs


def test_a_server_that_is_too_small_to_bootstrap_is_refused(bmc: FakeBmc) -> None:
    tells(bmc, 16, LogicalProcessorCount=4)
    assert the(rack(bmc, LENT), "hardware", "error") == (
        f"server worker-0 (BMC {bmc.address}) has 16.0 GiB of memory: it needs 19 GiB, {LIVE}\n"
        "lend another server (platform.bootstrap.server), add memory, or use a virtual machine "
        "(platform.bootstrap.type local-vm)"
    )
    assert bmc.machine.resets == [] and bmc.bodies == [], "nothing was changed"
    # As a worker it is large enough, and for a release without a node image.
    found = rack(bmc, server())
    assert the(found, "hardware", "ok").startswith("enough memory: server worker-0")
    assert the(found, "bmcs", "ok").startswith("the BMCs of worker-0 answer")
    assert rack(bmc, LENT, version="4.18.2").errors == []


@pytest.mark.parametrize(
    ("gib", "processors", "servers", "memory", "cpus"),
    [
        # A single node bootstraps in its own memory.
        (16, {"LogicalProcessorCount": 4}, [server("control-plane-0", live=True)],
         f"has 16.0 GiB of memory: it needs 19 GiB, {LIVE}", "has 4 CPUs, and OpenShift's documentation asks for 8"),
        (12, {"CoreCount": 2}, [server("control-plane-0"), server()],
         f"has 12.0 GiB of memory: it needs 16 GiB, {DOCUMENTED}",
         "has 2 CPUs, and OpenShift's documentation asks for 4"),
    ],
)  # fmt: skip
def test_too_little_memory_is_an_error_and_few_processors_a_warning(
    bmc: FakeBmc, *, gib: int, processors: dict[str, Any], servers: list[dict[str, Any]], memory: str, cpus: str
) -> None:
    tells(bmc, gib, **processors)
    first, second = of(rack(bmc, *servers), "hardware")[:2]
    assert first.level == "error" and first.what.endswith(memory) and first.remedy.startswith("use another server")
    assert second.level == "warning" and second.what.endswith(cpus)


@pytest.mark.parametrize("told", [18.5, 17.9, "18"])
def test_gigabytes_that_were_taken_for_powers_of_ten_only_warn(bmc: FakeBmc, told: Any) -> None:
    tells(bmc, told)
    assert "some BMCs report 7 % too little" in the(rack(bmc, LENT), "hardware", "warning")


_ABSENT = {"Status": {"State": "Absent"}}


@pytest.mark.parametrize(
    ("told", "modules", "level"),
    [
        (0, [{"CapacityMiB": 16384}, {"CapacityMiB": 16384}, _ABSENT], "ok"),
        (0, [{"CapacityMiB": 8192}], "error"),
        (0, [{"CapacityMiB": 8192}, {}], "warning"),
        (0, None, "warning"),
        (None, None, "warning"),
        (0.25, None, "warning"),
        (True, None, "warning"),
    ],
)
def test_modules_are_counted_where_there_is_no_sum(bmc: FakeBmc, told: Any, modules: Any, level: str) -> None:
    tells(bmc, told)
    bmc.machine.extra["Memory"] = None if modules is None else {"@odata.id": MEMORY}
    bmc.documents = {f"{MEMORY}/D{number}": module for number, module in enumerate(modules or ())}
    bmc.documents[MEMORY] = {"Members": [{"@odata.id": path} for path in bmc.documents]}
    text = the(rack(bmc, LENT), "hardware", level)
    assert level != "warning" or ("does not report its memory: it needs 19 GiB" in text)
    assert level != "warning" or text.endswith("check its memory yourself")


@pytest.mark.parametrize(
    ("summary", "listed"),
    [(None, [each]) for each in ("nonsense", {}, {"@odata.id": f"{MEMORY}/none"}, None)] + [(None, 5), ({}, [])],
)  # fmt: skip
def test_a_list_of_modules_that_is_none_only_warns(bmc: FakeBmc, summary: Any, listed: Any) -> None:
    bmc.machine.extra = {"MemorySummary": summary, "ProcessorSummary": None, "Memory": {"@odata.id": MEMORY}}
    bmc.documents = {MEMORY: {"Members": listed}, f"{MEMORY}/none": {}}
    assert "does not report its memory" in the(rack(bmc, LENT), "hardware", "warning")


def test_what_is_excused_or_runs_already_is_only_warned_of(bmc: FakeBmc) -> None:
    tells(bmc, 4)
    found = rack(bmc, LENT, excused=["hardware"])
    assert found.errors == [] and "(excused)" in the(found, "hardware", "warning")
    the(rack(bmc, server(), again=True), "hardware", "error")
    bmc.machine.power = "On"
    assert "and it runs already" in the(rack(bmc, server(), again=True), "hardware", "warning")


@pytest.mark.parametrize(("again", "level"), [(False, "error"), (True, "warning")])
def test_a_bmc_that_does_not_let_us_in_is_told_once(bmc: FakeBmc, again: bool, level: str) -> None:
    bmc.password = "another"
    found = rack(bmc, server(), again=again)
    assert "worker-0: server worker-0" in the(found, "bmcs", level)
    assert of(found, "hardware") == [] == of(found, "secure-boot")


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
    (problem,) = report(Api({"GET /plans": {"plans": small}}), version="4.19.0").errors
    assert problem.what == f"bootstrap machines (plan c3.small.x86) has 8.0 GiB of memory: it needs 19 GiB, {LIVE}"
    assert problem.remedy == "choose a larger plan" and problem.check == "hardware"


@pytest.mark.parametrize("told", ["", "much", None])
def test_a_plan_that_does_not_tell_only_warns(told: Any) -> None:
    found = report(Api({"GET /plans": {"plans": [plan("c3.small.x86", 0.75, told), *PLANS[1:]]}}))
    warning, fine = of(found, "hardware")
    assert (warning.level, fine.level, found.errors) == ("warning", "ok", [])
    assert warning.remedy == "check the plan's memory yourself"


def test_plans_of_machines_that_are_there_do_not_matter() -> None:
    small = [plan("c3.small.x86", 0.75), plan("c3.medium.x86", 1.5, "4 GB"), PLANS[2]]
    api = Api({"GET /plans": {"plans": small}})
    there = [{"id": f"d{n}", "hostname": f"c-control-plane-{n}", "tags": TAGS} for n in range(3)]
    api.answers |= {path: {"devices": there} for path in api.answers if path.endswith("/devices")}
    assert [each.what.split(" has ")[0] for each in report(api).errors] == ["worker machines (plan c3.medium.x86)"]
