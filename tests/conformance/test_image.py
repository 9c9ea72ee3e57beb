"""The real openshift-install in another root file system, as in the image of the Cluster API providers."""

from __future__ import annotations

import subprocess
from pathlib import Path

from lab.openshift.real import openshift_install


def test_it_works_where_it_is_placed(installer: Path, tmp_path: Path) -> None:
    """All that it names is below that root. Nothing changes the root here: the paths are made longer instead."""
    openshift_install.place(tmp_path)
    placed = tmp_path / "usr/local/bin/openshift-install"
    if openshift_install.on_path() is None:
        text = placed.read_text().replace("'/usr/local/", f"'{tmp_path}/usr/local/")
        assert text.count(str(tmp_path)) == 2 and "openshift-install/data'" in text
        placed.write_text(text)
        assert (tmp_path / "usr/local/lib/openshift-install/data/bootstrap/files").is_dir()
    said = [subprocess.run([each, "version"], capture_output=True, check=True).stdout for each in (installer, placed)]
    assert said[0].splitlines()[1:] == said[1].splitlines()[1:] and len(said[0].splitlines()) > 1
