"""Is the installer there, and for the release that is to be installed?

It works once, before the first machine. Of servers that are not ordered nobody tells whether that was: there it is only
said, after the first time.
"""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from provider.preflight.findings import Finding
from provider.preflight.subject import Subject

NAME = "installer"
_TIMEOUT = 30
_LONGEST = 300
"""Characters of what a program says that are told."""
_FIPS_MODE = Path("/proc/sys/crypto/fips_enabled")


async def check(subject: Subject) -> list[Finding]:
    """One finding."""
    installer, version = subject.plan.installer, subject.plan.version
    if installer is None:
        return []
    if await subject.is_begun():
        return [Finding(check=NAME, level="ok", what="it is not needed any more: there are machines of this cluster")]
    findings = await _look(installer, version, fips=subject.plan.fips)
    if subject.account is None and subject.again:
        return [_doubted(finding) if finding.level == "error" else finding for finding in findings]
    return findings


def _doubted(finding: Finding) -> Finding:
    remedy = f"{finding.remedy}; unless the cluster is installed already"
    return replace(finding, level="warning", remedy=remedy)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What an installer answered."""

    succeeded: bool
    """Whether it ended in time, and with status 0."""
    out: str
    """What it printed."""
    said: str
    """What it said of a failure, in one line."""


async def ask(program: str, *words: str) -> Answer:
    """Run a command of the installer that changes nothing."""
    process = await asyncio.create_subprocess_exec(
        program,
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(), _TIMEOUT)
    except TimeoutError:
        process.kill()
        await process.wait()
        return Answer(succeeded=False, out="", said=f"it does not end within {_TIMEOUT} s")
    said = " ".join(err.decode(errors="replace").split())[:_LONGEST] or "nothing"
    return Answer(succeeded=process.returncode == 0, out=out.decode(errors="replace"), said=said)


async def _look(installer: str, version: str | None, *, fips: bool) -> list[Finding]:
    program = shutil.which(installer)
    if program is None:
        return [
            _wrong(
                f"there is no program {installer}", f"put openshift-install {version} on PATH, or set install.installer"
            )
        ]
    answer = await ask(program, "version")
    words = answer.out.partition("\n")[0].split()
    if not answer.succeeded or len(words) < 2:
        return [
            _wrong(
                f"{program} version does not say which release it is for: {answer.said}",
                "see whether it is the installer",
            )
        ]
    found = words[1].removeprefix("v")
    if found != version:
        return [
            _wrong(
                f"{program} is for release {found}, not {version}",
                "use the installer of that release, or set openshiftVersion",
            )
        ]
    good = Finding(check=NAME, level="ok", what=f"{program} is for release {version}")
    return [good, *(_host_is_not_in_fips_mode() if fips and not _is_in_fips_mode() else [])]


def _is_in_fips_mode() -> bool:
    """As the installer reads it (openshift/installer, pkg/hostcrypt), which then needs its FIPS-capable binary too."""
    try:
        return _FIPS_MODE.read_text().strip() == "1"
    except OSError:
        return False


def _host_is_not_in_fips_mode() -> list[Finding]:
    return [
        Finding(
            check=NAME,
            level="warning",
            what="install.fips is set, and this system is not in FIPS mode: the installer refuses to work here",
            remedy="run this on RHEL in FIPS mode, with the installer of the archive openshift-install-rhel9",
        )
    ]


def _wrong(what: str, remedy: str) -> Finding:
    return Finding(check=NAME, level="error", what=what, remedy=remedy)
