"""Preflight check: is openshift-install there, and for the release that is to be installed?

The installer is needed only once, before the first machine. For servers that are not ordered, the check cannot know
whether the installation is done: there a problem is only a warning after the first run.
"""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from metal_ipi.provider.preflight.findings import Finding, error, ok, warning
from metal_ipi.provider.preflight.subject import Subject

NAME = "installer"
_TIMEOUT = 30
_LONGEST = 300
"""Maximum length of a program's error text in a message, in characters."""
_FIPS_MODE = Path("/proc/sys/crypto/fips_enabled")


async def check(subject: Subject) -> list[Finding]:
    """Returns findings about the program, its release and FIPS mode; none if no installer is needed."""
    if subject.plan.installer is None:
        return []
    if await subject.is_begun():
        return [ok("it is not needed any more: the cluster has machines already")]
    findings = await _look(subject.plan.installer, subject.plan.version, fips=subject.plan.fips)
    if subject.account is None and subject.again:
        return [_may_be_installed(finding) for finding in findings]
    return findings


def _may_be_installed(finding: Finding) -> Finding:
    if finding.level != "error":
        return finding
    return replace(finding, level="warning", remedy=f"{finding.remedy}; unless the cluster is installed already")


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The result of running the installer."""

    succeeded: bool
    """Whether it ended in time, with exit status 0."""
    out: str
    """Its standard output."""
    said: str
    """Its error text, in one line."""


async def ask(program: str, *words: str) -> Answer:
    """Runs a read-only command of the installer."""
    none, pipe = asyncio.subprocess.DEVNULL, asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(program, *words, stdin=none, stdout=pipe, stderr=pipe)
    try:
        out, err = await asyncio.wait_for(process.communicate(), _TIMEOUT)
    except TimeoutError:
        process.kill()
        await process.wait()
        return Answer(succeeded=False, out="", said=f"it does not end within {_TIMEOUT} s")
    said = " ".join(err.decode(errors="replace").split())[:_LONGEST] or "nothing"
    return Answer(succeeded=process.returncode == 0, out=out.decode(errors="replace"), said=said)


async def release_image(program: str) -> str | None:
    """The release image of an installer, from its `version` output; None if there is no installer, or its output does
    not name one."""
    found = shutil.which(program)
    answer = await ask(found, "version") if found is not None else None
    lines = answer.out.splitlines() if answer is not None else []
    return next(
        (line.removeprefix("release image ").strip() for line in lines if line.startswith("release image ")), None
    )


async def _look(installer: str, version: str | None, *, fips: bool) -> list[Finding]:
    program = shutil.which(installer)
    if program is None:
        remedy = f"put openshift-install {version} on PATH, or set install.installer"
        return [error(f"there is no program {installer}", remedy)]
    answer = await ask(program, "version")
    words = answer.out.partition("\n")[0].split()
    if not answer.succeeded or len(words) < 2:
        what = f"`{program} version` does not print its release: {answer.said}"
        return [error(what, "check that it is the installer")]
    found = words[1].removeprefix("v")
    if found != version:
        remedy = "use the installer of that release, or set openshiftVersion"
        return [error(f"{program} is for release {found}, not {version}", remedy)]
    good = ok(f"{program} is for release {version}")
    if not fips or _is_in_fips_mode():
        return [good]
    what = "install.fips is set, and this system is not in FIPS mode: the installer refuses to run here"
    return [
        good,
        warning(what, "run this on RHEL in FIPS mode, with the installer of the archive openshift-install-rhel9"),
    ]


def _is_in_fips_mode() -> bool:
    """Reads the kernel's flag, as the installer does (openshift/installer, pkg/hostcrypt). In FIPS mode the installer
    also needs its FIPS-capable binary."""
    try:
        return _FIPS_MODE.read_text().strip() == "1"
    except OSError:
        return False
