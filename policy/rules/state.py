"""Reads the state of the stack before a change from the engine, which shows a policy pack only the future resources."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .base import Resource, mapping

_LONGEST = 60
_NO_STATE = "METAL_IPI_NO_STATE"
"""An environment variable: in a rehearsal no resource exists. A copy of `NO_STATE` of the tools."""


class NoState(RuntimeError):
    """The engine did not return the state; the message says why."""


def resources_before(after: Sequence[Resource]) -> list[Resource]:
    """The outputs of all resources in the state of the stack that `after` belongs to. Raises NoState."""
    if os.environ.get(_NO_STATE):
        return []
    stacks = {tuple(each.urn.removeprefix("urn:pulumi:").split("::")[:2]) for each in after}
    if len(stacks) != 1:
        raise NoState(f"the resources belong to {len(stacks)} stacks")
    stack, project = stacks.pop()
    organization = os.environ.get("PULUMI_ORGANIZATION")
    # A bare stack name would mean a stack of the project that contains this pack.
    return parse(_exported(f"{organization}/{project}/{stack}" if organization else stack))


def parse(document: str) -> list[Resource]:
    """Parses the output of `pulumi stack export`. Resources that are being deleted are left out."""
    deployment = mapping(mapping(json.loads(document)).get("deployment"))
    found: list[dict[str, Any]] = [mapping(each) for each in deployment.get("resources") or []]
    return [
        Resource(
            urn=str(each["urn"]),
            type=str(each["type"]),
            name=str(each["urn"]).rpartition("::")[2],
            properties={**mapping(each.get("outputs")), "id": each.get("id", "")},
            protected=bool(each.get("protect")),
        )
        for each in found
        if not each.get("delete")
    ]


def _exported(stack: str) -> str:
    command = ["pulumi", "stack", "export", "--non-interactive", "--stack", stack]
    try:
        done = subprocess.run(
            command, cwd=_engine_directory(), capture_output=True, text=True, timeout=_LONGEST, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoState(f"`{' '.join(command)}` did not run: {error}") from error
    if done.returncode != 0:
        raise NoState(f"`{' '.join(command)}` failed: {done.stderr.strip()}")
    return done.stdout


def _engine_directory() -> Path | None:
    """The working directory of the engine, or of its language host. The pack runs in its own folder, where a backend
    URL like `file://./state` would be wrong."""
    try:
        return Path(f"/proc/{os.getppid()}/cwd").resolve(strict=True)
    except OSError:
        return None
