"""Starts and stops the lab, from outside its namespaces."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.errors import LabError, SandboxRefused, ServiceFailed
from lab.hub import cgroups
from lab.layout import Layout, write_private
from lab.supervision import Supervisor, holder, wait_gone

if TYPE_CHECKING:
    from lab.facts import Facts
    from lab.openshift.kinds import OpenShift

Report = Callable[[str], None]

SERVICES = ("dns", "boot", "metal-api")
RACK_SERVICES = ("dns", "boot", "bmc")
DISCONNECTED_SERVICES = ("witness", "mirror")
"""Further services of a disconnected lab."""
_LOG_TAIL = 20


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which lab to start."""

    layout: Layout
    machines: str
    """`libvirt` or `simulated`."""
    services: tuple[str, ...] = SERVICES
    rack: int = 0
    """Servers with BMCs, in the place of the Metal API (then `services` are RACK_SERVICES)."""
    disconnected: bool = False
    """Nothing outside of the site resolves or answers, and the site has a registry of images."""
    real_kubernetes: bool = True
    """Whether clusters get a real Kubernetes API where this system can have one."""
    day_two: bool = False
    """Whether clusters get the Operator Lifecycle Manager."""
    shared_api_servers: bool = False
    """Whether the machines of a cluster share one API server; a lab that was started so stays so."""
    openshift: Callable[[], OpenShift]
    """Finds or builds the OpenShift that clusters are to be of."""


def unshare_command() -> list[str]:
    """The command that makes the namespaces. For users other than root they are in a user namespace in which the user
    is root."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return ["unshare", *user, "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]


def sandbox_refusal() -> str | None:
    """Why this system gives no access to have the lab's namespaces, None if it does."""
    check = [*unshare_command(), "ip", "link", "add", "facility0", "type", "bridge"]
    try:
        tried = subprocess.run(check, capture_output=True, text=True, timeout=20, check=False)
    except FileNotFoundError as error:
        return f"the program `{error.filename}` is missing (packages util-linux and iproute2)"
    return None if tried.returncode == 0 else tried.stderr.strip() or f"unshare ended with {tried.returncode}"


def status(layout: Layout) -> dict[str, Any]:
    """The supervisor's last status, `{"state": "stopped"}` if there is none."""
    if holder(layout.lock) is None:
        return {"state": "stopped", "services": {}}
    try:
        return json.loads(layout.status.read_text())
    except FileNotFoundError:
        return {"state": "starting", "services": {}}


def up(wanted: Wanted, report: Report) -> None:
    """Start the lab and wait until every service answers. A lab that runs is left alone, a broken one restarted."""
    from lab import facts

    layout = wanted.layout
    layout.make()
    shutil.rmtree(layout.removed, ignore_errors=True)
    with only_one(layout):
        _refuse_other_machines(wanted, facts.load(layout))
        seen = status(layout)
        if seen["state"] == "ready":
            report(f"the lab is running ({wanted.machines} machines, {layout.state})")
            _compare(wanted, facts.require(layout), report)
            if "proxy" in wanted.services and "proxy" not in seen["services"]:
                raise _other(wanted, "no forward proxy", "one")
            return
        if seen["state"] in {"failed", "stopping"}:
            for line in _faults(layout, seen):
                report(line)
            report("the lab is broken: cutting its power and starting it again")
            stop(layout)
            seen = status(layout)
        started = time.monotonic()
        process = None
        if seen["state"] == "stopped":
            _prepare(wanted, report)
            process = _spawn(wanted)
        try:
            _await(layout, process, report)
            if process is not None and not _leads(process, layout):
                process.kill()  # that of an interrupted `up` came first: ours would take over when that one is stopped
                process.wait()
        finally:
            if process is not None and process.poll() is None:
                process.returncode = 0  # it goes on without us: nothing to wait for, nothing to warn about
        report(f"the lab is up after {time.monotonic() - started:.1f} s ({layout.state})")


def down(layout: Layout, report: Report) -> list[str]:
    """Stop the lab and remove it; returns what was or is left over. There may be none: then only the check is made."""
    from lab import leftovers

    left: list[str] = []
    with only_one(layout) if layout.state.exists() else nullcontext(), leftovers.watched_namespaces(layout) as spaces:
        if spaces:
            left += leftovers.held(layout)
            report("stopping the lab")
            stop(layout)
        elif layout.state.exists():
            report("the lab was not running: what its API and DNS held goes with its files")
        _remove(layout)
        return left + leftovers.find(layout, spaces)


def _remove(layout: Layout) -> None:
    """Remove the state directory in one step as others see it: the next start would take half a state for a lab.

    What cannot be removed is not an error here: `down` finds it and reports it as left.
    """
    cgroups.remove(cgroups.name(layout.state))
    shutil.rmtree(layout.removed, ignore_errors=True)
    if layout.state.exists():
        layout.state.rename(layout.removed)
        shutil.rmtree(layout.removed, ignore_errors=True)


