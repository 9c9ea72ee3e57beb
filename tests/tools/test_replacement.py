"""Which machines may be made anew."""

from __future__ import annotations

from typing import Any

import pytest

from tools import replacement
from tools.errors import StackError
from tools.state import DEVICE, EPHEMERAL, INSTALLATION, REDFISH_SERVER, REMOVAL, SPOT_REQUEST, Deployment

SPOT_MACHINE = "metal-ipi:index:SpotMachine"


def state(*names: str, formed: bool = True) -> Deployment:
    resources: list[dict[str, Any]] = [
        {"urn": f"urn:pulumi:t::metal-ipi::{DEVICE}::{name}-device", "type": DEVICE, "id": name} for name in names
    ]
    resources.append({"urn": f"urn:pulumi:t::metal-ipi::{EPHEMERAL}::c-bootstrap", "type": EPHEMERAL, "id": "lease"})
    if formed:
        resources.append({"urn": f"urn:pulumi:t::metal-ipi::{REMOVAL}::removed", "type": REMOVAL, "id": "r"})
    return Deployment(document={"deployment": {"resources": resources}})


MASTERS = tuple(f"c-control-plane-{n}" for n in range(3))


def test_workers_and_one_control_plane_machine() -> None:
    found = replacement.urns(state(*MASTERS, "c-worker-0", "c-worker-1"), "t", ["c-worker-0", "c-worker-1", MASTERS[2]])
    assert [urn.rpartition("::")[2] for urn in found] == [
        "c-worker-0-device", "c-worker-1-device", "c-control-plane-2-device",
    ]  # fmt: skip


def test_a_worker_from_the_spot_market_is_its_request() -> None:
    urn = f"urn:pulumi:t::metal-ipi::{SPOT_REQUEST}::c-worker-0-request"
    machine = f"urn:pulumi:t::metal-ipi::{SPOT_MACHINE}::c-worker-0-machine"
    resources = [
        {"urn": urn, "type": SPOT_REQUEST, "id": "r"},
        {"urn": machine, "type": SPOT_MACHINE, "id": "m", "outputs": {"machineId": "successor"}},
    ]
    found = Deployment(document={"deployment": {"resources": resources}})
    assert found.machines() == ["c-worker-0"] and found.ids() == {"r", "m", "successor"}
    assert replacement.urns(found, "t", ["c-worker-0"]) == [urn]


@pytest.mark.parametrize(
    ("members", "asked", "told"),
    [
        (MASTERS, MASTERS[:2], r"c-control-plane-0, c-control-plane-1 cannot .* in one run[\s\S]*without 1 of them"),
        (MASTERS[:1], MASTERS[:1], r"c-control-plane-0 cannot[\s\S]*a single node is installed anew"),
        (MASTERS, ("c-bootstrap",), r"c-bootstrap cannot be replaced any more[\s\S]*the cluster is formed"),
        (MASTERS, ("c-worker-7",), r"there is no machine c-worker-7[\s\S]*has: c-bootstrap, c-control-plane-0,"),
    ],
)
def test_what_must_stay(members: tuple[str, ...], asked: tuple[str, ...], told: str) -> None:
    with pytest.raises(StackError, match=told):
        replacement.urns(state(*members), "t", asked)


def test_before_the_cluster_is_formed_there_is_no_quorum_to_keep() -> None:
    assert len(replacement.urns(state(*MASTERS, formed=False), "t", [*MASTERS, "c-bootstrap"])) == 4


FILES = "urn:pulumi:t::metal-ipi::metal-ipi:index:Artifacts::workers-installers"
SECRET = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "v1:x"}


def installed(*names: str, machines: dict[str, str]) -> Deployment:
    """Of these names, all installed by files of one resource; `machines` are the types and names of what is there."""
    resources: list[dict[str, Any]] = [
        {
            "urn": f"urn:pulumi:t::metal-ipi::{INSTALLATION}::{name}-installation",
            "type": INSTALLATION,
            "inputs": {"hostname": name, "artifacts": [{"directory": SECRET, "files": [f"{name}.ign"]}]},
            "propertyDependencies": {"artifacts": [FILES], "live": ["urn:pulumi:t::metal-ipi::another"]},
        }
        for name in names
    ]
    hashes = {f"{name}.ign": f"sha512-{name}" for name in names}
    resources.append({"urn": FILES, "type": "metal-ipi:index:Artifacts", "outputs": {"urls": SECRET, "hashes": hashes}})
    resources += [
        {"urn": f"urn:pulumi:t::metal-ipi::{type_}::{name}", "type": type_} for name, type_ in machines.items()
    ]
    return Deployment(document={"version": 3, "deployment": {"resources": resources, "metadata": {}}})


def test_installed_machines_that_are_ordered_again_need_their_installers_again() -> None:
    known = {"c-worker-0-device": DEVICE, "c-worker-1-device": DEVICE, "c-worker-2-server": REDFISH_SERVER}
    state = installed("c-worker-0", "c-worker-1", "c-worker-2", "c-worker-3", machines=known)
    assert state.to_install([]) == {"c-worker-3"}, "the only one that is gone"
    again = state.to_install(["c-worker-1"])
    assert again == {"c-worker-1", "c-worker-3"}

    document = state.without_installers(again)

    found = Deployment(document=document)
    (files,) = [resource["outputs"] for resource in found.resources if resource["urn"] == FILES]
    assert files == {
        "urls": SECRET,
        "hashes": {"c-worker-0.ign": "sha512-c-worker-0", "c-worker-2.ign": "sha512-c-worker-2"},
    }
    assert [r for r in found.resources if r["urn"] != FILES] == [r for r in state.resources if r["urn"] != FILES]
    assert (document["version"], document["deployment"]["metadata"]) == (3, {})


def test_machines_that_run_from_memory_have_no_installers() -> None:
    assert state(*MASTERS).to_install(MASTERS) == frozenset()
