"""What tests of the hub need."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from lab.hub import control, images, programs
from lab.network import plan
from lab.setup import HUB, install, missing
from tests.lab.network.conftest import Lab

FOUND = programs.find()
"""What a hub is made of, or why there is none here."""

_ASK = """
import json, ssl, sys, httpx
directory, method, address, body = sys.argv[1:]
context = ssl.create_default_context(cafile=directory + "/pki/ca.crt")
context.load_cert_chain(directory + "/pki/admin.crt", directory + "/pki/admin.key")
headers = {"Content-Type": "application/json"}
with httpx.Client(verify=context, trust_env=False, headers=headers) as client:
    answer = client.request(method, address, content=body or None)
print(json.dumps([answer.status_code, answer.json()]))
"""


def ask(lab: Lab, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    """What the hub's API answers its administrator, who is in the lab."""
    told = lab.python(
        _ASK, str(lab.layout.hub), method, f"https://{plan.HUB}:{plan.HUB_PORT}{path}", json.dumps(body) if body else ""
    )
    status, document = json.loads(told)
    assert status < 300, document
    return document


def set_up(report: Callable[[str], None]) -> None:
    """Install and build what a hub is made of where one can run; elsewhere its tests are listed skips."""
    if programs.refusal() is None:
        if absent := missing(HUB):
            install(absent, report)
        control.setup(report)


def pod(*command: str, name: str) -> dict[str, Any]:
    """A template of pods that run a command of busybox's."""
    container = {"name": name, "image": images.PAUSE.reference, "command": ["/usr/bin/busybox", *command]}
    return {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}


def logs(lab: Lab, name: str) -> str:
    """What a pod printed, from the kubelet's own files."""
    found = sorted((lab.layout.hub / "logs" / "pods").glob(f"default_{name}*/*/*.log"))
    return "".join(path.read_text() for path in found)
