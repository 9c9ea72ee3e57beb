"""A single node that bootstraps itself: what is declared, and what is not there."""

from __future__ import annotations

import base64
import json
from functools import cache
from typing import Any
from urllib.parse import unquote

from stacks.program import main
from tests import golden
from tests.mocks import Recorder, config_text, is_secret, plain, run
from tests.stacks.answers import ANSWERS, ASSETS, PUBLIC_KEY, stack_file

_STACK = "sno1"
_NODE = "sno1-control-plane-0"
_DOMAIN = "sno1.facility.test"
_UNITS = [{"name": name, "enabled": True} for name in ("bootkube.service", "install-to-disk.service")]
_BOOTSTRAP = json.dumps({"ignition": {"version": "3.2.0"}, "systemd": {"units": _UNITS}})


def _create(args: Any) -> dict[str, Any]:
    """The installer driver, asked for a single node's Ignition."""
    return {"stdout": json.dumps({**json.loads(ASSETS), "bootstrap": _BOOTSTRAP}), "stderr": ""}


@cache
def _seen() -> tuple[Recorder, dict[str, Any]]:
    tree = stack_file(_STACK)
    added: dict[str, Any] = {
        "platform": {**tree["platform"], "bmc": {"username": "ipi", "password": "hunter2"}},
        "boot": {**tree["boot"], "streamFile": "stacks/rhcos-4.21.json"},
        "dns": {**tree["dns"], "server": "192.0.2.53", "tsig": {"name": "k.", "secret": "c3dvcmRmaXNo"}},
        "artifacts": {
            "type": "ssh",
            "host": "boot.facility.test",
            "user": "metal-ipi",
            "hostKey": PUBLIC_KEY,
            "privateKey": "PRIVATE KEY",
            "baseUrl": "https://boot.facility.test/artifacts",
        },
    }
    recorder = Recorder({**ANSWERS, "command:local:Command": _create})
    return recorder, run(main, recorder, config_text({**tree, **added}), stack=_STACK)


def test_its_urns() -> None:
    recorder, outputs = _seen()
    urns = sorted(recorder.urn(args.name) for args in recorder.resources)
    golden.check(f"urns-{_STACK}.txt", "".join(f"{urn}\n" for urn in urns))
    assert outputs["bootstrap"] == {"present": False}
    assert [node["name"] for node in outputs["nodes"]] == [f"{_NODE}.{_DOMAIN}"]


def test_each_step_waits_for_the_one_before() -> None:
    recorder, _ = _seen()
    order = {
        f"{_NODE}-installation": {
            f"{_NODE}-server",
            "dns-api-records",
            "control-plane-installers",
            "bootstrap-ignition",
        },
        "control-plane-checks-reachable": {f"{_NODE}-installation"},
        "api-answers": {f"{_NODE}-check", "dns-api-records"},
        "bootstrap-complete": {"api-answers"},
        "nodes-ready": {"bootstrap-complete"},
        "install-complete": {"nodes-ready", "bootstrap-complete", f"{_NODE}-check", "machine-config-access"},
    }
    for later, earlier in order.items():
        assert earlier <= recorder.depends_on(later), later


def test_its_names_lead_to_its_own_address() -> None:
    recorder, _ = _seen()
    records = [
        record
        for name in ("dns-api-records", "dns-ingress-records")
        for record in plain(recorder.one(name).inputs["records"]).values()
    ]
    names = {record["name"]: record["values"] for record in records}
    wanted = [f"api.{_DOMAIN}", f"api-int.{_DOMAIN}", f"*.apps.{_DOMAIN}", f"{_NODE}.{_DOMAIN}"]
    assert names == {name: ["192.0.2.97"] for name in wanted}


def test_openshift_install_is_asked_for_a_single_node() -> None:
    recorder, _ = _seen()
    request = json.loads(plain(recorder.one("install-assets-create").inputs["stdin"]))
    assert request["inPlace"] is True
    assert "bootstrapInPlace:\n  installationDisk: " in request["installConfig"]


def test_its_installer_waits_for_bootkube_and_has_its_time() -> None:
    recorder, _ = _seen()
    inputs = recorder.one(f"{_NODE}-installation").inputs
    assert inputs["timeoutSeconds"] == 600 + 900
    assert plain(inputs["members"]) == [f"{_NODE}.{_DOMAIN}"]


def test_what_it_boots_and_what_its_disk_gets() -> None:
    recorder, _ = _seen()
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
    files = {file["path"]: _text(file["contents"]["source"]) for file in live["storage"]["files"]}
    assert "-/usr/bin/rm -rf" in files["/etc/systemd/system/node-image-pull.service.d/10-metal-ipi.conf"]
    pointer = json.loads(files["/etc/metal-ipi/pointer.ign"])
    assert pointer["ignition"]["config"] == {"merge": []}, "what it would fetch is there already"
    paths = {file["path"] for file in pointer["storage"]["files"]}
    assert {"/etc/hostname", "/etc/ssh/ssh_host_ed25519_key", "/etc/metal-ipi/installation.json"} <= paths
    own = next(f for f in pointer["storage"]["files"] if f["path"] == "/etc/ssh/ssh_host_ed25519_key")
    assert _text(own["contents"]["source"]) != files["/etc/ssh/ssh_host_ed25519_key"], "each system has its own"


def _text(url: str) -> str:
    head, _, data = url.partition(",")
    return base64.b64decode(data).decode() if head.endswith(";base64") else unquote(data)
