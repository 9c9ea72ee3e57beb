"""Preflight check: do the machines boot the CoreOS that the installer is made for?

An installer contains the stream that its release was tested with (`coreos print-stream-json`; openshift/installer,
data/data/coreos). Nodes change to the release's own operating system at their first boot, so a slightly different
stream may work: this check only warns. It compares the names of the streams, not the versions, because one installer
can have several streams: besides rhcos-4.22 (RHEL 10) also rhcos-4.21 (RHEL 9).
"""

from __future__ import annotations

import json
import shutil
from typing import Any

from metal_ipi.provider.preflight.checks.installer import ask
from metal_ipi.provider.preflight.findings import Finding, ok, warning
from metal_ipi.provider.preflight.subject import Subject

NAME = "stream"


async def check(subject: Subject) -> list[Finding]:
    """Returns one finding; none if the stream has no name, or if the installer is missing (the check `installer`
    reports that)."""
    plan = subject.plan
    program = shutil.which(plan.installer) if plan.installer is not None else None
    if plan.stream is None or program is None or await subject.is_begun():
        return []
    answer = await ask(program, "coreos", "print-stream-json")
    found = _from_installer(answer.out, plan.architecture) if answer.succeeded else None
    if found is None:
        return [_differs(f"{program} coreos print-stream-json does not print its stream: {answer.said}")]
    stream, release = found
    ours = f"stream {plan.stream}{f' (release {plan.release})' if plan.release else ''}"
    theirs = f"stream {stream}{f' (release {release})' if release else ''}"
    if stream == plan.stream:
        return [ok(f"{ours}, as {program} has it")]
    if release is None:
        return [_differs(f"machines boot {ours}, and {program} is made for {theirs}, which has no {plan.architecture}")]
    return [_differs(f"machines boot {ours}, and {program} is made for {theirs}")]


def _from_installer(document: str, architecture: str) -> tuple[str, str | None] | None:
    """The name of the installer's stream, and its release for bare metal; None if the document is not a stream
    metadata."""
    try:
        tree: Any = json.loads(document)
    except ValueError:
        return None
    stream = _at(tree, "stream")
    release = _at(tree, "architectures", architecture, "artifacts", "metal", "release")
    return (stream, release) if stream is not None else None


def _at(tree: Any, *path: str) -> str | None:
    for part in path:
        tree = tree.get(part) if isinstance(tree, dict) else None
    return tree if isinstance(tree, str) else None


def _differs(what: str) -> Finding:
    return warning(
        what,
        "write the installer's own: `openshift-install coreos print-stream-json > stacks/<name>.json`,"
        " and name that file in boot.streamFile",
    )
