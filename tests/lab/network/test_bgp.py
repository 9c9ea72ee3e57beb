"""The facility's router, told by the Metal API, spoken to by machines with a BIRD of their own, used by clients."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lab import leftovers
from lab.network import bird, bird_control
from tests.lab.network.conftest import ROOT, Lab, made
from tests.lab.waiting import until

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(not bird.program(), reason="BIRD is not installed (package bird2)"),
    pytest.mark.skipif(not bird.signatures_work(), reason="this kernel has no TCP MD5 signatures"),
]

PASSWORD = "Secret1234"
ORDER = {
    "plan": "c3.small.x86",
    "metro": "lb",
    "operating_system": "custom_ipxe",
    "ipxe_script_url": "http://boot.facility.test/none",
}
CALL = """
import json, ssl, sys, urllib.request
token, ca, method, path, body = sys.argv[1:]
request = urllib.request.Request("https://api.equinix.com" + path, method=method, data=body.encode() or None)
request.add_header("X-Auth-Token", token)
with urllib.request.urlopen(request, context=ssl.create_default_context(cafile=ca), timeout=10) as answer:
    print(answer.read().decode())
"""
FETCH = """
import sys, urllib.request
try:
    print(urllib.request.urlopen(sys.argv[1], timeout=3).read().decode())
except OSError as error:
    print(getattr(error, "reason", error))
"""


class Facility:
    """A lab with its API and its router."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        assert lab.facts.api is not None
        self.api = lab.facts.api
        self.project = f"/metal/v1/projects/{self.api.project_id}"

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """A request to the API, which must succeed."""
        text = "" if body is None else json.dumps(body)
        answer = self.lab.python(CALL, self.api.token, self.lab.facts.ca_path, method, path, text)
        return json.loads(answer) if answer.strip() else None

    def device(self, hostname: str) -> tuple[str, dict[str, Any]]:
        """A device with a BGP session: its path, and its session. It never boots: tests play the machine."""
        fault = {"kind": "never_boots", "match": {"hostname": hostname}, "count": None}
        self.call("POST", "/lab/faults", fault)
        device = self.call("POST", f"{self.project}/devices", {**ORDER, "hostname": hostname})
        session = self.call("POST", f"{device['href']}/bgp/sessions", {"address_family": "ipv4"})
        return device["href"], session

    @contextmanager
    def machine(self, device: str, announce: list[str], **changes: Any) -> Generator[subprocess.Popen[str], None, None]:
        """The machine behind a device, configured with what the API says of its neighbors."""
        (neighbor,) = self.call("GET", f"{device}/bgp/neighbors")["bgp_neighbors"]
        wanted = {
            "address": neighbor["customer_ip"],
            "asn": neighbor["customer_as"],
            "password": neighbor["md5_password"],
            "announce": announce,
            "body": device,
            **changes,
        }
        command = self.lab.command(sys.executable, "-m", "tests.lab.network.machine", json.dumps(wanted))
        pipe = subprocess.PIPE
        with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as it:
            assert it.stdout is not None
            assert it.stdout.readline() == "ready\n"
            try:
                yield it
            finally:
                it.kill()

    def held(self) -> dict[str, Any]:
        """What the router holds, by its own command."""
        command = [sys.executable, "-m", "lab", "routes", "--state", str(self.lab.layout.state)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=10)
        return json.loads(done.stdout)

    def ways(self) -> dict[str, list[str]]:
        """Prefix → machines."""
        found = bird_control.document(self.lab.layout)
        assert found is not None
        return {route["prefix"]: route["via"] for route in found["routes"]}

    def refusals(self) -> int:
        """How often the router has refused a machine: its signed segments, or its number."""
        names, values = (
            line.split()
            for line in self.lab.run("cat", "/proc/net/netstat").stdout.splitlines()
            if line.startswith("TcpExt:")
        )
        signed = [int(value) for name, value in zip(names, values, strict=True) if name.startswith("TCPMD5")]
        assert len(signed) == 3, names
        return sum(signed) + self.lab.layout.log("bgp").read_text().count("Bad peer AS")

    def fetch(self, address: str) -> str:
        """What a client outside of the facility gets from there."""
        return self.lab.python_of_a_client(FETCH, f"http://{address}/").strip()


@pytest.fixture(scope="module")
def facility(tmp_path_factory: pytest.TempPathFactory) -> Generator[Facility, None, None]:
    for lab in made(tmp_path_factory.mktemp("bgp") / "lab"):
        lab.up(("dns", "boot", "metal-api"), openshift=Path("/bin/true"))
        it = Facility(lab)
        it.call("POST", f"{it.project}/bgp-configs", {"deployment_type": "local", "asn": 65000, "md5": PASSWORD})
        yield it


