"""`make topology` of stacks that are not up needs neither network nor credentials, and draws what they would be."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.end_to_end.project import Project
from tests.end_to_end.test_preview import OFFLINE
from tools.engine import ensure

pytestmark = [pytest.mark.lab, pytest.mark.engine]


def test_topology_without_network_and_credentials(project: Project, tmp_path: Path) -> None:
    ensure(print)
    da11 = _draw(project, "STACK=da11")
    assert da11[0] == str(project.root / ".state" / "pictures" / "da11-topology.svg")
    for text in ("da11.metal.example.com", "Equinix Metal", "facility da11", "da11-worker-2", "m3.large.x86"):
        assert text in da11[1]
    # What components tell for pictures alone: who is in which VLAN, and where BMCs answer.
    hybrid = _draw(project, "STACK=hybrid", f"OUT={tmp_path / 'it.svg'}")
    assert hybrid[0] == str(tmp_path / "it.svg")
    assert "VLAN 1200 backup" in hybrid[1] and "10.99.0.0/24" in hybrid[1]
    assert "192.0.2.68" in _draw(project, "STACK=rack7")[1]
    assert [path.name for path in (project.root / ".state").iterdir()] == ["pictures"]
    shutil.rmtree(project.root / ".state")


def _draw(project: Project, *values: str) -> tuple[str, list[str]]:
    """The file that a picture is drawn to, and the texts in it."""
    env = {name: os.environ[name] for name in ("PATH", "HOME", "XDG_CACHE_HOME") if name in os.environ}
    done = subprocess.run(
        [*OFFLINE, "make", "-s", "topology", *values], cwd=project.root, env=env, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    file = done.stdout.strip()
    return file, list(ElementTree.parse(file).getroot().itertext())
