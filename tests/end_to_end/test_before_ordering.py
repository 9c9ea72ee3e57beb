"""Before anything is ordered, and after everything should be gone: reports, costs and the sweep, in a lab without a
cluster.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from typing import Any

import pytest

from tests.end_to_end.conftest import SMALL, copies
from tests.end_to_end.project import Project

pytestmark = [pytest.mark.lab, pytest.mark.engine]

MARKS = ["metal-ipi", "metal-ipi:stack=ci", "metal-ipi:cluster=ci.facility.test"]
LABEL = "metal-ipi:ci:ci.facility.test"
KINDS = ("devices", "metal-gateways", "ips", "virtual-networks", "ssh-keys")
"""In the order in which they can be deleted."""
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI"


@pytest.fixture(scope="module")
def facility(tmp_path_factory: pytest.TempPathFactory) -> Generator[Project, None, None]:
    """A lab that is up, and no stack."""
    for project in copies(tmp_path_factory.mktemp("facility"), variant=SMALL):
        project.start_lab()
        yield project


def call(project: Project, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    said = project.inside("call", method, path, *([json.dumps(body)] if body is not None else []))
    return json.loads(said) if said.strip() else {}


def calls(project: Project, *asked: tuple[str, str, dict[str, Any] | None]) -> list[dict[str, Any]]:
    """Several calls at once: method, path, body."""
    return json.loads(project.inside("calls", stdin=json.dumps(asked)))


def project_id(project: Project) -> str:
    return str(json.loads((project.layout.state / "facts.json").read_text())["api"]["project_id"])


def order_of(hostname: str, *tags: str) -> dict[str, Any]:
    return {
        "hostname": hostname, "metro": "lb", "plan": "c3.small.x86", "operating_system": "custom_ipxe",
        "userdata": "#!ipxe\nshell", "tags": list(tags),
    }  # fmt: skip


def order(project: Project, hostname: str, *tags: str) -> str:
    return str(call(project, "POST", f"/projects/{project_id(project)}/devices", order_of(hostname, *tags))["id"])


def sorted_out(told: str) -> dict[str, list[str]]:
    """Level → the checks that said it."""
    found = re.findall(r"^(error|warning|ok) +([a-z-]+):", told, re.MULTILINE)
    return {level: sorted({check for each, check in found if each == level}) for level in ("error", "warning", "ok")}


@pytest.mark.nightly
def test_a_good_stack_gets_a_report_and_an_api_that_stumbles_is_asked_again(facility: Project) -> None:
    kinds: tuple[dict[str, Any], ...] = (
        {"kind": "status", "status": 429, "headers": {"Retry-After": "1"}},
        {"kind": "status", "status": 500},
        {"kind": "reset"},
        {"kind": "half_body"},
    )
    paths = ("/ssh-keys$", "/devices$", "/plans$", "/capacity/metros$")
    facility.faults(*({**kind, "match": {"path": path}, "count": 1} for path in paths for kind in kinds))
    try:
        done = facility.make("preflight")
        assert facility.hits() == [1] * (len(paths) * len(kinds)), "every fault struck"
    finally:
        facility.faults()
    assert sorted_out(done.out) == {
        "error": [],
        "warning": [],
        "ok": [
            "addresses", "artifact-host", "boot-files", "capacity", "clock", "dns", "hardware", "installer", "limits",
            "names", "plans", "runs", "stream", "token",
        ],
    }, done.text  # fmt: skip
    assert done.out.splitlines()[-1] == "14 checks, all is well"
    assert facility.devices() == {} and not facility.state.exists() and facility.uploaded() == []


def test_a_broken_stack_is_told_everything_at_once_and_nothing_is_ordered(facility: Project) -> None:
    foreign = order(facility, "lab-worker-0", "web")
    facility.inside("call", "PUT", "/lab/capacity", json.dumps({"metro": "lb", "plan": "c3.medium.x86", "servers": 2}))
    facility.configure(
        openshiftVersion="4.20.9",
        lab={"installer": "stand-in"},  # which is of another release
        baseDomain="elsewhere.test",
        dns={"zone": "elsewhere.test"},
        platform={"workerPlan": "c9.large.x86"},
        artifacts={"baseUrl": "https://boot.facility.test/nowhere"},
    )
    wrong = ["artifact-host", "capacity", "dns", "installer", "names", "plans"]
    try:
        up = facility.make("up", fails=True)
        told = re.sub(r"^ +", "", up.text, flags=re.MULTILINE)
        assert "nothing was ordered: " in told and sorted_out(told)["error"] == wrong, up.text
        assert "remedy:" in told and "Traceback" not in told
        assert facility.devices() == {"lab-worker-0": foreign}
        keys = call(facility, "GET", f"/projects/{project_id(facility)}/ssh-keys")["ssh_keys"]
        assert keys == []
    finally:
        facility.restore()
        facility.inside("call", "PUT", "/lab/capacity", json.dumps({"metro": "lb", "plan": "c3.medium.x86"}))
        call(facility, "DELETE", f"/devices/{foreign}")


@pytest.mark.nightly
def test_nothing_is_ordered_beside_what_another_checkout_ordered_and_that_is_left_alone(facility: Project) -> None:
    """The run before this one failed, so this one looks for what that left: it must not be found there either."""
    marks = ("metal-ipi:stack=lab", "metal-ipi:cluster=lab.facility.test", "metal-ipi:run=theirs")
    theirs = order(facility, "lab-worker-0", *marks)
    try:
        told = " ".join(facility.make("up", fails=True).text.split())
        assert f"project {project_id(facility)} has machine lab-worker-0 ({theirs})" in told, told
        assert "make sweep STACK=lab OF=lab" in told
        assert facility.devices() == {"lab-worker-0": theirs}
        assert call(facility, "GET", f"/projects/{project_id(facility)}/ssh-keys")["ssh_keys"] == []
    finally:
        call(facility, "DELETE", f"/devices/{theirs}")


@pytest.mark.nightly
def test_what_stacks_left_is_swept_and_nothing_else(facility: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project = f"/projects/{project_id(facility)}"
    made = calls(
        facility,
        *(
            ("POST", f"{project}/{kind}", body)
            for name, marks, label in (("ours", MARKS, LABEL), ("others", ["web"], "others"))
            for kind, body in (
                ("virtual-networks", {"metro": "lb", "description": f"{label}:storage"}),
                ("devices", order_of(name, *marks)),
                ("ips", {"type": "public_ipv4", "quantity": 1, "metro": "lb", "tags": marks}),
                ("ssh-keys", {"label": label, "key": KEY + ("A" if name == "ours" else "B") * 43}),
            )
        ),
    )
    gateways = [{"virtual_network_id": each["id"], "private_ipv4_subnet_size": 8} for each in made if "vxlan" in each]
    assert len(gateways) == 2
    calls(facility, *(("POST", f"{project}/metal-gateways", gateway) for gateway in gateways))
    before = left(facility)
    monkeypatch.setenv("AGE", "0m")

    listed = facility.make("sweep", fails=True)
    assert left(facility) == before, "it only lists"
    assert "5 resources of another checkout or of a lost state" in listed.text and "others" not in listed.out, (
        listed.text
    )

    monkeypatch.setenv("SWEEP", "delete")
    monkeypatch.setenv("CONFIRM", "yes")
    assert "name the stack with OF=<stack>" in facility.make("sweep", fails=True).text
    assert left(facility) == before
    monkeypatch.setenv("OF", "ci")
    monkeypatch.delenv("CONFIRM")
    assert "was not confirmed" in facility.make("sweep", fails=True).text
    monkeypatch.setenv("CONFIRM", "00000000")
    assert "was for another list" in facility.make("sweep", fails=True).text
    assert left(facility) == before

    monkeypatch.delenv("SWEEP")
    monkeypatch.delenv("CONFIRM")
    (code,) = set(re.findall(r"CONFIRM=([0-9a-f]{8})`", facility.make("sweep", fails=True).text))
    monkeypatch.setenv("SWEEP", "delete")
    monkeypatch.setenv("CONFIRM", code)
    assert "5 orphans deleted" in facility.make("sweep").text
    assert left(facility) == {
        "devices": ["others"], "virtual-networks": ["others:storage"], "ips": ["web"], "metal-gateways": [""],
        "ssh-keys": ["others"],
    }  # fmt: skip
    assert "no orphans" in facility.make("sweep").text
    found = others(facility)
    calls(facility, *(("DELETE", f"/{kind}/{item['id']}", None) for kind in KINDS for item in found[kind]))


def others(project: Project) -> dict[str, list[dict[str, Any]]]:
    """What the API lists by kind, without what comes and goes with a machine or a gateway."""
    paths = (f"/projects/{project_id(project)}/{kind}?per_page=100" for kind in KINDS)
    found: dict[str, list[dict[str, Any]]] = {}
    for kind, answer in zip(KINDS, calls(project, *(("GET", path, None) for path in paths)), strict=True):
        items: list[dict[str, Any]] = next(items for items in answer.values() if isinstance(items, list))
        found[kind] = [item for item in items if not item.get("management") and item.get("type") != "private_ipv4"]
    return found


def left(project: Project) -> dict[str, list[str]]:
    """What is in the project, as the API lists it, by what tells ours from others'."""
    found: dict[str, list[str]] = {}
    for listed, ours in others(project).items():
        names = [item.get("hostname") or item.get("label") or item.get("description") for item in ours]
        found[listed] = sorted(
            str(name or "".join(item.get("tags") or ())[:9]) for name, item in zip(names, ours, strict=True)
        )
    return found
