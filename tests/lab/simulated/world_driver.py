"""A small facility in the namespaces this process was started in: boot server, the API as its own process, machines.

Run by test_world as `unshare … python -m tests.lab.simulated.world_driver DIR`; prints what it saw, as JSON.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import http.server
import json
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import asyncssh
import httpx

from lab import facts as lab_facts
from lab.layout import Layout
from lab.network import certificates, plan
from tests.lab.openshift import kinds

BOOT = f"http://{plan.BOOT_NAME}"
SCRIPT = f"""#!ipxe
kernel {BOOT}/kernel initrd=main coreos.live.rootfs_url={BOOT}/rootfs ignition.firstboot ignition.platform.id=packet
initrd --name main {BOOT}/initramfs
boot
"""
TOOL = '#!/bin/sh\necho "tool $* at $LAB_ADDRESS"\nexec sleep 600\n'
UNIT = "[Service]\nExecStart=/usr/local/bin/lab-openshift worker --unit %n\nRestart=always\nRestartSec=100ms\n"
OBSERVE = """
hostname; cat /proc/cmdline; . /etc/os-release; echo "$OSTREE_VERSION"
sudo -n cat /etc/.ignition-result.json | tr -d '\\n'; echo; grep PUBLIC_0 /run/metadata/afterburn; exit 7
"""
FAULTS = {"broken": "ignition_fails", "hashed": "wrong_rootfs", "silent": "no_ssh", "dark": "never_boots"}
LAST_WORDS = {"broken": b"Ignition failed", "hashed": b"hash mismatch", "silent": b"masked", "dark": b"No more network"}


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files, says nothing."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Facility:
    """Names, files and keys of the facility, and a client of its API."""

    def __init__(self, state: Path) -> None:
        self.layout = Layout.of(state)
        self.layout.make()
        certificates.ensure(self.layout)
        tool = state / "tool"
        tool.write_text(TOOL)
        tool.chmod(0o755)
        self.facts = lab_facts.ensure(self.layout, "simulated", kinds.of(tool))
        self._without_router()
        self.user = asyncssh.generate_private_key("ssh-ed25519")
        self.host = asyncssh.generate_private_key("ssh-ed25519")
        assert self.facts.api is not None
        self.api = httpx.Client(
            base_url=self.facts.api.url,
            headers={"X-Auth-Token": self.facts.api.token},
            verify=ssl.create_default_context(cafile=str(self.layout.ca)),
            trust_env=False,
        )
        self.project = f"/projects/{self.facts.api.project_id}"

    def _without_router(self) -> None:
        """There is no BIRD here; the API learns it from the facts."""
        document = json.loads(self.layout.facts.read_text())
        self.layout.facts.write_text(json.dumps({**document, "bgp": None}))

    @property
    def public(self) -> str:
        """The user's key, as the API and Ignition take it."""
        return self.user.export_public_key().decode().strip()

    def userdata(self, hostname: str) -> str:
        """A node's configuration: a pinned host key merged in, a service, Afterburn."""
        contents = {"source": "data:," + quote(self.host.export_private_key().decode())}
        key = {"path": "/etc/ssh/ssh_host_ed25519_key", "mode": 0o600, "contents": contents}
        identity = json.dumps({"ignition": {"version": "3.2.0"}, "storage": {"files": [key]}})
        return json.dumps(
            {
                "ignition": {"version": "3.3.0", "config": {"merge": [{"source": "data:," + quote(identity)}]}},
                "passwd": {"users": [{"name": "core", "sshAuthorizedKeys": [self.public]}]},
                "storage": {"files": [{"path": "/etc/hostname", "contents": {"source": f"data:,{hostname}-1"}}]},
                "systemd": {
                    "units": [
                        {"name": "afterburn.service", "enabled": True},
                        {"name": "role.service", "enabled": True, "contents": UNIT},
                    ]
                },
            }
        )

    def order(self, hostname: str) -> dict[str, Any]:
        """A device that boots the facility's script."""
        body = {
            "hostname": hostname,
            "plan": "c3.small.x86",
            "metro": "lb",
            "operating_system": "custom_ipxe",
            "ipxe_script_url": f"{BOOT}/boot.ipxe",
            "always_pxe": True,
            "userdata": self.userdata(hostname),
        }
        return self.api.post(f"{self.project}/devices", json=body).raise_for_status().json()

    async def ssh(self, address: str, username: str, host: bytes | None, command: str | None) -> tuple[int | None, str]:
        """Run a command; tried again until somebody answers. `host` None accepts any host key."""
        known = asyncssh.import_known_hosts(f"{address} {host.decode()}") if host else None
        for _ in range(100):
            try:
                options: dict[str, Any] = {"username": username, "client_keys": [self.user], "known_hosts": known}
                async with asyncssh.connect(address, 22, config=None, **options) as connection:
                    if command is None:
                        process = await connection.create_process()
                        return None, await asyncio.wait_for(process.stdout.read(500), 5)
                    result = await connection.run(command)
                    return result.exit_status, str(result.stdout)
            except OSError:
                await asyncio.sleep(0.1)
        raise TimeoutError(address)


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True)


