"""kube-vip on a machine: what is rendered, and what its script does, against stand-ins for curl and ip."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from components.endpoints.kube_vip import UNIT, KubeVip, files, unit
from tests.golden import check

VIP = KubeVip(
    address="192.0.2.10",
    image="ghcr.io/kube-vip/kube-vip:v0.9.2",
    hold_seconds=3,
    keepalive_seconds=1,
    domain="lab.facility.test",
    ca_pem="CA\n",
    metadata_url="https://metadata.packet.net/metadata",
)
_NEIGHBOUR: dict[str, Any] = {
    "address_family": 4,
    "customer_as": 65000,
    "customer_ip": "203.0.113.5",
    "md5_enabled": True,
    "md5_password": "swordfish",
    "multihop": True,
    "peer_as": 65530,
    "peer_ips": ["169.254.255.1", "169.254.255.2"],
}
METADATA: dict[str, Any] = {
    "network": {
        "addresses": [
            {"address": "198.51.100.5", "cidr": 31, "gateway": "198.51.100.4", "public": True, "address_family": 4},
            {"address": "203.0.113.5", "cidr": 31, "gateway": "203.0.113.4", "public": False, "address_family": 4},
        ]
    },
    "bgp_neighbors": [_NEIGHBOUR, {**_NEIGHBOUR, "address_family": 6, "customer_ip": "2001:db8::5"}],
}
_CURL = """#!/bin/sh
for last; do :; done
echo "$*" >>"$STATE/curl.log"
case $last in
"https://metadata.packet.net/metadata")
    while [ "$1" != -o ]; do shift; done
    cp "$STATE/metadata" "$2" ;;
*) port=${last#https://api-int.lab.facility.test:}
   [ ! -e "$STATE/refused" ] || exit 7
   [ -e "$STATE/${port%%/*}" ] ;;
esac
"""
_IP = """#!/bin/sh
case $* in
-j*) echo '[{"dst":"default","dev":"enp1s0"}]' && exit ;;
*" show to "*) echo "1: lo inet 192.0.2.10/32 scope global lo" && exit ;;
esac
echo "$*" >>"$STATE/ip.log"
"""
_PODMAN = """#!/bin/sh
echo "$*" >>"$STATE/podman.log"
exit 1
"""


class Machine:
    """A directory that stands for a machine, and the script running on it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.state = root / "state"
        self.manifest = root / "etc/kubernetes/manifests/metal-ipi-kube-vip.json"
        self.state.mkdir()
        programs = root / "bin"
        programs.mkdir()
        for name, text in (
            ("curl", _CURL),
            ("ip", _IP),
            ("podman", _PODMAN),
            ("sleep", "#!/bin/sh\nexec /bin/sleep 0.05\n"),
        ):
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        self.give(VIP)
        self.tell(METADATA)
        self.process: subprocess.Popen[str] | None = None

    def give(self, vip: KubeVip) -> None:
        for file in files(vip):
            path = self.root / file.path.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(file.text)

    def environment(self) -> dict[str, str]:
        return {
            "PATH": f"{self.root / 'bin'}:{os.environ['PATH']}",
            "STATE": str(self.state),
            "METAL_IPI_ROOT": str(self.root),
        }

    def told(self, word: str) -> str:
        """What the script answers."""
        script = self.root / "usr/local/bin/metal-ipi-kube-vip"
        done = subprocess.run(
            ["bash", script, word], env=self.environment(), capture_output=True, text=True, check=True, timeout=20
        )
        return done.stdout

    def tell(self, metadata: dict[str, Any]) -> None:
        fresh = self.state / "fresh"
        fresh.write_text(json.dumps(metadata))
        fresh.rename(self.state / "metadata")

    def start(self) -> subprocess.Popen[str]:
        script = self.root / "usr/local/bin/metal-ipi-kube-vip"
        self.process = subprocess.Popen(["bash", script], env=self.environment(), stderr=subprocess.PIPE, text=True)
        return self.process

    def stop(self) -> str:
        """What it has said."""
        assert self.process is not None
        process, self.process = self.process, None
        process.terminate()
        return process.communicate()[1]

    def answer(self, port: int, yes: bool) -> None:
        (self.state / str(port)).touch() if yes else (self.state / str(port)).unlink()

    def log(self, name: str) -> list[str]:
        path = self.state / f"{name}.log"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    if not shutil.which("jq"):
        pytest.skip("jq is not installed (Debian package jq)")
    machine = Machine(tmp_path)
    yield machine
    if machine.process is not None:
        machine.process.kill()
        machine.process.communicate()


