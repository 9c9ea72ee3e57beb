"""`*.apps` at an address of its own, announced over BGP by the real kube-vip on the worker that has a router.

Machines really boot, and BIRD is the facility's router. They are as few as possible: processors emulate all of them.
"""

from __future__ import annotations

import pytest

from tests.end_to_end import secrets
from tests.end_to_end.api_client import Facility, build_kube_vip
from tests.end_to_end.project import Project, await_
from tools.engine import ensure

pytestmark = [pytest.mark.lab, pytest.mark.engine, pytest.mark.libvirt, pytest.mark.nightly]

_LONGEST = 900.0
"""Seconds for an installation: three machines are emulated at once, in software."""
_ROUTER_IS_SILENT = (
    "add table inet silent; add chain inet silent input { type filter hook input priority 0; };"
    " add rule inet silent input tcp dport 1936 drop"
)
_ROUTER_ANSWERS = "delete table inet silent"


def test_routers_are_reached_at_an_address_that_their_machines_announce(emulated: Project) -> None:
    build_kube_vip()
    emulated.configure(controlPlane={"count": 1}, workers={"count": 1}, ingressAddress={"type": "kube-vip"})
    facility = Facility(emulated)
    emulated.start_lab()
    told = emulated.make("up", seconds=_LONGEST).text
    assert "gate ingress-answers: passed" in told
    output = emulated.output()
    ingress = output["ingress"]["address"]
    (worker,) = (node for node in output["nodes"] if node["role"] == "worker")

    def announced() -> dict[str, list[str]]:
        return {route["prefix"]: route["via"] for route in facility.routes()}

    def is_announced() -> bool:
        return announced() == {f"{ingress}/32": [worker["private_ipv4"]]}

    await_(is_announced, "the worker announces the address of ingress, and nobody else does", 60)
    assert emulated.http_status(f"https://{ingress}/") == "503", "the lab's router has no routes, and says so"

    key = secrets.private_key(emulated, str(ensure(print).path))

    def firewall(command: str) -> None:
        emulated.inside("ssh", f"sudo -n nft '{command}'", worker["private_ipv4"], stdin=key)

    firewall(_ROUTER_IS_SILENT)
    await_(lambda: not announced(), "the worker withdraws the address, as its router is not ready")
    assert emulated.http_status(f"https://{ingress}/") == "000"
    firewall(_ROUTER_ANSWERS)
    await_(is_announced, "the worker announces it again")

    emulated.assert_unchanged("up")
    facility.power("off", emulated.devices()[worker["name"].partition(".")[0]])
    await_(lambda: not announced(), "a worker without power announces nothing")
    emulated.assert_down()