def stop(layout: Layout, grace: float = 45.0) -> None:
    """Stop the lab's supervisor, with whatever runs in the lab; what it keeps on disk stays."""
    supervisor = Supervisor.find(layout.lock)
    if supervisor is None:
        return
    supervisor.stop(grace)
    os.close(supervisor.pidfd)
    if not wait_gone(layout.lock, 10):
        raise LabError(f"the lab's supervisor (process {supervisor.pid}) does not end")


@contextmanager
def only_one(layout: Layout) -> Generator[None, None, None]:
    """One `up` or `down` at a time: a second one waits, and then sees what the first one did.

    The directory itself is the lock, so that nothing is left of it.
    """
    descriptor = os.open(layout.state, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if not layout.state.exists() or layout.state.stat().st_ino != os.fstat(descriptor).st_ino:
            raise LabError(f"the lab in {layout.state} was stopped meanwhile: try again")
        yield
    finally:
        os.close(descriptor)


def _refuse_other_machines(wanted: Wanted, known: Facts | None) -> None:
    """Raise LabError where the lab has other machines than those asked for."""
    if known is None:
        return
    rack = len(known.rack.servers) if known.rack else 0
    # A server that is no longer named keeps its place, so that it can be switched off.
    fits = rack >= wanted.rack if wanted.rack else not rack
    if known.machines != wanted.machines:
        raise _other(wanted, f"{known.machines} machines", f"{wanted.machines} machines")
    if not fits:
        raise _other(wanted, _of(rack), _of(wanted.rack))
    if (known.mirror is not None) != wanted.disconnected:
        words = {True: "no way out (lab.disconnected)", False: "the names of the world outside"}
        raise _other(wanted, words[not wanted.disconnected], words[wanted.disconnected])


def _other(wanted: Wanted, there: str, asked: str) -> LabError:
    return LabError(f"the lab in {wanted.layout.state} has {there}, not {asked}: run `make down` first")


def _compare(wanted: Wanted, known: Facts, report: Report) -> None:
    """A running lab keeps what it was started with: its Kubernetes API, on which its clusters live, and its OpenShift.

    Says so where another Kubernetes API is asked for. Raises LabError where another OpenShift is.
    """
    from lab.kubernetes import programs

    real = known.kubernetes is not None
    if real != wanted.real_kubernetes and not (wanted.real_kubernetes and isinstance(programs.find(), str)):
        has, asked = ("real", "small") if real else ("small", "real")
        report(f"its Kubernetes API stays {has}, as it was started; to have lab.kubernetes: {asked}, `make down` first")
    if wanted.day_two and known.kubernetes is not None and known.kubernetes.olm is None:
        raise _other(wanted, "clusters without the Operator Lifecycle Manager", "what dayTwo needs")
    if wanted.shared_api_servers and known.kubernetes is not None and not known.kubernetes.shared:
        raise _other(wanted, "an API server for each machine of a control plane", "one for each cluster")
    release = wanted.openshift().release
    if known.release != release:
        raise _other(wanted, f"OpenShift {known.release}", release)


def _of(rack: int) -> str:
    return f"a rack of {rack} servers" if rack else "the Metal API"


def _prepare(wanted: Wanted, report: Report) -> None:
    """Write what the services read. Everything that identifies this lab is kept from an earlier start."""
    from lab import facts
    from lab.kubernetes import programs
    from lab.mirror import registry
    from lab.network import certificates, dns, stream

    layout = wanted.layout
    if wanted.disconnected and not registry.PROGRAM.exists():
        raise LabError(f"the site's registry of images needs {registry.PROGRAM}: install it (apt: docker-registry)")
    real = wanted.real_kubernetes
    openshift = wanted.openshift()
    dns.knot()  # without it nothing is written
    known = facts.ensure(
        layout,
        wanted.machines,
        openshift,
        wanted.rack,
        real_kubernetes=real,
        disconnected=wanted.disconnected,
        day_two=wanted.day_two,
        shared_api_servers=wanted.shared_api_servers,
    )
    if openshift.images is not None and known.kubernetes is None:
        raise LabError(
            f"the real OpenShift programs need the real Kubernetes API, and that cannot run: {programs.find()}"
            if real
            else "the real OpenShift programs need the real Kubernetes API: remove lab.kubernetes: small"
        )
    certificates.ensure(layout, {each.name: each.host for each in known.rack.servers} if known.rack else None)
    dns.prepare(layout, known)
    api = prepare_kubernetes(layout, known, asked_for=real)
    # Where the site has a registry, nodes pull from that, and from nowhere else.
    stream.publish(layout, wanted.machines, openshift.images if known.mirror is None else None)
    if known.mirror is not None:
        registry.prepare(layout, known.mirror, openshift.images)
    layout.status.unlink(missing_ok=True)
    privileged = "as root" if os.geteuid() == 0 else "unprivileged"
    bgp = "no BGP, because BIRD is not installed" if not known.rack else f"BMCs for {len(known.rack.servers)} servers"
    if known.bgp is not None:
        bgp = "BGP by BIRD" + ("" if known.bgp.md5 else " without passwords: this kernel has no TCP MD5 signatures")
    report(f"starting the lab: {wanted.machines} machines, namespaces of its own ({privileged}), DNS by Knot, {bgp}")
    report(api)
    if known.mirror is not None:
        report(f"disconnected: nothing outside resolves or answers; images are in {known.mirror.registry}")
    report(f"OpenShift {openshift.release}: {openshift.installer}")


def prepare_kubernetes(layout: Layout, known: Facts, *, asked_for: bool = True) -> str:
    """Write down who runs the machines' API servers, for the stand-in for openshift-install; says what they are."""
    from lab.kubernetes import programs
    from lab.network import plan

    told = {
        "server": f"{plan.KUBERNETES}:{plan.KUBERNETES_PORT}",
        "name": plan.KUBERNETES_NAME,
        "authority": layout.ca.read_text(),
    }
    write_private(layout.api_servers, json.dumps(told))
    if known.kubernetes is None:
        why, remedy = f"the real one cannot run: {programs.find()}", "run `make setup`"
        if not asked_for:
            why, remedy = "the stack file says lab.kubernetes: small", "leave that out"
        if any(layout.kubernetes.glob("*/etcd")):
            raise LabError(
                f"clusters of the lab in {layout.state} have a real Kubernetes API, and {why}; {remedy}, or run `make "
                "down` first"
            )
        return f"the Kubernetes API: small services of the lab's own, because {why}"
    return f"the Kubernetes API: kube-apiserver {known.kubernetes.version} and etcd, behind the machines' port 6443"


def _spawn(wanted: Wanted) -> subprocess.Popen[bytes]:
    from lab.services import environment

    layout = wanted.layout
    services = (*(DISCONNECTED_SERVICES if wanted.disconnected else ()), *wanted.services)
    arguments = ["--state", str(layout.state), "--machines", wanted.machines, "--services", ",".join(services)]
    try:
        with layout.log("supervisor").open("ab") as log:
            return subprocess.Popen(
                [*unshare_command(), sys.executable, "-m", "lab.supervisor", *arguments],
                cwd=layout.state,
                env=environment(layout),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
    except FileNotFoundError as error:
        raise SandboxRefused("the lab needs the program `unshare`: install the package util-linux") from error


def _await(layout: Layout, process: subprocess.Popen[bytes] | None, report: Report) -> None:
    """Wait until the supervisor says that all is ready; raises what it says otherwise."""
    reported: set[str] = set()
    appeared = False
    while True:
        seen = status(layout)
        for name, service in seen["services"].items():
            if service["state"] == "ready" and name not in reported:
                reported.add(name)
                report(f"{name} answers after {service['seconds']:.1f} s")
        if seen["state"] == "ready":
            return
        if seen["state"] == "failed":
            raise ServiceFailed("\n".join(_faults(layout, seen)))
        appeared = appeared or seen["state"] != "stopped"
        ended = process is not None and process.poll() is not None
        if ended and seen["state"] != "stopped":
            process, ended = None, False  # a supervisor that an interrupted `up` had started came first
        if ended or (seen["state"] == "stopped" and (appeared or process is None)):
            raise SandboxRefused(f"the lab's supervisor ended while starting:\n{tail(layout, 'supervisor')}")
        time.sleep(0.02)


def _leads(process: subprocess.Popen[bytes], layout: Layout) -> bool:
    """Whether the supervisor that runs is the one that a process, `unshare`, has started."""
    try:
        fields = Path(f"/proc/{holder(layout.lock)}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return True  # it has just ended: the next command finds that
    return f"PPid:\t{process.pid}" in fields


def _faults(layout: Layout, seen: dict[str, Any]) -> list[str]:
    """The problems of each service, with the end of its log."""
    return [
        f"{name} {service['state']}: {service['detail']}; its log, {layout.log(name)}, ends with\n{tail(layout, name)}"
        for name, service in seen["services"].items()
        if service["state"] in {"dead", "silent"}
    ]


def tail(layout: Layout, service: str) -> str:
    """The end of a service's log, indented."""
    try:
        lines = layout.log(service).read_text(errors="replace").splitlines()[-_LOG_TAIL:]
    except FileNotFoundError:
        lines = []
    return "\n".join(f"    {line}" for line in lines or ["(nothing)"])
