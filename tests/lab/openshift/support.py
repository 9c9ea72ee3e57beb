"""Run the OpenShift stand-in on loopback addresses: its installer, and its nodes as processes rooted in directories."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import httpx
import yaml

from lab import facts
from lab.layout import Layout
from lab.network import certificates, plan
from tests.lab.openshift import kinds

DOMAIN = "lab.example.test"
SSH_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA tests"

_blocks = itertools.count()


def install_config(**changes: Any) -> dict[str, Any]:
    """A valid install-config with three control plane machines and a worker; None removes a key."""
    config: dict[str, Any] = {
        "apiVersion": "v1",
        "baseDomain": "example.test",
        "metadata": {"name": "lab"},
        "controlPlane": {"name": "master", "replicas": 3},
        "compute": [{"name": "worker", "replicas": 1}],
        "networking": {"networkType": "OVNKubernetes"},
        "platform": {"none": {}},
        "pullSecret": json.dumps({"auths": {"registry.test": {"auth": "c2VjcmV0OnB1bGw="}}}),
        "sshKey": SSH_KEY,
    }
    config.update(changes)
    return {key: value for key, value in config.items() if value is not None}


def write_config(directory: Path, **changes: Any) -> None:
    directory.mkdir(exist_ok=True)
    (directory / "install-config.yaml").write_text(yaml.safe_dump(install_config(**changes)))


def contents(config: Mapping[str, Any]) -> dict[str, bytes]:
    """The files of an Ignition config, by path."""
    prefix = "data:text/plain;charset=utf-8;base64,"
    files = {entry["path"]: entry["contents"]["source"] for entry in config["storage"]["files"]}
    assert all(source.startswith(prefix) for source in files.values())
    return {path: base64.b64decode(source.removeprefix(prefix)) for path, source in files.items()}


def wait_until(what: str, ask: Callable[[], object], seconds: float = 20) -> None:
    """Ask until the answer is yes; who does not listen yet has not answered."""
    deadline = time.monotonic() + seconds
    while True:
        with contextlib.suppress(httpx.TransportError):
            if ask():
                return
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.1)


@dataclass
class Facility:
    """Addresses of its own, and whatever processes run on them."""

    program: Path
    root: Path
    prefix: str = field(
        default_factory=lambda: f"127.{64 + os.getpid() % 128}.{os.getpid() // 128 % 64 * 4 + next(_blocks) % 4}"
    )
    native: Path | None = None
    """What tells the installer who runs the machines' API servers; None: nobody does."""
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict[str, "subprocess.Popen[bytes]"])

    @property
    def assets(self) -> Path:
        return self.root / "assets"

    def address(self, index: int) -> str:
        return f"{self.prefix}.{index}"

    def environment(self, **extra: str) -> dict[str, str]:
        """Both names of the API have the addresses 1 to 4: the bootstrap machine and the control plane."""
        api = ",".join(self.address(index) for index in range(1, 5))
        native = {"LAB_OPENSHIFT_KUBERNETES": str(self.native)} if self.native else {}
        return {**os.environ, "LAB_RESOLVE": f"api.{DOMAIN}={api};api-int.{DOMAIN}={api}", **native, **extra}

    def install(self, *arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.program.with_name("openshift-install")), *arguments, "--dir", str(self.assets)],
            env=self.environment(**extra),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def start(self, name: str, index: int, service: str, config: Mapping[str, Any]) -> None:
        """Apply an Ignition config to a directory and run its service there, as the simulated machines do."""
        root = self.root / name
        for path, data in contents(config).items():
            target = root / path.removeprefix("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        (root / "etc/hostname").write_text(f"{name}.{DOMAIN}\n")
        started = [unit for unit in config["systemd"]["units"] if "/usr/local/bin/lab-openshift" in unit["contents"]]
        assert [f"lab-openshift {service}\n" in unit["contents"] for unit in started] == [True]
        with (self.root / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [str(self.program), service],
                env=self.environment(LAB_ROOT=str(root), LAB_ADDRESS=self.address(index)),
                stderr=log,
            )

    def run_api_servers(self, *, real: bool) -> None:
        """Have machines' API servers, real or small ones, run by the lab's service, on an address of this facility."""
        layout, address = Layout.of(self.root / "lab"), self.address(200)
        layout.make()
        certificates.ensure(layout)
        facts.ensure(layout, "simulated", kinds.of(self.program), real_kubernetes=real)
        self.native = self.root / "kubernetes.json"
        told = {
            "server": f"{address}:{plan.KUBERNETES_PORT}",
            "name": plan.KUBERNETES_NAME,
            "authority": layout.ca.read_text(),
        }
        self.native.write_text(json.dumps(told))
        with (self.root / "service.log").open("ab") as log:
            self.processes["service"] = subprocess.Popen(
                [sys.executable, "-m", "lab.kubernetes", "--state", layout.state, "--address", address], stderr=log
            )

    def stop(self, name: str) -> None:
        process = self.processes.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def log(self, name: str) -> str:
        return (self.root / f"{name}.log").read_text()

    def get(self, index: int, port: int, path: str, trust: ssl.SSLContext) -> httpx.Response:
        return self.request("GET", index, path, trust, port=port)

    def request(
        self, method: str, index: int, path: str, trust: ssl.SSLContext, *, port: int = 6443, body: object = None
    ) -> httpx.Response:
        """Ask one particular server, under the name that its certificate must carry."""
        with httpx.Client(verify=trust, timeout=5) as client:
            return client.request(
                method,
                f"https://{self.address(index)}:{port}{path}",
                json=body,
                extensions={"sni_hostname": f"api-int.{DOMAIN}"},
            )

    def machine_trust(self) -> ssl.SSLContext:
        """What a machine trusts before it has anything: the authority in its pointer."""
        pointer = json.loads((self.assets / "master.ign").read_text())
        (authority,) = pointer["ignition"]["security"]["tls"]["certificateAuthorities"]
        return ssl.create_default_context(cadata=base64.b64decode(authority["source"].partition("base64,")[2]).decode())

    def kubeconfig(self) -> dict[str, Any]:
        return cast("dict[str, Any]", yaml.safe_load((self.assets / "auth/kubeconfig").read_text()))

    def api_trust(self, *, admin: bool) -> ssl.SSLContext:
        """The API's authority, and the administrator's certificate or none."""
        config = self.kubeconfig()
        authority = base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
        context = ssl.create_default_context(cadata=authority)
        if admin:
            user = config["users"][0]["user"]
            with tempfile.NamedTemporaryFile() as pair:
                pair.write(
                    base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"])
                )
                pair.flush()
                context.load_cert_chain(pair.name)
        return context


@contextmanager
def facility(program: Path, root: Path) -> Generator[Facility, None, None]:
    """A facility whose processes end with the test."""
    result = Facility(program, root)
    try:
        yield result
    finally:
        for name in reversed(list(result.processes)):
            result.stop(name)
