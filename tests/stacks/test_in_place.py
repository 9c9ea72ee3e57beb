"""A single node that bootstraps itself: what is declared, and what is not there."""

from __future__ import annotations

import json

import pytest

from tests import golden
from tests.mocks import Recorder, is_secret, plain
from tests.stacks.answers import ANSWERS, ASSETS, commands, declared, node_files

_STACK = "sno1"
_NODE = "sno1-control-plane-0"
_DOMAIN = "sno1.facility.test"
_UNITS = [{"name": name, "enabled": True} for name in ("bootkube.service", "install-to-disk.service")]
_BOOTSTRAP = json.dumps({"ignition": {"version": "3.2.0"}, "systemd": {"units": _UNITS}})
_MADE = json.dumps({**json.loads(ASSETS), "bootstrap": _BOOTSTRAP})
"""What the installer's driver makes of a single node."""


@pytest.fixture(scope="module")
def recorder() -> Recorder:
    """What the program declares; read only."""
    return declared(
        _STACK, {**ANSWERS, "command:local:Command": commands(_MADE)}, rehearsal=True,
        preview=True,
    )  # fmt: skip


def test_its_urns(recorder: Recorder) -> None:
    outputs = recorder.outputs
    urns = sorted(recorder.urn(args.name) for args in recorder.resources)
    golden.check(f"urns-{_STACK}.txt", "".join(f"{urn}\n" for urn in urns))
    assert outputs["bootstrap"] == {"present": False}
    assert [node["name"] for node in outputs["nodes"]] == [f"{_NODE}.{_DOMAIN}"]


def test_each_step_waits_for_the_one_before(recorder: Recorder) -> None:
    order = {
        f"{_NODE}-installation": {
            f"{_NODE}-server",
            "dns-api-records",
            "control-plane-installers",
            "bootstrap-ignition",
        },
        "control-plane-checks-reachable": {f"{_NODE}-installation"},
        "api-answers": {"control-plane-checks-0", "dns-api-records"},
        "bootstrap-complete": {"api-answers"},
        "nodes-ready": {"bootstrap-complete"},
        "install-complete": {"bootstrap-complete", "control-plane-checks-0", "machine-config-access"},
    }
    for later, earlier in order.items():
        assert earlier <= recorder.depends_on(later), later


def test_its_names_lead_to_its_own_address(recorder: Recorder) -> None:
    records = [
        record
        for name in ("dns-api-records", "dns-ingress-records")
        for record in plain(recorder.one(name).inputs["records"]).values()
    ]
    names = {record["name"]: record["values"] for record in records}
    wanted = [f"api.{_DOMAIN}", f"api-int.{_DOMAIN}", f"*.apps.{_DOMAIN}", f"{_NODE}.{_DOMAIN}"]
    assert names == {name: ["192.0.2.97"] for name in wanted}


def test_openshift_install_is_asked_for_a_single_node(recorder: Recorder) -> None:
    request = json.loads(plain(recorder.one("install-assets-create").inputs["stdin"]))
    assert request["inPlace"] is True
    assert "bootstrapInPlace:\n  installationDisk: " in request["installConfig"]


def test_its_installer_waits_for_bootkube_and_has_its_time(recorder: Recorder) -> None:
    inputs = recorder.inputs(f"{_NODE}-installation")
    assert inputs["timeoutSeconds"] == 600 + 900
    assert inputs["members"] == [f"{_NODE}.{_DOMAIN}"]


def test_what_it_boots_and_what_its_disk_gets(recorder: Recorder) -> None:
    uploaded = recorder.one("control-plane-installers").inputs["files"]
    assert is_secret(uploaded)
    live = json.loads(plain(uploaded)[f"{_NODE}.ign"])
    assert plain(recorder.one("bootstrap-ignition").inputs["files"]) == {"bootstrap.ign": _BOOTSTRAP}
    (merged,) = live["ignition"]["config"]["merge"]
    assert merged["source"] == "https://boot.test/x/bootstrap.ign" and merged["verification"]["hash"]
    places = plain(recorder.one(f"{_NODE}-installation").inputs["artifacts"])
    files = [[f"{_NODE}.ign"], [f"{_NODE}.img"], ["bootstrap.ign"]]
    assert [place["files"] for place in places] == files, "deleted when it is done"
    masked = [unit["name"] for unit in live["systemd"]["units"] if unit.get("mask")]
    assert masked == ["install-to-disk.service", "approve-csr.service"]
    running = {unit["name"] for unit in live["systemd"]["units"]} - set(masked)
    assert running == {"metal-ipi-machine-config-access.service", "metal-ipi-install.service"}
    files = node_files(plain(uploaded)[f"{_NODE}.ign"])
    assert "-/usr/bin/rm -rf" in files["/etc/systemd/system/node-image-pull.service.d/10-metal-ipi.conf"]
    pointer = json.loads(files["/etc/metal-ipi/pointer.ign"])
    assert pointer["ignition"]["config"] == {"merge": []}, "what it would fetch is there already"
    own = node_files(files["/etc/metal-ipi/pointer.ign"])
    assert {"/etc/hostname", "/etc/metal-ipi/installation.json"} <= own.keys()
    key = "/etc/ssh/ssh_host_ed25519_key"
    assert own[key] != files[key], "each system has its own"
