"""Starting and stopping the hub of a lab that runs, from outside of the lab."""

from __future__ import annotations

import json
import shutil
import signal
import time
from collections.abc import Callable
from typing import Any

from lab import leftovers
from lab.control import only_one, status, tail
from lab.errors import LabError, NotRunning, ServiceFailed
from lab.hub import cgroups, credentials, images, programs
from lab.hub.layout import HubLayout
from lab.hub.recipe import forget_unused
from lab.layout import Layout, write_private
from lab.network import plan
from lab.supervision import Supervisor

Report = Callable[[str], None]

SERVICE = "hub"
_START_SECONDS = 120.0
_END_SECONDS = 60.0
_POLL_SECONDS = 0.1


def setup(report: Report) -> None:
    """Build or download what a hub is made of, but for Debian's packages. Raises SetupFailed or ProgramMissing."""
    found = programs.ensure(report)
    for recipe in images.ALL:
        recipe.ensure(report)
    forget_unused()
    report(f"the hub: Kubernetes {found.version}, Debian's containerd and docker-registry")


def up(layout: Layout, report: Report) -> None:
    """Start the hub in a lab that runs, and wait until its node is ready. A hub that runs is left alone."""
    hub = HubLayout(layout.hub)
    supervisor = _supervisor(layout)
    with only_one(layout):
        began = time.monotonic()
        state = _state(layout)
        if state != "ready":
            found = programs.find()
            if isinstance(found, str):
                raise LabError(f"the hub cannot be started: {found}")
            if state is not None:
                report("the hub is broken: it is stopped and started again")
                _withdraw(layout, hub, supervisor)
            if not (layout.tls / f"{plan.REGISTRY_NAME}.crt").exists():
                raise LabError("the lab was started by an older version, which had no hub: run `make down` first")
            hub.make()
            credentials.make(hub)
            found.save(hub.wanted)
            _tell(supervisor)
            _await_ready(layout, hub)
            write_private(hub.facts, json.dumps(_facts(hub), indent=2))
            report(f"the hub is ready after {time.monotonic() - began:.1f} s")
        else:
            report("the hub is running")
        report(f"  Kubernetes API: https://{plan.HUB}:{plan.HUB_PORT}, inside of the lab")
        report(f"  registry: {plan.REGISTRY}")
        report(f"  kubeconfig: {hub.kubeconfig('admin')}")


def down(layout: Layout, report: Report) -> list[str]:
    """Stop the hub and remove all of it; returns what is left of it."""
    if not layout.hub.exists():
        report("there is no hub")
        return cgroups.left(cgroups.name(layout.state))
    with only_one(layout):
        hub = HubLayout(layout.hub)
        supervisor = Supervisor.find(layout.lock)
        if supervisor is not None:
            _withdraw(layout, hub, supervisor)
        shutil.rmtree(layout.hub, ignore_errors=True)
        cgroups.remove(cgroups.name(layout.state))
        left = [*leftovers.users(layout.hub), *cgroups.left(cgroups.name(layout.state))]
        return left + ([f"directory {layout.hub}"] if layout.hub.exists() else [])


def _facts(hub: HubLayout) -> dict[str, Any]:
    """The facts for users of the hub."""
    return {
        "address": plan.HUB,
        "kubeconfig": hub.kubeconfig("admin").read_text(),
        "images": json.loads(hub.references.read_text()),
    }


def _supervisor(layout: Layout) -> Supervisor:
    supervisor = Supervisor.find(layout.lock)
    if supervisor is None or status(layout)["state"] not in {"ready", "failed"}:
        raise NotRunning(f"no lab runs in {layout.state}: start it with `python -m lab up --state {layout.state}`")
    return supervisor


def _state(layout: Layout) -> str | None:
    """The supervisor's status of the hub; None: there is no hub."""
    service = status(layout)["services"].get(SERVICE)
    return None if service is None else service["state"]


def _withdraw(layout: Layout, hub: HubLayout, supervisor: Supervisor) -> None:
    hub.wanted.unlink(missing_ok=True)
    _tell(supervisor)
    deadline = time.monotonic() + _END_SECONDS
    while _state(layout) is not None:
        if time.monotonic() > deadline:
            raise ServiceFailed(f"the hub did not end within {_END_SECONDS:.0f} s; its log is {layout.log(SERVICE)}")
        time.sleep(_POLL_SECONDS)


def _tell(supervisor: Supervisor) -> None:
    """Make the supervisor read again which services are wanted."""
    supervisor.send(signal.SIGUSR1)


def _await_ready(layout: Layout, hub: HubLayout) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while (state := _state(layout)) != "ready":
        if state in {"dead", "silent"} or time.monotonic() > deadline:
            raise ServiceFailed(
                f"the hub is not ready ({state}); logs of its programs are in {hub.logs}, its own ends with\n"
                f"{tail(layout, SERVICE)}"
            )
        time.sleep(_POLL_SECONDS)
