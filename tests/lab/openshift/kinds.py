"""OpenShift programs for tests that run none of them."""

from __future__ import annotations

from pathlib import Path

from lab.openshift.kinds import STAND_IN_RELEASE, OpenShift


def of(program: Path) -> OpenShift:
    """The stand-in, with one program for everything."""
    return OpenShift(installer=program, release=STAND_IN_RELEASE, program=program, images=None)
