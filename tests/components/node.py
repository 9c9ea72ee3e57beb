"""A node to run services on: a network namespace of its own, a disk that outlives a power cut, a /run that does not.

Real: ip, nft, jq, curl, TLS, addresses, routes and connections. Stand-ins: podman and systemctl; ovs-vsctl, for there
is no Open vSwitch here: interfaces that would be ports of its bridges are ports of a bridge named like its datapath.
"""

from __future__ import annotations

import base64
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

import pytest
import trustme

from metal_ipi.components.boot.ignition import NodeFile, NodeUnit

METADATA_PORT = 8099
METADATA_URL = f"http://127.0.0.1:{METADATA_PORT}/metadata"
DOMAIN = "lab.facility.test"
LOCAL_KUBECONFIG = (
    "etc/kubernetes/static-pod-resources/kube-apiserver-certs/secrets/node-kubeconfigs/localhost.kubeconfig"
)
OFTEN, SELDOM = "rounds=30 # of two seconds", "rounds=3 # of two seconds"
"""After how many pauses bgp_routes.sh asks the platform, and after how many it does here."""
_ROOT = os.geteuid() == 0
_UNSHARE = ("unshare", "--net", "--mount") if _ROOT else ("unshare", "--user", "--map-root-user", "--net", "--mount")
_ENTER = ("--net", "--mount") if _ROOT else ("--user", "--net", "--mount", "--preserve-credentials")
_PROGRAMS = {
    # A tenth: what a script does between two pauses takes more of a processor than the pauses leave.
    "sleep": '#!/bin/sh\necho "$1" >>"$STATE/sleep.log"\nexec /bin/sleep "0.$1"\n',
    "podman": """#!/bin/sh
echo "$*" >>"$STATE/podman.log"
case $1 in image) [ -e "$STATE/image" ] ;; *) exit 125 ;; esac
""",
    "ovs-vsctl": """#!/bin/sh
[ "$2" = iface-to-br ] && exec cat "$STATE/bridge-of-$3"
""",
    # Ends the service as systemd does, and comes back when it is over.
    "systemctl": """#!/bin/sh
pid=$(cat "$STATE/$2.pid")
[ "$1" = stop ] && kill -TERM "$pid" || exit
while grep -qs '^State:.[^Z]' "/proc/$pid/status"; do sleep 1; done
""",
}
_SERVER = """
import http.server, itertools, pathlib, ssl, sys

number = itertools.count()
port, answer, seen, *pem = sys.argv[1:]


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        with open(seen, "a") as file:
            file.write(self.path + "\\n")
        status, _, body = pathlib.Path(answer).read_text().partition(" ")
        statuses = status.split(",")
        self.send_response(int(statuses[next(number) % len(statuses)]))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        pass  # whoever does not trust the certificate


server = Server(("0.0.0.0", int(port)), Handler)
if pem:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem[0])
    server.socket = context.wrap_socket(server.socket, server_side=True)
print("serving", flush=True)
server.serve_forever()
"""


