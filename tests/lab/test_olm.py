"""The lab's catalogue of operators, and what stands in for them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from lab import olm
from lab.olm import catalog


@pytest.mark.programs
def test_the_real_opm_takes_the_catalogue(tmp_path: Path) -> None:
    programs = olm.cached()
    if programs is None:
        pytest.skip("OLM is not built: `python -m lab setup --day-two`")
    (tmp_path / "catalog.json").write_text(catalog.text())
    done = subprocess.run([programs.opm, "validate", tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("kind", [kind for package in catalog.PACKAGES for kind in package.kinds])
def test_every_kind_of_the_catalogue_is_one_that_the_program_makes_or_the_lab_has(kind: catalog.Kind) -> None:
    made = (Path(__file__).parents[1] / "golden" / "day-two.yaml").read_text()
    assert f"kind: {kind.kind}" in made or kind.group == catalog.EXAMPLE_GROUP
