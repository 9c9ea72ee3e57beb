"""`make preflight`: runs the provider's checks with the stack's settings, and prints the report."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from tools.errors import RunFailed, StackError
from tools.layout import ROOT, Layout
from tools.screen import Screen
from tools.state import PREFLIGHT, Deployment
from tools.states import state_of

_COMMAND = (sys.executable, "-m", "metal_ipi.provider.preflight")
_STYLES = {"error": "red", "warning": "yellow"}
_FURTHER = " " * 9
"""Indent of the continuation lines of a finding."""


def run(values: Mapping[str, str], layout: Layout, screen: Screen) -> None:
    """Prints the report.

    Args:
        values: the stack's settings as the engine passes them, with secrets.
        layout: its state tells which run it is, and whether the checks have passed before.

    Raises RunFailed if there are errors, and StackError if the settings are wrong.
    """
    done = subprocess.run(
        _COMMAND,
        input=json.dumps(request(values, layout.stack, state_of(layout), state_of(layout.cluster))),
        capture_output=True,
        check=False,
        cwd=ROOT,
        text=True,
    )
    style = ""
    for line in done.stdout.splitlines():
        level = next(iter(line.split(maxsplit=1)), "")
        style = _STYLES.get(level, style if line.startswith(_FURTHER) else "")
        screen.line(line, style)
    if done.returncode == 1 and done.stdout:
        raise RunFailed(f"preflight of stack '{layout.stack}': there are errors, so do not run `up` yet")
    if done.returncode != 0:
        raise RunFailed(f"preflight of stack '{layout.stack}' could not be made", why=done.stderr.strip())


def request(
    values: Mapping[str, str], stack: str, state: Deployment, cluster: Deployment | None = None
) -> dict[str, Any]:
    """The input of `provider.preflight`.

    Args:
        cluster: the state of the cluster's stack; None: the same as `state`.

    Raises StackError if the settings are wrong.
    """
    cluster = cluster or state
    # Not at the top: the program, which imports these too, is loaded while the engine opens the stack.
    from metal_ipi.stacks import connections
    from metal_ipi.stacks.pools.splitting import share
    from metal_ipi.stacks.preflight import plan
    from metal_ipi.stacks.settings import parse
    from metal_ipi.stacks.stream import boot_artifacts

    try:
        settings = share(parse(dict(values), stack), stack, frozenset(cluster.machines()))
        boot = boot_artifacts(settings)
        inputs = plan(settings, boot, stack).to_wire()
    except ValueError as error:
        raise StackError(str(error)) from error
    known = {"run": run} if (run := cluster.run()) else {}
    return {
        "config": connections.provider_sections(settings, boot.iso),
        "inputs": {**inputs, **known},
        "again": state.has(PREFLIGHT),
    }