@functools.cache
def missing() -> str:
    """What such a node lacks here; empty where it can be made."""
    for program in ("unshare", "nsenter", "ip", "jq", "curl"):
        if not shutil.which(program):
            return f"{program} is not installed"
    tried = subprocess.run(
        [*_UNSHARE, "sh", "-c", "ip link add a0 type veth peer name a1 && ip link add a2 type bridge"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return "" if tried.returncode == 0 else f"no network namespaces with veth and bridge here: {tried.stderr.strip()}"


def eventually(true: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


class Node:
    """A node; `boot` it first."""

    def __init__(self, root: Path) -> None:
        if why := missing():
            pytest.skip(why)
        self.root, self.state = root / "node", root / "state"
        self.manifest = self.root / "etc/kubernetes/manifests/metal-ipi-kube-vip.json"
        self.ca = trustme.CA()
        self._programs = root / "bin"
        self._processes: list[subprocess.Popen[str]] = []
        self._holder: subprocess.Popen[str] | None = None
        self._servers: dict[int, subprocess.Popen[str]] = {}
        for folder in (self.root, self.state, self._programs):
            folder.mkdir()
        for name, text in _PROGRAMS.items():
            (self._programs / name).write_text(text)
            (self._programs / name).chmod(0o755)

    # What it is made of.

    def give(self, files: Sequence[NodeFile]) -> None:
        for file in files:
            self.write(file.path, file.text.replace(OFTEN, SELDOM))

    def write(self, path: str, text: str) -> Path:
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = target.with_name(f".{target.name}.new")
        fresh.write_text(text)
        fresh.rename(target)
        return target

    def credentials(self, path: str = LOCAL_KUBECONFIG, *, ca: trustme.CA | None = None) -> None:
        """The kubeconfig that OpenShift keeps on the node, as its operator writes it."""
        data = base64.b64encode((ca or self.ca).cert_pem.bytes()).decode()
        self.write(
            path,
            "apiVersion: v1\nkind: Config\nclusters:\n- cluster:\n"
            f"    certificate-authority-data: {data}\n    server: https://localhost:6443\n  name: localhost\n",
        )

    # Its life.

    def boot(self) -> None:
        """Power on: nothing runs, /run is empty, there is lo and one interface with a default route."""
        command = [*_UNSHARE, "sh", "-c", "echo on; exec sleep infinity"]
        self._holder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._holder.stdout is not None and self._holder.stdout.readline() == "on\n"
        shutil.rmtree(self.root / "run", ignore_errors=True)
        (self.root / "run").mkdir()
        self.ip("link set lo up")
        self.interface("eth0")
        self.ip("address add 198.51.100.5/24 dev eth0")
        self.ip("route add default via 198.51.100.1 dev eth0")

    def power_cut(self) -> None:
        """Everything that runs is gone at once."""
        for process in self._processes:
            _end(process)
        self._processes.clear()
        self._servers.clear()
        if self._holder is not None:
            _end(self._holder)
            self._holder = None

    @property
    def _pid(self) -> int:
        assert self._holder is not None, "it is off"
        return self._holder.pid

    def start(self, unit: NodeUnit) -> subprocess.Popen[str]:
        """Start a service as systemd does; what it says: `said`."""
        process: subprocess.Popen[str] | None = None
        for line in unit.text.splitlines():
            key, _, command = line.partition("=")
            if key == "ExecStartPre":
                program, option, path = command.split(" ")
                self.run(program, option, f"{self.root}{path}")
            elif key == "ExecStart":
                shell, script = command.split(" ")
                with (self.state / f"{unit.name}.said").open("a") as said:
                    process = self._popen([shell, f"{self.root}{script}"], stderr=said)
        assert process is not None
        (self.state / f"{unit.name}.pid").write_text(str(process.pid))
        return process

    def said(self, unit: str) -> list[str]:
        path = self.state / f"{unit}.said"
        return path.read_text().splitlines() if path.exists() else []

    def stop(self, process: subprocess.Popen[str]) -> None:
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0

    # Its network.

    def ip(self, command: str) -> str:
        return self.run("ip", *command.split(" "))

    def interface(self, name: str, *, address: str | None = None) -> None:
        """An interface that is up."""
        self.ip(f"link add {name} type veth peer name {name}-wire")
        for each in (name, f"{name}-wire"):
            self.ip(f"link set {each} up")
        if address is not None:
            self.ip(f"address add {address} dev {name}")

    def to_bridge(self, interface: str = "eth0", bridge: str = "br-ex") -> None:
        """What OpenShift's configure-ovs.sh does with the default interface, at every boot."""
        self.ip("link add ovs-system type bridge")
        self.ip(f"address flush dev {interface}")
        self.ip(f"link set {interface} master ovs-system")
        self.interface(bridge)
        (self.state / f"bridge-of-{interface}").write_text(f"{bridge}\n")
        self.ip(f"address add 198.51.100.5/24 dev {bridge}")
        self.ip(f"route add default via 198.51.100.1 dev {bridge} metric 48")

    def addresses(self) -> dict[str, str]:
        """Flags of each address with a prefix, by `interface address/prefix`."""
        found: dict[str, str] = {}
        for link in json.loads(self.ip("-j address show")):
            for each in link["addr_info"]:
                flags = " ".join(flag for flag in ("deprecated", "dynamic") if each.get(flag))
                found[f"{link['ifname']} {each['local']}/{each['prefixlen']}"] = flags
        return found

    def reject_machine_config(self) -> None:
        """What OVN-Kubernetes does on every node (OCP_HACKS.go): nobody on it reaches a machine config server."""
        if not shutil.which("nft"):
            for port in (22623, 22624):
                self.ip(f"rule add priority 1 ipproto tcp dport {port} prohibit")
            self.ip("rule add priority 2 table local")
            self.ip("rule delete priority 0")
            return
        rule = "tcp dport { 22623, 22624 } tcp flags & (fin|syn|rst|ack) == syn reject"
        chains = "".join(
            f"chain {name} {{ type filter hook {name} priority 0; {rule}; }}\n" for name in ("forward", "output")
        )
        self.run("nft", f"table ip filter {{\n{chains}}}")

    def serve(self, port: int, *statuses: int, body: str = "", ca: trustme.CA | None = None) -> None:
        """A server of the node answers so from now on, in turn: 6443 the API, 22623 machine configs, 8099 metadata,
        1936 a router's health."""
        answer = self.state / f"answer-{port}.new"
        answer.write_text(f"{','.join(map(str, statuses or (200,)))} {body}")
        answer.rename(self.state / f"answer-{port}")
        if port in self._servers:
            return
        pem: list[Path] = []
        if port in (6443, 22623):
            pem = [self.state / f"{port}.pem"]
            (ca or self.ca).issue_cert(f"api-int.{DOMAIN}").private_key_and_cert_chain_pem.write_to_path(str(pem[0]))
        command = [
            sys.executable,
            "-c",
            _SERVER,
            port,
            self.state / f"answer-{port}",
            self.state / f"seen-{port}",
            *pem,
        ]
        server = self._popen(list(map(str, command)), stdout=subprocess.PIPE)
        assert server.stdout is not None and server.stdout.readline() == "serving\n"
        self._servers[port] = server

    def end(self, port: int) -> None:
        """Nobody listens there any more."""
        _end(self._servers.pop(port))

    def asked(self, port: int) -> list[str]:
        """The paths that a server was asked for."""
        path = self.state / f"seen-{port}"
        return path.read_text().splitlines() if path.exists() else []

    # Within it.

    def run(self, *command: str, check: bool = True) -> str:
        done = subprocess.run(
            [*self._enter(), *command],
            env=self._environment(), capture_output=True, text=True, check=False, timeout=30,
        )  # fmt: skip
        assert done.returncode == 0 or not check, f"{command}: {done.stderr}"
        return done.stdout if done.returncode == 0 else done.stderr

    def log(self, name: str) -> list[str]:
        path = self.state / f"{name}.log"
        return path.read_text().splitlines() if path.exists() else []

    def open(self, *command: str) -> subprocess.Popen[str]:
        """A program that runs on until the power is cut."""
        return self._popen(list(command), stdout=subprocess.PIPE)

    def _popen(
        self, command: list[str], *, stdout: int | None = None, stderr: IO[str] | None = None
    ) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*self._enter(), *command], env=self._environment(), stdout=stdout, stderr=stderr, text=True
        )
        self._processes.append(process)
        return process

    def _enter(self) -> list[str]:
        return ["nsenter", "--target", str(self._pid), *_ENTER, "--"]

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": f"{self._programs}:{os.environ['PATH']}",
            "STATE": str(self.state),
            "METAL_IPI_ROOT": str(self.root),
        }
