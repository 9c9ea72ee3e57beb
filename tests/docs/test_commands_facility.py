"""The same for the pages about a facility or a rack of one's own, which the lab plays. Apart, to be run beside them."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.docs import running
from tests.docs.scenes import Scene, scene

pytestmark = [pytest.mark.lab, pytest.mark.engine]


@pytest.fixture(scope="module")
def facility(tmp_path_factory: pytest.TempPathFactory) -> Generator[Scene]:
    """Shared by pages whose commands leave nothing up."""
    with scene("facility", tmp_path_factory.mktemp("facility")) as where:
        yield where


@pytest.mark.parametrize("page", running.with_commands("facility"))
def test_the_commands_of_a_page(page: str, facility: Scene) -> None:
    assert running.run_in(page, facility)


@pytest.mark.parametrize("page", running.with_commands("facility", "rack", at_night=True))
def test_the_commands_of_a_page_that_takes_long(page: str, tmp_path: Path) -> None:
    assert running.run(page, tmp_path)
