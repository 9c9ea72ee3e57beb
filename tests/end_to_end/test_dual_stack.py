"""A rack with IPv4 and IPv6: names, API, SSH and nodes have both, and nothing is left of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.end_to_end.conftest import SMALL, copies
from tests.end_to_end.project import Project

pytestmark = [pytest.mark.lab, pytest.mark.engine, pytest.mark.nightly]
_DOMAIN = "dualstack.facility.test"
_IPV6 = {
    **{f"dualstack-control-plane-{number}.{_DOMAIN}": f"2001:db8:64::6{number + 1}" for number in range(3)},
    f"dualstack-worker-0.{_DOMAIN}": "2001:db8:64::64",
}
# What names resolve to, who an address is, and what answers there.
_ASK = """
import json, socket, ssl, sys, urllib.request
def addresses(name):
    return sorted({found[4][0] for found in socket.getaddrinfo(name, 0, socket.AF_INET6)})
def ready(address):
    nobody = ssl._create_unverified_context()
    return urllib.request.urlopen(f"https://[{address}]:6443/readyz", context=nobody, timeout=10).read().decode()
def greets(address):
    with socket.create_connection((address, 22), 10) as connection:
        return connection.recv(4).decode()
domain, nodes = sys.argv[1], json.loads(sys.argv[2])
print(json.dumps({
    "names": {name: addresses(f"{name}.{domain}") for name in ("api", "api-int", "console.apps")},
    "nodes": {name: addresses(name) for name in nodes},
    "pointers": {socket.gethostbyaddr(address)[0]: address for address in nodes.values()},
    "ssh": [greets(address) for address in nodes.values()],
    "api": [ready(address) for name, address in nodes.items() if "control-plane" in name],
}))
"""


def _told(project: Project) -> dict[str, set[tuple[str, str]]]:
    return {
        node["name"]: {(check["name"], check["status"]) for check in node["checks"] if check["name"].startswith("ipv6")}
        for node in project.output()["nodes"]
    }


def test_a_cluster_of_both_families(tmp_path: Path) -> None:
    for project in copies(tmp_path, stack="dualstack", variant=SMALL):
        said = project.make("up").text
        assert "not tried at IPv6" not in said
        found = json.loads(project.facility("python3", "-c", _ASK, _DOMAIN, json.dumps(_IPV6)))
        *control_plane, worker = _IPV6.values()
        assert found["names"] == {"api": control_plane, "api-int": control_plane, "console.apps": [worker]}
        assert found["nodes"] == {name: [address] for name, address in _IPV6.items()}
        assert found["pointers"] == _IPV6
        assert (found["ssh"], found["api"]) == (["SSH-"] * 4, ["ok"] * 3)
        assert {node["name"]: node["ipv6"] for node in project.output()["nodes"]} == _IPV6
        checked = {("ipv6-address", "passed"), ("ipv6-route", "passed")}
        assert _told(project) == dict.fromkeys(_IPV6, checked)
        project.assert_unchanged("up")
        project.assert_down()
