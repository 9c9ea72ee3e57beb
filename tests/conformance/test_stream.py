"""The CoreOS that the real installer is made for: our reader takes it, and another one is told of."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from metal_ipi.components.boot.stream import pxe_artifacts
from metal_ipi.provider import configuration
from metal_ipi.provider.preflight.checks import stream
from metal_ipi.provider.preflight.findings import Finding
from metal_ipi.provider.preflight.plan import Plan
from metal_ipi.provider.preflight.subject import Subject
from tests.conformance.conftest import Made
from tests.conformance.facilities import ARCHITECTURES, Facility
from tests.mocks import plain

_COREOS = "https://rhcos.mirror.openshift.com/"


@pytest.fixture(scope="module")
def document(installer: Path) -> str:
    """What a user writes to a file and names in boot.streamFile."""
    command = [str(installer), "coreos", "print-stream-json"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_our_reader_finds_every_file_of_the_installers_stream(architecture: str, document: str) -> None:
    found = pxe_artifacts(document, architecture)
    tree: Any = json.loads(document)["architectures"][architecture]["artifacts"]["metal"]
    assert (found.stream, found.release) == ("rhcos-4.19", tree["release"])
    named = {
        "kernel": (found.kernel, tree["formats"]["pxe"]["kernel"]),
        "initramfs": (found.initramfs, tree["formats"]["pxe"]["initramfs"]),
        "rootfs": (found.rootfs, tree["formats"]["pxe"]["rootfs"]),
        "iso": (found.iso, tree["formats"]["iso"]["disk"]),
        # There are images for sectors of 512 and of 4096 bytes; this is the former.
        "disk": (found.disk, tree["formats"]["raw.gz"]["disk"]),
    }
    for name, (ours, theirs) in named.items():
        assert ours is not None, name
        assert (ours.url, ours.sha256) == (theirs["location"], theirs["sha256"]), name
        assert ours.url.startswith(_COREOS) and architecture in ours.url, name


def test_architectures_have_files_of_their_own(document: str) -> None:
    one, other = (pxe_artifacts(document, architecture) for architecture in ARCHITECTURES)
    assert one.kernel.sha256 != other.kernel.sha256 and one.rootfs.url != other.rootfs.url


def _finding(facility: Facility, **changes: Any) -> Finding:
    """What the preflight check says, of the plan that our program hands over."""
    plan = Plan.read(plain(facility.recorder.one("preflight").inputs))
    settings, problems = configuration.parse({})
    assert problems == []
    subject = Subject(plan=plan.model_copy(update=changes), settings=settings, account=None)
    (found,) = asyncio.run(stream.check(subject))
    return found


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_stream_of_another_release_is_a_warning(architecture: str, made: Made, document: str) -> None:
    facility = made("rack", architecture)
    own = pxe_artifacts(document, architecture)
    found = _finding(facility)
    assert found.level == "warning"
    ours, theirs = (rf"stream rhcos-4\.{minor} \(release \S+\)" for minor in (21, 19))
    told = rf"machines boot {ours}, and \S+ is made for {theirs}"
    assert own.release in found.what.rpartition("is made for")[2]
    assert re.fullmatch(told, found.what), found.what
    assert found.remedy is not None and "coreos print-stream-json" in found.remedy


def test_the_installers_own_stream_is_none(made: Made, document: str) -> None:
    own = pxe_artifacts(document, "x86_64")
    found = _finding(made("rack"), stream=own.stream, release=own.release)
    assert found.level == "ok" and found.what.startswith(f"stream rhcos-4.19 (release {own.release}), as ")
