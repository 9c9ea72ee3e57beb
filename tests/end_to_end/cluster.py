"""What a finished cluster of the lab stack looks like from outside, exactly."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from tests.end_to_end.project import Project

DOMAIN = "lab.facility.test"
CHECKS = {
    "ignition",
    "platform-karg",
    "karg console=ttyS0",
    "afterburn-public-ipv4",
    "afterburn-private-ipv4",
    "afterburn-hostname",
    "hostname",
    "os-version",
}


OWNERS = ("dns-api-records", "dns-ingress-records")
"""The resources that have marked values as theirs; the bootstrap machine's are withdrawn with its values."""


def names(workers: int = 2, masters: int = 3) -> dict[str, str]:
    """Role by short name."""
    return {f"lab-control-plane-{n}": "control-plane" for n in range(masters)} | {
        f"lab-worker-{n}": "worker" for n in range(workers)
    }


def records(nodes: list[dict[str, Any]]) -> Counter[str]:
    """The DNS records of a cluster with these nodes."""
    found: Counter[str] = Counter()
    takes_ingress = "worker" if any(node["role"] == "worker" for node in nodes) else "control-plane"
    for node in nodes:
        aliases = ["api", "api-int"] if node["role"] == "control-plane" else []
        aliases += ["*.apps"] if node["role"] == takes_ingress else []
        for name in (node["name"], *(f"{alias}.{DOMAIN}" for alias in aliases)):
            found[f"{name}. A {node['public_ipv4']}"] += 1
    return found


def assert_finished(project: Project, workers: int = 2, masters: int = 3) -> dict[str, Any]:
    """Everything that must be there is, once; nothing else is. Returns the stack's outputs."""
    output, holdings = project.output(), project.holdings()
    nodes: list[dict[str, Any]] = output["nodes"]
    expected = names(workers, masters)
    assert output["bootstrap"] == {"present": False}
    assert {node["name"]: node["role"] for node in nodes} == {f"{n}.{DOMAIN}": r for n, r in expected.items()}
    for node in nodes:
        assert {check["name"] for check in node["checks"]} == CHECKS, node
        assert {check["status"] for check in node["checks"]} == {"passed"}, node
    devices: list[dict[str, Any]] = holdings["devices"]
    assert sorted(device["hostname"] for device in devices) == sorted(expected)
    assert {device["state"] for device in devices} == {"active"}
    public = {d["hostname"]: next(a["address"] for a in d["ip_addresses"] if a["public"]) for d in devices}
    assert {node["name"].partition(".")[0]: node["public_ipv4"] for node in nodes} == public
    assert len(holdings["ssh_keys"]) == 1 and not holdings["projects"] and not holdings["reservations"]
    markers = [record for record in holdings["records"] if record.startswith(f"_metal-ipi.{DOMAIN}. TXT ")]
    assert len(markers) == len(OWNERS), markers
    assert all(any(owner in marker for marker in markers) for owner in OWNERS), markers
    assert Counter(holdings["records"]) - Counter(markers) == records(nodes)
    identities = [f"{name}.ign" for name in ("lab-bootstrap", *expected)]
    uploaded = [re.sub(r"\.[-\w]{43}\.ign$", ".ign", name) for name in project.uploaded()]
    shared = [name for name in uploaded if re.fullmatch(r"(workers|control-plane)\.[0-9a-f]{16}\.ign", name)]
    assert {name.partition(".")[0] for name in shared} == {"control-plane", *(("workers",) if workers else ())}
    assert sorted(name for name in uploaded if name not in shared) == sorted([*identities, "node.ipxe"])
    deployment = project.deployment()
    assert not deployment.get("pending_operations")
    known = {r["id"] for r in deployment["resources"] if r["type"].endswith(":Device")}
    assert known == {device["id"] for device in devices}
    return output
