"""Whatever forms a cluster in its live system gives back the memory of the node image; nothing else does."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import unquote

from components.boot import node_image
from stacks.program import main
from tests.mocks import Recorder, config_text, plain, run
from tests.stacks.answers import ANSWERS, settings, stack_file

PATH = "/etc/systemd/system/node-image-pull.service.d/10-metal-ipi.conf"


def _files(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for file in json.loads(text)["storage"]["files"]:
        head, _, data = file["contents"]["source"].partition(",")
        found[file["path"]] = base64.b64decode(data).decode() if head.endswith(";base64") else unquote(data)
    return found


def _user_data(inputs: dict[str, Any]) -> str | None:
    """Of a Device, or of the bootstrap machine: what it is created with."""
    parameters = inputs.get("parameters") or {}
    return inputs.get("userData") or (parameters.get("userdata") if isinstance(parameters, dict) else None)


def _rack() -> Recorder:
    recorder, tree = Recorder(ANSWERS), stack_file("rack7")
    boot = {**tree["boot"], "streamFile": "stacks/rhcos-4.21.json"}
    run(main, recorder, config_text({**tree, "boot": boot, "rehearsal": True}), stack="rack7", preview=True)
    return recorder


def test_the_last_step_removes_what_nobody_reads_any_more_and_fails_nothing() -> None:
    (file,) = node_image.files()
    assert (file.path, file.mode) == (PATH, 0o644)
    section, step = file.text.splitlines()
    assert section == "[Service]"
    # `-`: a step that fails does not fail the service, on which all of the bootstrap machine's services wait.
    assert step == "ExecStartPost=-/usr/bin/rm -rf /var/ostree-container/repo /var/ostreecontainer/repo"


def test_on_metal_the_bootstrap_machine_alone() -> None:
    recorder = Recorder(ANSWERS)
    run(main, recorder, settings(), stack="da11")
    told = {request.name: plain(request.inputs) for request in recorder.resources}
    machines = {name: text for name, inputs in told.items() if (text := _user_data(inputs)) is not None}
    assert len(machines) == 13, "of seven machines, and of six installations"
    assert [name for name, text in machines.items() if PATH in _files(text)] == ["da11-bootstrap"]


def test_on_a_rack_the_bootstrap_machine_alone() -> None:
    uploaded = plain(_rack().one("bootstrap-ignition").inputs["files"])
    assert PATH in _files(uploaded["bootstrap.ign"])


def test_what_a_server_s_installer_runs_in_forms_no_cluster() -> None:
    # That of a single node does: see test_in_place.
    uploaded = plain(_rack().one("control-plane-installers").inputs["files"])
    live = [text for name, text in uploaded.items() if name.endswith(".ign")]
    assert live and not [text for text in live if PATH in _files(text)]
