"""A real facility's stack is previewed and drawn without network or credentials, and that leaves no trace."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.conftest import TOLD
from tests.end_to_end.processes import processor_seconds
from tests.end_to_end.project import Project
from tools.engine import ensure

pytestmark = [pytest.mark.lab, pytest.mark.engine]


def test_pictures_and_previews_without_network_and_credentials(
    project: Project, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    ensure(print)
    project.commit()
    # They compile, too, what is not to be measured.
    _assert_topologies(project, tmp_path)

    used = processor_seconds()
    done = project.offline("preview", "STACK=da11")
    used = processor_seconds() - used

    record_property(
        f"{TOLD}preview", f"make preview STACK=da11 without network: {done.seconds:.1f} s, {used:.1f} processor seconds"
    )
    assert "da11-worker-2-device" in done.out and "to create" in done.out, done.out
    assert "cost: not known: a rehearsal requests no prices" in done.out, done.out
    assert used <= 10, "it should be 5 s on a machine that does nothing else"
    assert project.git("status", "--porcelain", "--ignored=no") == ""
    assert not (project.root / ".state").exists()


def _assert_topologies(project: Project, tmp_path: Path) -> None:
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
    file = project.offline("topology", *values).out.strip()
    return file, list(ElementTree.parse(file).getroot().itertext())
