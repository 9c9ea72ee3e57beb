"""The rack's stack with the servers a test needs, and what a finished one looks like from outside."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lab.bmc import identity
from tests.end_to_end.project import RACK, Project

CONTROL_PLANE = 3
LOCAL_VM = {
    "type": "local-vm",
    "address": "192.0.2.126",
    "mac": "52:54:00:72:61:ff",
    "bridge": "facility0",
    "memory": 2048,
    "cpus": 1,
}
"""`platform.bootstrap`: a virtual machine of the lab's libvirt."""
LOCAL_VM_NAME = f"{RACK}-bootstrap.{RACK}.facility.test"
LOCAL_VM_SCRIPT = "mac-52-54-00-72-61-ff.ipxe"
_CHECKS = {"ignition", "platform-karg", "afterburn", "installation", "root-on-disk", "hostname", "os-version"}


def name(number: int) -> str:
    """What the stack calls the rack's `number`-th server."""
    role, place = ("control-plane", number) if number < CONTROL_PLANE else ("worker", number - CONTROL_PLANE)
    return f"{role}-{place}"


def servers(workers: int, own: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """`platform.servers` of three control plane machines and some workers; `own` is what each has beside."""
    return [
        {"name": name(number), "bmc": {"address": each.bmc.address}, "mac": each.mac, "address": each.address,
         **own.get(name(number), {})}
        for number, each in enumerate(identity.make(CONTROL_PLANE + workers, ""))
    ]  # fmt: skip


def assert_finished(rack: Project, workers: int = 1) -> None:
    """All nodes are what they should be, from their disks, and nothing that installed them is left."""
    nodes: list[dict[str, Any]] = rack.output()["nodes"]
    names = [f"{RACK}-{name(number)}" for number in range(CONTROL_PLANE + workers)]
    assert [node["name"].partition(".")[0] for node in nodes] == names
    for node in nodes:
        read = {check["name"]: check["status"] for check in node["checks"]}
        assert read.keys() >= _CHECKS
        assert {check for check, status in read.items() if status != "passed"} == {"afterburn"}, node
    there = rack.rack("servers").values()
    assert {server["power"] for server in there} == {"on"}
    assert {server["override"] for server in there} == {""}, there
    # The release is kept, each file with its claim. What led the bootstrap machine to its Ignition names what is gone.
    assert [name for name in rack.uploaded() if not re.match(r"[0-9a-f]{64}-", name)] == ["bootstrap.img"]
    assert not rack.deployment().get("pending_operations")
