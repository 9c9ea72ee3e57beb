"""Each test is run by one of the processes of `python -m tests`, which reads no file that has nothing for it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import conftest
from tests.groups import EMULATED, IRONIC, QUICK, REST, STARTING, Group


@pytest.mark.parametrize(
    ("text", "read_by"),
    [
        ("def test_it(): pass\n", [REST, QUICK]),
        ("pytestmark = pytest.mark.programs\n\ndef test_it(): pass\n", [STARTING]),
        ("@pytest.mark.lab\ndef test_it(): pass\n", [STARTING, REST, QUICK]),
        ("pytestmark = needs_engine\n\ndef test_it(): pass\n", [STARTING]),
        ('pytestmark = pytest.mark.usefixtures("no_waiting")\n\ndef test_it(): pass\n', [REST]),
        ("pytestmark = [\n    pytest.mark.servers,\n    pytest.mark.ironic,\n]\n\ndef test_it(): pass\n", [IRONIC]),
        ("pytestmark = ON_A_HUB\n\ndef test_it(): pass\n", [EMULATED]),
        ("pytestmark = [pytest.mark.lab, pytest.mark.nightly]\n\ndef test_it(): pass\n", []),
    ],
)
def test_a_file_is_read_for_what_its_tests_may_be(tmp_path: Path, text: str, read_by: list[Group]) -> None:
    (tmp_path / "test_it.py").write_text(text)
    all_ = (STARTING, IRONIC, EMULATED, REST, QUICK)
    assert [group for group in all_ if group.by_day.reads(tmp_path / "test_it.py")] == read_by


def test_every_test_is_of_one_group() -> None:
    """But for those that OpenShift's own programs run, and those of `make check`, which are the rest's, too."""
    for markers in (
        set[str](),
        {"servers"},
        {"engine", "lab"},
        {"programs"},
        {"servers", "ironic"},
        {"lab", "libvirt"},
    ):
        assert len([group for group in (STARTING, IRONIC, EMULATED, REST) if group.has(markers)]) == 1, markers


def test_a_test_that_no_process_would_find_is_an_error(tmp_path: Path) -> None:
    """Such as one whose marker has a name that tests/groups.py does not know."""
    (tmp_path / "test_it.py").write_text("pytestmark = OURS\n\ndef test_it(): pass\n")
    item: Any = SimpleNamespace(path=tmp_path / "test_it.py", nodeid="test_it.py::test_it")
    item.iter_markers = lambda: [pytest.mark.lab]
    with pytest.raises(pytest.UsageError, match=r"test_it\.py::test_it would not be run"):
        conftest.pytest_collection_modifyitems([item])