def test_from_reservation_to_client_and_back(facility: Facility) -> None:
    block = facility.call("POST", f"{facility.project}/ips", {"type": "public_ipv4", "quantity": 2, "metro": "lb"})
    device, session = facility.device("one")
    address, other = block["network"], "192.0.2.190"
    assert "No route to host" in facility.fetch(address)
    with facility.machine(device, [f"{address}/32", f"{other}/32"]):
        until(lambda: facility.call("GET", session["href"])["status"] == "up,up", 8)
        until(lambda: f"{address}/32" in facility.ways(), 2)
        assert facility.fetch(address) == device
        assert "No route to host" in facility.fetch(other)
        (private,) = facility.ways()[f"{address}/32"]
        assert facility.held() == {
            "sessions": {session["id"]: {"states": ["up", "up"], "learned": [f"{address}/32"]}},
            "routes": [{"prefix": f"{address}/32", "via": [private], "sessions": [session["id"]]}],
        }
        assert facility.call("GET", session["href"])["learned_routes"] == [f"{address}/32"]
        assert f"route {address}/32 via {private}" in leftovers.held(facility.lab.layout)
        facility.call("DELETE", session["href"])
        until(lambda: facility.held() == {"sessions": {}, "routes": []}, 1)
        assert "No route to host" in facility.fetch(address)
    facility.call("DELETE", block["href"])
    facility.call("DELETE", device)


def test_machines_share_an_address_and_a_lost_one_is_noticed(facility: Facility) -> None:
    block = facility.call("POST", f"{facility.project}/ips", {"type": "public_ipv4", "quantity": 1, "metro": "lb"})
    address, prefix = block["network"], f"{block['network']}/32"
    (one, _), (two, _) = facility.device("two"), facility.device("three")
    with facility.machine(one, [prefix]) as first, facility.machine(two, [prefix]):
        until(lambda: len(facility.ways().get(prefix, [])) == 2, 8)
        kernel = json.loads(facility.lab.run("ip", "-json", "route", "show", prefix).stdout)
        assert sorted(way["gateway"] for way in kernel[0]["nexthops"]) == facility.ways()[prefix]
        assert facility.fetch(address) in (one, two)
        first.kill()
        assert until(lambda: len(facility.ways()[prefix]) == 1, 5) < 5
        assert facility.fetch(address) == two
        device = facility.call("DELETE", two)
        assert device is None
        until(lambda: facility.ways() == {}, 5)
    facility.call("DELETE", one)
    facility.call("DELETE", block["href"])


@pytest.mark.parametrize("change", [{"password": "Another1234"}, {"password": None}, {"asn": 65001}])
def test_who_is_not_the_machine_gets_no_session(facility: Facility, change: dict[str, Any]) -> None:
    device, session = facility.device("wrong")
    before = facility.refusals()
    with facility.machine(device, ["192.0.2.150/32"], **change):
        until(lambda: facility.refusals() >= before + 3, 15)
        assert facility.call("GET", session["href"])["status"] == "down,down"
        assert facility.ways() == {}
    facility.call("DELETE", device)


def test_too_many_prefixes_end_the_session(facility: Facility) -> None:
    block = facility.call("POST", f"{facility.project}/ips", {"type": "public_ipv4", "quantity": 16, "metro": "lb"})
    device, session = facility.device("greedy")
    first = int(block["network"].rsplit(".", 1)[1])
    prefixes = [f"192.0.2.{number}/32" for number in range(first, first + 11)]
    with facility.machine(device, prefixes[:10]):
        until(lambda: len(facility.ways()) == 10, 8)
        until(lambda: facility.call("GET", session["href"])["status"] == "up,up", 5)
    until(lambda: facility.ways() == {}, 5)
    with facility.machine(device, prefixes):
        log = facility.lab.layout.log("bgp")
        until(lambda: "limit" in log.read_text(), 8)
        until(lambda: facility.ways() == {}, 2)
    facility.call("DELETE", device)
    facility.call("DELETE", block["href"])


def test_a_client_leaves_nothing(facility: Facility) -> None:
    client = (sys.executable, "-m", "lab.network.client", "--")
    seen = json.loads(facility.lab.run(*client, "ip", "-json", "address", "show", "dev", "eth0").stdout)
    assert [entry["local"] for entry in seen[0]["addr_info"] if entry["family"] == "inet"] == ["192.0.2.193"]
    until(lambda: "client" not in facility.lab.run("ip", "-brief", "link").stdout, 5)
    assert facility.lab.run(*client, "sh", "-c", "exit 7").returncode == 7
    for command, reason in (("/nonexistent", "/nonexistent: No such file"), ("", "no command")):
        done = facility.lab.run(*client, *([command] if command else []))
        assert (done.returncode, reason in done.stderr) == (126, True)
        assert "Traceback" not in done.stderr


def test_the_routes_of_a_lab_that_does_not_run_are_an_error(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "lab", "routes", "--state", str(tmp_path / "none")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=10)
    assert (done.returncode, done.stdout) == (1, "")
    assert "there is no lab in" in done.stderr
