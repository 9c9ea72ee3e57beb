"""Process 1 of the hub's namespaces: starts its programs, watches them, ends them. All else ends with it.

Started by lab.hub as `unshare ... python -m lab.hub.node --state DIR`.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import dns.exception
import dns.message
import dns.query
import dns.rcode
import dns.rdatatype
import httpx

from lab.errors import LabError, ServiceFailed
from lab.hub import cgroups, configs, credentials, images, objects, oci
from lab.hub.layout import HubLayout
from lab.hub.programs import Programs
from lab.kubernetes.access import apply, send
from lab.kubernetes.etcd import Etcd
from lab.kubernetes.process import Process
from lab.layout import Layout, write_private
from lab.network import namespaces, plan

_READY_SECONDS = 60.0
_POLL_SECONDS = 0.1
_CABLE_SECONDS = 10.0
_DNS_SECONDS = 0.5
_PODS_SECONDS = 5.0
"""Seconds for the programs in pods to end."""


def say(message: str) -> None:
    """A line for the hub's log."""
    print(time.strftime("%H:%M:%S"), message, file=sys.stderr, flush=True)


def main() -> int:
    """Be the hub until SIGTERM, or until one of its programs ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--state", required=True, help="the lab's state directory")
    lab = Layout.of(parser.parse_args().state)
    layout = HubLayout(lab.hub)
    signal.signal(signal.SIGTERM, _end)
    try:
        _prepare_namespaces(layout)
        Node(lab, layout, Programs.load(layout.wanted)).run()
    except (LabError, OSError, subprocess.SubprocessError) as error:
        say(f"the hub ends: {error}")
        return 1
    except KeyboardInterrupt:
        say("the hub ends, as requested")
    return 0


def _end(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _prepare_namespaces(layout: HubLayout) -> None:
    """Give the hub a /run of its own, and leave the system's settings alone."""
    namespaces.mount_tmpfs(Path("/run"))
    for setting, value in configs.TUNABLES.items():
        shown = layout.tunables / setting.replace("/", ".")
        shown.write_text(f"{value}\n")
        namespaces.bind_file(shown, Path("/proc/sys") / setting)


class Node:
    """The programs of the hub."""

    def __init__(self, lab: Layout, layout: HubLayout, programs: Programs) -> None:
        self._lab = lab
        self._layout = layout
        self._programs = programs
        self._cgroup = cgroups.name(lab.state)
        self._running: list[Process] = []

    def run(self) -> None:
        """Start everything, say that it is ready, and watch it. Raises ServiceFailed when a program ends."""
        began = time.monotonic()
        try:
            self._start()
            self._layout.ready.touch()
            say(f"the hub is ready after {time.monotonic() - began:.1f} s")
            while True:
                self._check()
                time.sleep(1.0)
        finally:
            for process in reversed(self._running):
                process.stop()
                if process.name == "kubelet":
                    self._end_pods()

    def _start(self) -> None:
        _plug_in()
        # Those of a hub that was killed: the kubelet would look at each of its containers for three seconds.
        cgroups.remove(self._cgroup)
        cgroups.make(self._cgroup)
        for path, text in configs.files(
            self._layout,
            self._lab,
            cgroup=self._cgroup,
            snapshotter="overlayfs" if _overlays(self._layout.containerd) else "native",
        ).items():
            path.write_text(text)
        etcd = Etcd(self._layout.root / "etcd", self._programs.etcd)
        self._begin(etcd.process)
        api = configs.apiserver(self._layout, self._programs, etcd_url=etcd.url, etcd_pki=etcd.directory)
        self._launch("kube-apiserver", api)
        commands = configs.commands(self._layout, self._programs)
        for name in ("containerd", "docker-registry"):
            self._launch(name, commands.pop(name))
        self._await("the registry", self._fill_registry)
        self._await("the API", self._api_problem)
        for name, command in commands.items():
            self._launch(name, command)
        self._await(f"node {credentials.NODE}", self._node_problem)
        # Not before: the scheduler waits longer after each attempt that fails, and until now there was no node.
        with credentials.access(self._layout).client() as client:
            for each in objects.all_of(self._layout.volumes):
                apply(client, objects.path(each), each)
        self._await("DNS for Services", _dns_problem)

    def _launch(self, name: str, command: list[str]) -> None:
        self._begin(Process(name, command, self._layout.logs / f"{name}.log"))

    def _begin(self, process: Process) -> None:
        process.start()
        self._running.append(process)

    def _end_pods(self) -> None:
        """Let what runs in pods end well, databases above all. Nothing starts it again: the kubelet has ended."""
        deadline = time.monotonic() + _PODS_SECONDS
        told: set[int] = set()
        while (running := cgroups.processes(self._cgroup) - _pauses()) and time.monotonic() < deadline:
            for pid in running - told:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
            told |= running
            time.sleep(_POLL_SECONDS)

    def _check(self) -> None:
        """Raise ServiceFailed if a program ended; bury what containers left to us as process 1."""
        for process in self._running:
            process.check()
        own = {process.pid for process in self._running}
        with suppress(ChildProcessError):
            while (dead := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) and dead.si_pid not in own:
                os.waitpid(dead.si_pid, 0)

    def _await(self, what: str, problem_of: Callable[[], str | None]) -> None:
        """Ask again and again until there is no problem. Raises ServiceFailed when a program ends, or time does."""
        deadline = time.monotonic() + _READY_SECONDS
        while True:
            self._check()
            try:
                problem = problem_of()
            except httpx.TransportError as error:
                problem = str(error)  # it does not listen yet
            if problem is None:
                return
            if time.monotonic() > deadline:
                raise ServiceFailed(f"{what} is not ready after {_READY_SECONDS:.0f} s: {problem}")
            time.sleep(_POLL_SECONDS)

    def _fill_registry(self) -> None:
        context = ssl.create_default_context(cafile=str(self._lab.ca))
        with httpx.Client(base_url=f"https://{plan.REGISTRY}", verify=context, trust_env=False) as client:
            known: dict[str, str] = {}
            for recipe in images.ALL:
                image = recipe.cached()
                if image is None:
                    raise LabError(f"the container image {recipe.name} is not there: run `make hub`")
                oci.push(client, recipe.name, recipe.key, image, known=known)
        write_private(self._layout.references, json.dumps({each.name: each.reference for each in images.ALL}))

    def _api_problem(self) -> str | None:
        with credentials.access(self._layout).client() as client:
            answer = client.get("/readyz?verbose")
        failed = [line for line in answer.text.splitlines() if line.startswith("[-]")]
        return None if answer.is_success else f"{answer.status_code} {' '.join(failed) or answer.text}"

    def _node_problem(self) -> str | None:
        with credentials.access(self._layout).client() as client:
            nodes = send(client, "GET", "/api/v1/nodes")["items"]
        ready = [each for node in nodes for each in node["status"].get("conditions", []) if each["type"] == "Ready"]
        if any(each["status"] == "True" for each in ready):
            return None
        return " ".join(each["message"] for each in ready) or "the kubelet has not registered it"