def build(facility: Facility) -> None:
    """Addresses, names and boot files."""
    _run("ip", "link", "set", "lo", "up")
    for address in (plan.API, plan.METADATA, plan.BOOT, plan.SOS):
        _run("ip", "address", "add", f"{address}/32", "dev", "lo")
    hosts = facility.layout.state / "hosts"
    names = [("127.0.0.1", "localhost"), *((address, name) for name, address in plan.TLS_NAMES.items())]
    hosts.write_text("".join(f"{address} {name}\n" for address, name in names))
    _run("mount", "--bind", str(hosts), "/etc/hosts")
    rootfs = b"ID=rhcos-lab\nOSTREE_VERSION='1.2.3'\n"
    initramfs = {"kind": "simulated-initramfs", "rootfs_sha256": hashlib.sha256(rootfs).hexdigest()}
    files = {
        "kernel": b"k",
        "rootfs": rootfs,
        "initramfs": json.dumps(initramfs).encode(),
        "boot.ipxe": SCRIPT.encode(),
    }
    for name, content in files.items():
        (facility.layout.boot / name).write_bytes(content)
    handler = functools.partial(Quiet, directory=str(facility.layout.boot))
    threading.Thread(
        target=http.server.ThreadingHTTPServer((plan.BOOT, 80), handler).serve_forever, daemon=True
    ).start()


@contextmanager
def serving(facility: Facility, end: signal.Signals) -> Generator[None, None, None]:
    """The API as its own process, ended by a signal."""
    state = facility.layout.state
    command = [sys.executable, "-m", "lab.metal_api", "--state", str(state), "--machines", "simulated"]
    with (state / "api.log").open("ab") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        deadline = time.monotonic() + 15
        while not (state / "metal_api.ready").exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((state / "api.log").read_text())
            time.sleep(0.02)
        yield
        process.send_signal(end)
        process.wait(10)
    if end is signal.SIGKILL:
        (state / "metal_api.ready").unlink()


def _console(facility: Facility, identity: str) -> bytes:
    path = facility.layout.state / "machines" / identity / "console.log"
    return path.read_bytes() if path.exists() else b""


def _until_printed(facility: Facility, identity: str, words: bytes) -> str:
    """The console, once it shows something."""
    for _ in range(200):
        printed = _console(facility, identity)
        if words in printed:
            break
        time.sleep(0.05)
    return _console(facility, identity).decode()


def observe(facility: Facility) -> dict[str, Any]:
    """Walk through everything; see test_world for what is expected."""
    host = facility.host.export_public_key()
    seen: dict[str, Any] = {}
    with serving(facility, signal.SIGKILL):
        facility.api.post(
            f"{facility.project}/ssh-keys", json={"label": "k", "key": facility.public}
        ).raise_for_status()
        for hostname, kind in FAULTS.items():
            fault = {"kind": kind, "match": {"hostname": hostname}}
            facility.api.post("https://api.equinix.com/lab/faults", json=fault).raise_for_status()
        good = facility.order("good")
        address = good["ip_addresses"][0]["address"]
        ordered = {hostname: facility.order(hostname) for hostname in FAULTS}
        seen["ssh"] = asyncio.run(facility.ssh(address, "core", host, OBSERVE))
        seen["sos"] = asyncio.run(facility.ssh(plan.SOS, good["id"], None, None))[1]
        seen["console"] = _until_printed(facility, good["id"], b"tool worker")
        for hostname, device in ordered.items():
            shown = _until_printed(facility, device["id"], LAST_WORDS[hostname])
            state = facility.api.get(f"/devices/{device['id']}").json()["state"]
            events = facility.api.get(f"/devices/{device['id']}/events").json()["events"]
            seen[hostname] = {"console": shown, "state": state, "events": [event["body"] for event in events]}
    with serving(facility, signal.SIGTERM):
        seen["after kill"] = asyncio.run(facility.ssh(address, "core", host, "cat /proc/sys/kernel/random/boot_id"))
        actions = f"/devices/{good['id']}/actions"
        facility.api.post(actions, json={"type": "reboot"}).raise_for_status()
        time.sleep(0.5)
        seen["after reboot"] = asyncio.run(facility.ssh(address, "core", host, "cat /proc/sys/kernel/random/boot_id"))
        for device in facility.api.get(f"{facility.project}/devices?per_page=100").json()["devices"]:
            facility.api.delete(f"/devices/{device['id']}").raise_for_status()
        while facility.api.get(f"{facility.project}/devices").json()["devices"]:
            time.sleep(0.1)
        seen["left machines"] = [path.name for path in (facility.layout.state / "machines").iterdir()]
    mounts = Path("/proc/self/mounts").read_text()
    seen["left mounts"] = [line for line in mounts.splitlines() if "/machines/" in line]
    processes = subprocess.run(["ps", "-e", "-o", "args="], capture_output=True, text=True, check=True).stdout
    seen["left processes"] = [line for line in processes.splitlines() if "sleep 600" in line]
    return seen


def main() -> None:
    """Build the facility, observe, print."""
    facility = Facility(Path(sys.argv[1]))
    build(facility)
    print(json.dumps(observe(facility)))


if __name__ == "__main__":
    main()
