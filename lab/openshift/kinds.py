"""Which OpenShift a lab has: the stand-in, which is there at once, or the real programs as far as they can be had."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lab.openshift.real.release import Release

KINDS = ("stand-in", "real")
STAND_IN_RELEASE = "4.21.0-lab"
"""The release that the stand-in for openshift-install installs (lab/openshift/installer/cli.go)."""


@dataclass(frozen=True, kw_only=True)
class OpenShift:
    """The programs of one kind."""

    installer: Path
    """openshift-install."""
    release: str
    """The release that it installs."""
    program: Path
    """lab-openshift: what is stood in for."""
    images: Release | None
    """What machines pull; None: the stand-in needs nothing."""


def ensure(kind: str, report: Callable[[str], None]) -> OpenShift:
    """The programs, built if need be. Raises SetupFailed or ProgramMissing."""
    from lab.openshift import build
    from lab.openshift.real import RELEASE, openshift_install, release

    program = build.ensure()
    if kind == "stand-in":
        return OpenShift(installer=build.installer(), release=STAND_IN_RELEASE, program=program, images=None)
    return OpenShift(
        installer=openshift_install.ensure(report), release=RELEASE, program=program, images=release.ensure(report)
    )