def _pauses() -> set[int]:
    """The processes that keep pods' namespaces: they end with the hub only."""
    command = b"".join(word.encode() + b"\0" for word in images.PAUSE.entrypoint)
    found: set[int] = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended since
            if (process / "cmdline").read_bytes() == command:
                found.add(int(process.name))
    return found


def _dns_problem() -> str | None:
    """Asks for the API's own Service, as a pod does."""
    question = dns.message.make_query(f"kubernetes.default.svc.{objects.DNS_DOMAIN}", dns.rdatatype.A)
    try:
        answer = dns.query.udp(question, objects.DNS_SERVICE, timeout=_DNS_SECONDS)
    except (OSError, dns.exception.DNSException) as error:
        return str(error)  # it does not listen yet
    found = [record.to_text() for rrset in answer.answer for record in rrset]
    return None if found == [credentials.API_SERVICE] else f"its answer is {dns.rcode.to_text(answer.rcode())} {found}"


def _plug_in() -> None:
    """Wait for the cable that lab.hub plugs in, and give it the hub's address."""
    deadline = time.monotonic() + _CABLE_SECONDS
    while not Path("/sys/class/net", objects.UPLINK).exists():
        if time.monotonic() > deadline:
            raise ServiceFailed(f"no cable is plugged in after {_CABLE_SECONDS:.0f} s")
        time.sleep(0.02)
    lines = [
        "link set lo up",
        f"address add {plan.HUB}/{plan.INFRASTRUCTURE_PREFIX} dev {objects.UPLINK}",
        f"link set {objects.UPLINK} up",
        f"route add default via {plan.GATEWAY}",
    ]
    _run(["ip", "-batch", "-"], "\n".join(lines) + "\n")
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    _run(["nft", "-f", "-"], configs.POD_FILTER)


def _run(command: list[str], told: str = "") -> None:
    done = subprocess.run(command, input=told, text=True, capture_output=True, check=False, timeout=10)
    if done.returncode != 0:
        raise ServiceFailed(f"`{' '.join(command)}` ended with {done.returncode}: {done.stderr.strip()}")


def _overlays(directory: Path) -> bool:
    """Whether the file system of a directory can be overlaid: that of a container cannot."""
    parts = {name: directory / f".try-{name}" for name in ("lower", "upper", "work", "merged")}
    for path in parts.values():
        path.mkdir(exist_ok=True)
    options = ",".join(f"{name}dir={parts[name]}" for name in ("lower", "upper", "work"))
    tried = subprocess.run(
        ["mount", "-t", "overlay", "overlay", "-o", options, str(parts["merged"])], capture_output=True, check=False
    )
    if tried.returncode == 0:
        _run(["umount", str(parts["merged"])])
    return tried.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
