"""The hub's part of the cgroup hierarchies, shown on plain folders."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lab.hub import cgroups


def test_a_cgroup_that_vanishes_while_it_is_read_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container that ends takes its cgroup away at any moment: also between its listing and its reading."""
    for name, process in (("", 1), ("ends", 2), ("stays", 3)):
        cgroup = tmp_path / "hub" / name
        cgroup.mkdir()
        (cgroup / "cgroup.procs").write_text(f"{process}\n")
    really = os.scandir

    def scandir(path: str | Path):
        if Path(path).name == "ends":
            (Path(path) / "cgroup.procs").unlink()
            Path(path).rmdir()
        return really(path)

    monkeypatch.setattr(os, "scandir", scandir)
    monkeypatch.setattr(cgroups, "hierarchies", lambda: [tmp_path])
    assert cgroups.processes("/hub") == {1, 3}
    assert not (tmp_path / "hub/ends").exists()
