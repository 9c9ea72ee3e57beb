"""Is the installer there, and for the release that is to be installed?

It works once, before the first machine. Of servers that are not ordered nobody tells whether that was: there it is only
said, after the first time.
"""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace

from provider.preflight.findings import Finding
from provider.preflight.subject import Subject

NAME = "installer"
_TIMEOUT = 30


async def check(subject: Subject) -> list[Finding]:
    """One finding."""
    installer, version = subject.plan.installer, subject.plan.version
    if installer is None:
        return []
    if await subject.is_begun():
        return [Finding(check=NAME, level="ok", what="it is not needed any more: there are machines of this cluster")]
    findings = await _look(installer, version)
    if subject.account is None and subject.again:
        return [_doubted(finding) if finding.level == "error" else finding for finding in findings]
    return findings


def _doubted(finding: Finding) -> Finding:
    remedy = f"{finding.remedy}; unless the cluster is installed already"
    return replace(finding, level="warning", remedy=remedy)


async def _look(installer: str, version: str | None) -> list[Finding]:
    program = shutil.which(installer)
    if program is None:
        return [
            _wrong(
                f"there is no program {installer}", f"put openshift-install {version} on PATH, or set install.installer"
            )
        ]
    process = await asyncio.create_subprocess_exec(
        program,
        "version",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(), _TIMEOUT)
    except (asyncio.TimeoutError, TimeoutError):
        process.kill()
        await process.wait()
        return [_wrong(f"{program} version does not end", "see whether it is the installer")]
    words = out.decode(errors="replace").partition("\n")[0].split()
    if process.returncode != 0 or len(words) < 2:
        said = err.decode(errors="replace").strip() or "nothing"
        return [
            _wrong(f"{program} version does not say which release it is for: {said}", "see whether it is the installer")
        ]
    found = words[1].removeprefix("v")
    if found != version:
        return [
            _wrong(
                f"{program} is for release {found}, not {version}",
                "use the installer of that release, or set openshiftVersion",
            )
        ]
    return [Finding(check=NAME, level="ok", what=f"{program} is for release {version}")]


def _wrong(what: str, remedy: str) -> Finding:
    return Finding(check=NAME, level="error", what=what, remedy=remedy)