def eventually(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_what_a_machine_is_given() -> None:
    text = "".join(f"--- {file.path} {file.mode:o}\n{file.text}\n" for file in files(VIP) if "/bin/" not in file.path)
    check("kube-vip-files.txt", f"{text}--- {UNIT}\n{unit().text}")


def test_the_image_is_fetched_before_it_is_needed_and_nothing_waits_for_it(machine: Machine) -> None:
    keys = machine.root / "var/lib/kubelet/config.json"
    keys.parent.mkdir(parents=True)
    keys.write_text("{}")
    machine.start()
    eventually(lambda: machine.log("podman") == [f"pull --quiet --authfile {keys} {VIP.image}"])
    assert not machine.manifest.exists()
    machine.answer(6443, True)
    machine.answer(22623, True)
    eventually(machine.manifest.exists)


def test_the_address_is_announced_while_both_servers_answer(machine: Machine) -> None:
    machine.start()
    eventually(lambda: len(machine.log("curl")) > 3)
    assert not machine.manifest.exists()
    machine.answer(6443, True)
    seen = len(machine.log("curl"))
    eventually(lambda: len(machine.log("curl")) > seen + 4)
    assert not machine.manifest.exists(), "the machine config server does not answer yet"
    machine.answer(22623, True)
    eventually(machine.manifest.exists)
    machine.answer(22623, False)
    eventually(lambda: not machine.manifest.exists())
    eventually(lambda: "address delete 192.0.2.10/32 dev lo" in machine.log("ip"))
    machine.answer(22623, True)
    eventually(machine.manifest.exists)
    assert machine.process is not None
    machine.process.send_signal(signal.SIGTERM)
    assert machine.process.wait(10) == 0
    assert not machine.manifest.exists()


def test_servers_are_asked_here_and_have_to_prove_who_they_are(machine: Machine) -> None:
    machine.answer(6443, True)
    machine.start()
    eventually(lambda: any("/healthz" in line for line in machine.log("curl")))
    ca = f"--cacert {machine.root}/etc/metal-ipi/api-ca.pem"
    asked = [line for line in machine.log("curl") if "metadata" not in line]
    assert all(ca in line and ":127.0.0.1 https://api-int.lab.facility.test:" in line for line in asked)


def test_the_pod_speaks_to_the_machines_own_neighbours(machine: Machine) -> None:
    machine.answer(6443, True)
    machine.answer(22623, True)
    machine.start()
    eventually(machine.manifest.exists)
    assert machine.manifest.stat().st_mode & 0o077 == 0, "it holds the password"
    pod = json.loads(machine.manifest.read_text())["spec"]
    (container,) = pod["containers"]
    environment = {item["name"]: item["value"] for item in container["env"]}
    assert container["image"] == VIP.image
    assert environment["bgp_peers"] == "169.254.255.1:65530:swordfish:true,169.254.255.2:65530:swordfish:true"
    assert (environment["bgp_as"], environment["bgp_sourceip"], environment["bgp_routerid"]) == (
        "65000",
        "203.0.113.5",
        "203.0.113.5",
    )
    assert (environment["address"], environment["bgp_hold_time"], environment["bgp_keepalive_interval"]) == (
        "192.0.2.10",
        "3",
        "1",
    )
    assert machine.log("ip")[:4] == [
        "address replace 203.0.113.5/31 dev enp1s0",
        "route replace 169.254.255.1/32 via 203.0.113.4 dev enp1s0 src 203.0.113.5",
        "address replace 203.0.113.5/31 dev enp1s0",
        "route replace 169.254.255.2/32 via 203.0.113.4 dev enp1s0 src 203.0.113.5",
    ]


def test_a_machine_waits_for_its_session(machine: Machine) -> None:
    machine.tell({**METADATA, "bgp_neighbors": []})
    machine.answer(6443, True)
    machine.answer(22623, True)
    machine.start()
    eventually(lambda: len(machine.log("curl")) > 3)
    assert not machine.manifest.exists()
    machine.tell(METADATA)
    eventually(machine.manifest.exists)


def test_a_session_without_password_has_none(machine: Machine) -> None:
    machine.tell({**METADATA, "bgp_neighbors": [{**_NEIGHBOUR, "md5_enabled": False, "md5_password": None}]})
    machine.answer(6443, True)
    machine.answer(22623, True)
    machine.start()
    eventually(machine.manifest.exists)
    assert '"169.254.255.1:65530::true,169.254.255.2:65530::true"' in machine.manifest.read_text()


def test_a_password_that_cannot_be_passed_on_is_told(machine: Machine) -> None:
    machine.tell({**METADATA, "bgp_neighbors": [{**_NEIGHBOUR, "md5_password": "a:b"}]})
    process = machine.start()
    _, err = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "holds one of ':,/'" in err and "a:b" not in err


def test_a_machine_without_a_way_to_its_peers_says_so(machine: Machine) -> None:
    (machine.root / "bin/ip").write_text("#!/bin/sh\n[ \"$1\" != -j ] || echo '[]'\n")
    process = machine.start()
    _, err = process.communicate(timeout=20)
    assert process.returncode == 1 and "there is no default route" in err


def test_what_an_earlier_run_left_is_withdrawn_first(machine: Machine) -> None:
    machine.manifest.parent.mkdir(parents=True)
    machine.manifest.write_text("{}")
    machine.tell({**METADATA, "bgp_neighbors": []})
    machine.start()
    eventually(lambda: not machine.manifest.exists())


def test_a_machine_where_nobody_listens_any_more_withdraws_at_once(machine: Machine) -> None:
    machine.answer(6443, True)
    machine.answer(22623, True)
    machine.start()
    eventually(machine.manifest.exists)
    assert machine.told("status").splitlines()[:2] == ["kube-vip runs", "1: lo inet 192.0.2.10/32 scope global lo"]
    (machine.state / "refused").touch()
    eventually(lambda: not machine.manifest.exists())
    assert "kube-vip runs" not in machine.told("status")
    assert "nobody listens any more: withdrawing 192.0.2.10" in machine.stop()


def test_with_arp_the_lease_is_asked_for_with_the_machines_own_credentials(machine: Machine) -> None:
    machine.give(replace(VIP, mode="arp"))
    (machine.state / "metadata").unlink()
    machine.answer(6443, True)
    machine.answer(22623, True)
    machine.start()
    eventually(lambda: len(machine.log("curl")) > 6)
    assert not machine.manifest.exists(), "there are no credentials yet"
    kubeconfig = machine.root / "opt/openshift/auth/kubeconfig"
    kubeconfig.parent.mkdir(parents=True)
    kubeconfig.touch()
    eventually(machine.manifest.exists)
    pod = json.loads(machine.manifest.read_text())["spec"]
    told = {each["name"]: each["value"] for each in pod["containers"][0]["env"]}
    assert told["vip_arp"] == told["vip_leaderelection"] == "true" and told["bgp_enable"] == "false"
    assert (told["vip_interface"], told["address"]) == ("enp1s0", "192.0.2.10")
    assert told["kubernetes_addr"] == "https://localhost:6443"
    assert pod["volumes"][0]["hostPath"]["path"] == "/opt/openshift/auth/kubeconfig"
    assert machine.stop().count("localhost.kubeconfig /opt/openshift/auth/kubeconfig is here; interface enp1s0") == 1
    assert "address delete 192.0.2.10/32 dev enp1s0" in machine.log("ip")


def test_with_arp_the_interface_may_be_named() -> None:
    environment = next(
        file.text for file in files(replace(VIP, mode="arp", interface="bond0.10")) if ".env" in file.path
    )
    assert "MODE='arp'\nINTERFACE='bond0.10'\n" in environment
